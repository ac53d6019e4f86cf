/**
 * Leases that had not ended when they were archived, and have since: their last account goes into a late file, and they leave the
 * store. So do those that nobody has reported on for ninety days. Earlier late files are taken over, as long as all fits one; each
 * goes only when its leases are on the disk in the new one. Knows stores only as a port.
 */
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "../lease-identity.js";
import type { Log } from "../log.js";
import type { Store } from "../store.js";
import { archiveFileOf, FILE_LEASES_MAX } from "./archive-file.js";
import type { ArchiveListing } from "./archive-listing.js";
import type { ArchiveName } from "./archive-name.js";
import { cutInSteps } from "./cut-in-steps.js";
import { hasEnded } from "./later-progress.js";
import type { LedgerArchive } from "./ledger-archive.js";
import { mergedPage, type NamespaceArchive } from "./namespace-archive.js";
import { removeAbandoned, writeDurably } from "./write-durably.js";

export interface LateOptions {
  readonly store: Store;
  readonly archive: LedgerArchive;
  readonly log: Log;
  readonly partialAfterMs: number;
}

/** What stands in the archive, and under which store, at a time that the store vouches for. */
export interface Standing {
  readonly nowMs: number;
  readonly storeId: string;
  readonly through: number;
  readonly archive: NamespaceArchive;
  readonly listing: ArchiveListing;
}

/** Who has been silent so long reports no more. */
const SILENT_AFTER_MS = 90 * 24 * 3_600_000;
/** So many are worth a file, however young. */
const WORTH_A_FILE = 1_024;
const PAGE_LEASES = 256;

export class LateLeases {
  readonly #namespace: string;
  readonly #options: LateOptions;

  constructor(namespace: string, options: LateOptions) {
    this.#namespace = namespace;
    this.#options = options;
  }

  /** @throws as `NamespaceRotation.rotate`. */
  async rotate(standing: Standing): Promise<void> {
    const { disk } = this.#options.archive;
    await removeAbandoned(disk, standing.archive.folder, standing.nowMs);
    const ended = await this.#ended(standing);
    if (ended.length < WORTH_A_FILE && !(await this.#isOverdue(standing, ended))) return;
    await this.#writeAndCut(standing, ended);
  }

  /** Those that stand in the archive and in the store, and need no longer stand in the store. */
  async #ended({ through, nowMs }: Standing): Promise<readonly LedgerEntry[]> {
    const { store } = this.#options;
    const ended: LedgerEntry[] = [];
    for (let after = 0; after < through && ended.length < FILE_LEASES_MAX; ) {
      const page = await store.exportLeases(this.#namespace, { afterLedgerId: after, limit: PAGE_LEASES });
      const archived = page.filter((lease) => lastLedgerIdOf(lease) <= through);
      ended.push(...archived.filter((lease) => hasEnded(lease) || nowMs - heardAtMs(lease) > SILENT_AFTER_MS));
      if (archived.length < PAGE_LEASES) break;
      after = lastLedgerIdOf(page.at(-1) as LedgerEntry);
      await turn();
    }
    return ended.slice(0, FILE_LEASES_MAX);
  }

  async #isOverdue({ nowMs, archive, listing }: Standing, ended: readonly LedgerEntry[]): Promise<boolean> {
    if (ended.length === 0) return false;
    const { partialAfterMs } = this.#options;
    const writtenAtMs = await Promise.all(
      listing.late.map(async (file) => (await archive.pieces.index(file)).writtenAtMs),
    );
    const oldestAtMs = ended.reduce((oldest, lease) => Math.min(oldest, heardAtMs(lease)), nowMs);
    return nowMs - Math.max(oldestAtMs, ...writtenAtMs) > partialAfterMs;
  }

  async #writeAndCut(standing: Standing, ended: readonly LedgerEntry[]): Promise<void> {
    const { storeId, through, archive, listing } = standing;
    const { leases, taken } = await withEarlier(archive, listing.late, ended);
    const range = {
      kind: "late",
      first: lastLedgerIdOf(leases[0] as LedgerEntry),
      last: lastLedgerIdOf(leases.at(-1) as LedgerEntry),
    } as const;
    const file = await archiveFileOf(range, leases, standing.nowMs);
    const { disk } = this.#options.archive;
    await writeDurably(disk, archive.folder, file, leases);
    await archive.look();
    const cut = { storeId, archivedThrough: through, through };
    // When somebody else moves the end meanwhile, what is left is found again by the next look.
    const { leaseCount } = await cutInSteps(this.#options.store, this.#namespace, cut, ended);
    for (const { name } of taken) await disk.remove(join(archive.folder, name));
    const { first: fromLedgerId, last: throughLedgerId } = range;
    const told = { namespace: this.#namespace, fromLedgerId, throughLedgerId, leaseCount };
    this.#options.log.info({ ...told, file: file.name.name, bytes: file.bytes.length }, "rotation");
  }
}

/** The leases with those of earlier late files, each in its later account, and the files that need no longer be. */
async function withEarlier(archive: NamespaceArchive, late: readonly ArchiveName[], ended: readonly LedgerEntry[]) {
  let leases = [...ended];
  const taken: ArchiveName[] = [];
  for (const file of late) {
    const { leaseCount } = await archive.pieces.index(file);
    if (leases.length + leaseCount > FILE_LEASES_MAX) continue;
    leases = [...mergedPage(leases, await archive.pieces.whole(file), 1)];
    taken.push(file);
  }
  return { leases, taken };
}

/** When its holder was heard of last. */
function heardAtMs({ leasedAtMs, progress }: LedgerEntry): number {
  return Math.max(leasedAtMs, progress?.reportedAtMs ?? 0);
}
