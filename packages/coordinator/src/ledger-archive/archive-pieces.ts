/**
 * Reads pieces of archive files: an index, a block, the ids of a late file; and keeps those that were used last. Knows nothing of
 * which files there are.
 */
import { join } from "node:path";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { lastLedgerIdOf, leaseHoldsRun } from "../lease-identity.js";
import type { ArchiveDisk } from "./archive-disk.js";
import { damagedFile } from "./archive-fault.js";
import { BLOCK_LEASES, leasesInFile, spanOf } from "./archive-file.js";
import { type ArchiveIndex, indexIn, indexLengthAt } from "./archive-index.js";
import type { ArchiveName } from "./archive-name.js";
import { firstIndex } from "./first-index.js";
import { LeaseLines } from "./lease-lines.js";
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
  readonly #blocks = new RecentlyUsed<string, LeaseLines>(BLOCKS_KEPT);
  /** Of blocks that were read and not yet asked for: taken once, so that one that is damaged is not kept. */
  readonly #members = new RecentlyUsed<string, Buffer>(BLOCKS_KEPT);
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
    const [lines] = await this.#lines(file, at, at);
    const lease = lines?.at(lines.firstIndex((later) => lastLedgerIdOf(later) >= ledgerId));
    return lease !== undefined && leaseHoldsRun(lease, ledgerId) ? lease : undefined;
  }

  /** Up to `limit` leases, newest first, whose last run lies below a ledger id. */
  async below(file: ArchiveName, belowLedgerId: number, limit: number): Promise<readonly LedgerEntry[]> {
    const { blocks } = await this.index(file);
    const end = firstIndex(blocks.length, (index) => (blocks[index]?.lastLedgerId ?? 0) >= belowLedgerId);
    const found: LedgerEntry[] = [];
    for (let to = Math.min(end, blocks.length - 1); to >= 0 && found.length < limit; ) {
      const from = Math.max(to - blocksOf(limit - found.length) + 1, 0);
      for (const lines of (await this.#lines(file, from, to)).toReversed()) {
        const below = lines.firstIndex((lease) => lastLedgerIdOf(lease) >= belowLedgerId);
        for (let line = below - 1; line >= 0 && found.length < limit; line--) found.push(lines.at(line) as LedgerEntry);
      }
      to = from - 1;
    }
    return found;
  }

  /** Up to `limit` leases, oldest first, whose last run lies above a ledger id. */
  async after(file: ArchiveName, afterLedgerId: number, limit: number): Promise<readonly LedgerEntry[]> {
    const { blocks } = await this.index(file);
    const begin = firstIndex(blocks.length, (index) => (blocks[index]?.lastLedgerId ?? 0) > afterLedgerId);
    const found: LedgerEntry[] = [];
    for (let from = begin; from < blocks.length && found.length < limit; ) {
      const to = Math.min(from + blocksOf(limit - found.length), blocks.length) - 1;
      for (const lines of await this.#lines(file, from, to)) {
        let line = lines.firstIndex((lease) => lastLedgerIdOf(lease) > afterLedgerId);
        for (; line < lines.length && found.length < limit; line++) found.push(lines.at(line) as LedgerEntry);
      }
      from = to + 1;
    }
    return found;
  }

  /** The oldest lease granted at a time or later. */
  async firstSince(file: ArchiveName, timeMs: number): Promise<LedgerEntry | undefined> {
    const { blocks } = await this.index(file);
    const at = blocks.findIndex(({ lastLeasedAtMs }) => lastLeasedAtMs >= timeMs);
    if (at < 0) return undefined;
    const [lines] = await this.#lines(file, at, at);
    return lines?.at(lines.firstIndex((lease) => lease.leasedAtMs >= timeMs));
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

  /** The leases of some blocks that follow each other, by block. */
  async #lines(file: ArchiveName, from: number, to: number): Promise<readonly LeaseLines[]> {
    let reading: Promise<ReadonlyMap<number, Buffer>> | undefined;
    const memberOf = async (block: number) => {
      const readBefore = this.#members.take(keyOf(file, block));
      if (readBefore !== undefined) return await readBefore;
      reading ??= this.#readMembers(file, from, to);
      return (await reading).get(block) as Buffer;
    };
    const blocks = Array.from({ length: to - from + 1 }, (_, index) =>
      this.#blocks.get(keyOf(file, from + index), async () => new LeaseLines(file.name, await memberOf(from + index))),
    );
    return await Promise.all(blocks);
  }

  /** The blocks as they stand in the file. One more on each side is read with them, and kept: whoever looks at a lease looks around it. */
  async #readMembers(file: ArchiveName, from: number, to: number): Promise<ReadonlyMap<number, Buffer>> {
    const index = await this.index(file);
    const [first, last] = [Math.max(from - 1, 0), Math.min(to + 1, index.blocks.length - 1)];
    const [begin, end] = [spanOf(index, first)[0], spanOf(index, last)[1]];
    const bytes = await this.#disk.readPart(join(this.#folder, file.name), begin, end - begin);
    const members = new Map<number, Buffer>();
    for (let at = first; at <= last; at++) {
      const [memberBegin, memberEnd] = spanOf(index, at);
      const member = bytes.subarray(memberBegin - begin, memberEnd - begin);
      members.set(at, member);
      if (at < from || at > to) this.#members.put(keyOf(file, at), member);
    }
    return members;
  }
}

function keyOf({ name }: ArchiveName, block: number): string {
  return `${name}#${block}`;
}

/** How many blocks hold that many leases. */
function blocksOf(leaseCount: number): number {
  return Math.ceil(leaseCount / BLOCK_LEASES);
}
