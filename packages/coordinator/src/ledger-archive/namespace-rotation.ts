/**
 * Takes the oldest leases of one namespace from the store into archive files. In this order, so that whatever is killed in between,
 * each lease stands in the store or in a file, and the next rotation goes on:
 *
 *   1 the leases are read, written into a file, read back and compared; the file gets its name, and is on the disk
 *   2 the store lets go of them, step by step, and knows up to where it has; each step only if nobody else did one meanwhile
 *
 * A lease that has not ended stays in the store, too, so that reports still arrive (late-leases.ts). Knows stores only as a port.
 */
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { GAP_MS } from "../guard/bounds.js";
import { PHASES } from "../guard/record.js";
import { lastLedgerIdOf } from "../lease-identity.js";
import type { Log } from "../log.js";
import type { Store } from "../store.js";
import { archiveFileOf, FILE_LEASES_MAX, lineOf } from "./archive-file.js";
import type { ArchiveName } from "./archive-name.js";
import { cutInSteps } from "./cut-in-steps.js";
import { HotPart, type Retention } from "./hot-part.js";
import { LateLeases, type Standing } from "./late-leases.js";
import { hasEnded } from "./later-progress.js";
import type { LedgerArchive } from "./ledger-archive.js";
import { writeDurably } from "./write-durably.js";

export interface RotationOptions {
  readonly store: Store;
  readonly archive: LedgerArchive;
  readonly retention: Retention;
  readonly log: Log;
  /** The clock, in milliseconds. */
  readonly now: () => number;
  /** Leases of a whole segment. Default `FILE_LEASES_MAX`. */
  readonly segmentLeases?: number;
  /** How long leases wait for a segment to fill before a smaller one is written, ms. Default a day. */
  readonly partialAfterMs?: number;
  /** How often leases are looked for that ended after they were archived, ms. Default an hour. */
  readonly lateEveryMs?: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export class NamespaceRotation {
  readonly #namespace: string;
  readonly #options: RotationOptions;
  readonly #hotPart: HotPart;
  readonly #late: LateLeases;
  #lookedForLateAtMs = Number.NEGATIVE_INFINITY;

  constructor(namespace: string, options: RotationOptions) {
    this.#namespace = namespace;
    this.#options = options;
    this.#hotPart = new HotPart(options.store, namespace, options.retention);
    this.#late = new LateLeases(namespace, { ...options, partialAfterMs: options.partialAfterMs ?? DAY_MS });
  }

  /**
   * Does what there is to do, one file at a time, until `isStopped`.
   * @throws CoordinatorError `ledger_archive_unavailable`, `store_unavailable`, a refusal of the cut; the system's error for a folder that
   *   can't be written. Nothing is lost, and the next try goes on.
   */
  async rotate(isStopped: () => boolean = () => false): Promise<void> {
    const { lateEveryMs = HOUR_MS } = this.#options;
    for (let isDone = false; !isDone && !isStopped(); ) {
      const standing = await this.#standing();
      if (standing === undefined) return;
      if (standing.nowMs - this.#lookedForLateAtMs >= lateEveryMs) {
        await this.#late.rotate(standing);
        this.#lookedForLateAtMs = standing.nowMs;
      }
      isDone = !(await this.#rotateSegment(standing));
      await turn();
    }
  }

  /**
   * Undefined while the namespace is sealed or in doubt: nothing changes there but by who settles it. And while our clock lies far
   * from the last touch, which comes every few seconds: one of the two clocks is wrong, and by ours live leases may look old and silent.
   */
  async #standing(): Promise<Standing | undefined> {
    const { store, archive: archives, now } = this.#options;
    const { phase, changedAtMs } = await store.readNamespace(this.#namespace);
    const nowMs = now();
    if (phase !== PHASES.open || Math.abs(nowMs - changedAtMs) > GAP_MS) return undefined;
    const { storeId, through } = await store.readArchived(this.#namespace);
    if (storeId === undefined) return undefined;
    const archive = archives.of(this.#namespace, storeId);
    return { nowMs, storeId, through, archive, listing: await archive.mustCover(through) };
  }

  /** Answers whether there may be more to do. */
  async #rotateSegment(standing: Standing): Promise<boolean> {
    const { segmentLeases = FILE_LEASES_MAX } = this.#options;
    const due = await this.#hotPart.due(standing.through, segmentLeases, standing.nowMs);
    const found = await this.#standingFileFor(standing, due);
    if (found !== undefined) return await this.#cut(standing, found.held, found.file, null);
    if (due.length < segmentLeases && !(await this.#isOverdue(standing, due[0]))) return false;
    return await this.#writeAndCut(standing, due);
  }

  /** A file that was written and not cut by: a process was killed, another one is about to, or the store was restored. */
  async #standingFileFor({ through, archive, listing }: Standing, due: readonly LedgerEntry[]) {
    for (const file of listing.covering(through + 1)) {
      const held = due.filter((lease) => lastLedgerIdOf(lease) <= file.last);
      if (held.length === 0) continue;
      const leases = await archive.pieces.whole(file).catch(() => []);
      const lines = new Map(leases.map((lease) => [lastLedgerIdOf(lease), lease.nonce]));
      if (!held.every((lease) => lines.get(lastLedgerIdOf(lease)) === lease.nonce)) continue;
      const asThere = new Set(leases.map(lineOf));
      // What was told since would be lost with the lease: it stays, as one that has not ended.
      return { file: file.name, held: held.map((lease) => ({ lease, isTold: asThere.has(lineOf(lease)) })) };
    }
    return undefined;
  }

  async #isOverdue({ nowMs, archive, listing }: Standing, oldest: LedgerEntry | undefined): Promise<boolean> {
    if (oldest === undefined) return false;
    const { retention, partialAfterMs = DAY_MS } = this.#options;
    const newest = listing.segments.at(-1);
    const writtenAtMs = newest === undefined ? 0 : (await archive.pieces.index(newest)).writtenAtMs;
    return nowMs - Math.max(oldest.leasedAtMs + (retention.ageMs ?? 0), writtenAtMs) > partialAfterMs;
  }

  async #writeAndCut(standing: Standing, due: readonly LedgerEntry[]): Promise<boolean> {
    const { archive, through } = standing;
    const range = { kind: "segment", first: through + 1, last: lastLedgerIdOf(due.at(-1) as LedgerEntry) } as const;
    const file = await archiveFileOf(range, due, standing.nowMs);
    await writeDurably(this.#options.archive.disk, archive.folder, file, due);
    // Whoever reads knows of the file before its leases leave the store.
    await archive.look();
    const held = due.map((lease) => ({ lease, isTold: true }));
    const isCut = await this.#cut(standing, held, file.name.name, file.bytes.length);
    if (!isCut) await this.#removeIfNeedless(standing, file.name, due);
    return isCut;
  }

  /** Answers whether it was we who did it. */
  async #cut(
    { storeId, through }: Standing,
    held: readonly { readonly lease: LedgerEntry; readonly isTold: boolean }[],
    file: string,
    bytes: number | null,
  ): Promise<boolean> {
    const last = lastLedgerIdOf(held.at(-1)?.lease as LedgerEntry);
    const ended = held.filter(({ lease, isTold }) => isTold && hasEnded(lease)).map(({ lease }) => lease);
    const { isCut, leaseCount } = await cutInSteps(
      this.#options.store,
      this.#namespace,
      { storeId, archivedThrough: through, through: last },
      ended,
    );
    const told = {
      namespace: this.#namespace,
      fromLedgerId: through + 1,
      throughLedgerId: last,
      leaseCount,
      file,
      bytes,
    };
    if (isCut) this.#options.log.info(told, "rotation");
    return isCut;
  }

  /**
   * Somebody else was faster. Our file may go when another one, which stays when its own writer asks the same, tells all that ours
   * does: of two, the one with the lesser name.
   */
  async #removeIfNeedless({ archive }: Standing, own: ArchiveName, leases: readonly LedgerEntry[]): Promise<void> {
    const { segments } = await archive.look();
    for (const other of segments) {
      if (other.name >= own.name || other.first > own.first || other.last < own.last) continue;
      const lines = new Set((await archive.pieces.whole(other)).map(lineOf));
      if (!leases.every((lease) => lines.has(lineOf(lease)))) continue;
      await this.#options.archive.disk.remove(join(archive.folder, own.name));
      return;
    }
  }
}
