/**
 * Reads pieces of archive files: an index, a block, the ids of a late file; and keeps those that were used last. Knows nothing of
 * which files there are.
 */
import { join } from "node:path";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { lastLedgerIdOf, leaseHoldsRun } from "../lease-identity.js";
import type { ArchiveDisk } from "./archive-disk.js";
import { damagedFile } from "./archive-fault.js";
import { leaseIn, leasesInFile, linesInBlock, spanOf } from "./archive-file.js";
import { type ArchiveIndex, indexIn, indexLengthAt } from "./archive-index.js";
import type { ArchiveName } from "./archive-name.js";
import { RecentlyUsed } from "./recently-used.js";

/** Those of ten million leases, in some ten megabytes. */
const INDEXES_KEPT = 1_500;
const BLOCKS_KEPT = 64;
/** 64 KiB each. */
const LATE_FILES_KEPT = 128;
/** In one read, for a file that is full of leases. */
const INDEX_BYTES = 8_192;

export class ArchivePieces {
  readonly #disk: ArchiveDisk;
  readonly #folder: string;
  readonly #indexes = new RecentlyUsed<string, ArchiveIndex>(INDEXES_KEPT);
  readonly #blocks = new RecentlyUsed<string, readonly string[]>(BLOCKS_KEPT);
  readonly #lateIds = new RecentlyUsed<string, Float64Array>(LATE_FILES_KEPT);

  constructor(disk: ArchiveDisk, folder: string) {
    this.#disk = disk;
    this.#folder = folder;
  }

  /** The lease that holds a run. */
  async leaseHolding(file: ArchiveName, ledgerId: number): Promise<LedgerEntry | undefined> {
    const { blocks } = await this.index(file);
    const at = firstIndex(blocks.length, (index) => (blocks[index]?.lastLedgerId ?? 0) >= ledgerId);
    if (at === blocks.length) return undefined;
    const lines = await this.#lines(file, at);
    const leases = new Map<number, LedgerEntry>();
    const leaseAt = (index: number) => {
      const lease = leases.get(index) ?? leaseIn(file.name, lines[index] as string);
      leases.set(index, lease);
      return lease;
    };
    const place = firstIndex(lines.length, (index) => lastLedgerIdOf(leaseAt(index)) >= ledgerId);
    if (place === lines.length) return undefined;
    const lease = leaseAt(place);
    return leaseHoldsRun(lease, ledgerId) ? lease : undefined;
  }

  /** Up to `limit` leases, newest first, whose last run lies below a ledger id. */
  async below(file: ArchiveName, belowLedgerId: number, limit: number): Promise<readonly LedgerEntry[]> {
    const { blocks } = await this.index(file);
    const end = firstIndex(blocks.length, (index) => (blocks[index]?.lastLedgerId ?? 0) >= belowLedgerId);
    const found: LedgerEntry[] = [];
    for (let at = Math.min(end, blocks.length - 1); at >= 0 && found.length < limit; at--) {
      const lines = await this.#lines(file, at);
      for (let line = lines.length - 1; line >= 0 && found.length < limit; line--) {
        const lease = leaseIn(file.name, lines[line] as string);
        if (lastLedgerIdOf(lease) < belowLedgerId) found.push(lease);
      }
    }
    return found;
  }

  /** Up to `limit` leases, oldest first, whose last run lies above a ledger id. */
  async after(file: ArchiveName, afterLedgerId: number, limit: number): Promise<readonly LedgerEntry[]> {
    const { blocks } = await this.index(file);
    const begin = firstIndex(blocks.length, (index) => (blocks[index]?.lastLedgerId ?? 0) > afterLedgerId);
    const found: LedgerEntry[] = [];
    for (let at = begin; at < blocks.length && found.length < limit; at++) {
      for (const line of await this.#lines(file, at)) {
        const lease = leaseIn(file.name, line);
        if (lastLedgerIdOf(lease) > afterLedgerId) found.push(lease);
        if (found.length === limit) break;
      }
    }
    return found;
  }

  /** The oldest lease granted at a time or later. */
  async firstSince(file: ArchiveName, timeMs: number): Promise<LedgerEntry | undefined> {
    const { blocks } = await this.index(file);
    const at = blocks.findIndex(({ lastLeasedAtMs }) => lastLeasedAtMs >= timeMs);
    if (at < 0) return undefined;
    const lines = await this.#lines(file, at);
    return lines.map((line) => leaseIn(file.name, line)).find((lease) => lease.leasedAtMs >= timeMs);
  }

  /** Ledger ids of the last runs of all leases in a late file, rising. */
  async idsIn(file: ArchiveName): Promise<Float64Array> {
    return await this.#lateIds.get(file.name, async () => {
      return Float64Array.from(await this.whole(file), lastLedgerIdOf);
    });
  }

  /** All of a file, checked. */
  async whole(file: ArchiveName): Promise<readonly LedgerEntry[]> {
    return await leasesInFile(file, await this.#disk.readWhole(join(this.#folder, file.name)));
  }

  /** @throws CoordinatorError `ledger_archive_unavailable` for a damaged one; the system's error for one that can't be read. */
  async index(file: ArchiveName): Promise<ArchiveIndex> {
    return await this.#indexes.get(file.name, () => this.#readIndex(file));
  }

  async #readIndex({ name }: ArchiveName): Promise<ArchiveIndex> {
    const path = join(this.#folder, name);
    let { bytes, fileBytes } = await this.#disk.readEnd(path, INDEX_BYTES);
    const length = indexLengthAt(bytes);
    if (length !== undefined && length > bytes.length) {
      ({ bytes, fileBytes } = await this.#disk.readEnd(path, length));
    }
    const index = length === undefined ? undefined : indexIn(bytes.subarray(-length));
    if (index === undefined || length === undefined || index.end !== fileBytes - length) {
      throw damagedFile(name, "it has no index");
    }
    return index;
  }

  async #lines(file: ArchiveName, at: number): Promise<readonly string[]> {
    return await this.#blocks.get(`${file.name}#${at}`, async () => {
      const [begin, end] = spanOf(await this.index(file), at);
      const path = join(this.#folder, file.name);
      return linesInBlock(file.name, await this.#disk.readPart(path, begin, end - begin));
    });
  }
}

/** Index of the first item that holds, where all later ones hold too; the length when none does. */
export function firstIndex(length: number, holds: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
