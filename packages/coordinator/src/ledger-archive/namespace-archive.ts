/**
 * The archived part of one namespace's ledger, read as the ledger is: late files over segments, and where several hold a lease,
 * its later account. What can't be told for sure is an error, never an answer.
 *
 * `through` is what the store says to have handed over: up to there every ledger id must be covered by a segment. Files may reach
 * farther: a store that was restored has forgotten leases that stand here.
 */
import { join } from "node:path";
import { LEASE_RUN_COUNT_MAX, type LedgerEntry } from "@callnumber/protocol/wire";
import { lastLedgerIdOf, leaseHoldsRun } from "../lease-identity.js";
import { type ArchiveDisk, isGone } from "./archive-disk.js";
import { archiveUnavailable } from "./archive-fault.js";
import { ArchiveListing } from "./archive-listing.js";
import type { ArchiveName } from "./archive-name.js";
import { ArchivePieces } from "./archive-pieces.js";
import { firstIndex } from "./first-index.js";
import { hasEnded, laterOf } from "./later-progress.js";

/** How old a listing may be where nothing speaks against it. */
const LISTING_AGE_MAX_MS = 60_000;
/** A file that a listing names may be gone when it is opened: another coordinator has taken it over. */
const TRIES = 3;

interface Attempt {
  readonly listing: ArchiveListing;
  /** Whether the folder was looked at after the question came; else what is missing may be there by now. */
  readonly isFresh: boolean;
}

/** The answer stands only when the folder holds nothing newer. */
const LOOK_AGAIN = Symbol("look again");

export class NamespaceArchive {
  /** Where its files are. */
  readonly folder: string;
  readonly root: string;
  readonly #disk: ArchiveDisk;
  /** For whoever knows which file. */
  readonly pieces: ArchivePieces;
  #listing: { readonly listing: ArchiveListing; readonly readAtMs: number } | undefined;

  constructor(disk: ArchiveDisk, root: string, namespace: string, storeUuid: string) {
    this.#disk = disk;
    this.root = root;
    this.folder = join(root, namespace, storeUuid);
    this.pieces = new ArchivePieces(disk, this.folder);
  }

  /**
   * The lease that holds a run.
   * @throws CoordinatorError `ledger_archive_unavailable` when a file that may hold it is missing or can't be read. So do all below.
   */
  async find(ledgerId: number, through: number): Promise<LedgerEntry | undefined> {
    return await this.#asked(async ({ listing, isFresh }) => {
      const segments = listing.covering(ledgerId);
      const isMissing = segments.length === 0 && ledgerId >= 1 && ledgerId <= through;
      if (isMissing && !isFresh) return LOOK_AGAIN;
      if (isMissing) throw this.#missing(ledgerId);
      const found = await Promise.all(segments.map((file) => this.pieces.leaseHolding(file, ledgerId)));
      const accounts = found.filter((lease) => lease !== undefined);
      const known = accounts[0] && lastLedgerIdOf(accounts[0]);
      const late = await this.#late(listing, known ?? ledgerId, known ?? ledgerId + LEASE_RUN_COUNT_MAX - 1);
      accounts.push(...late.filter((lease) => leaseHoldsRun(lease, ledgerId)));
      const [first, ...others] = accounts;
      if (first === undefined) return isFresh || segments.length === 0 ? undefined : LOOK_AGAIN;
      const latest = others.reduce(laterOf, first);
      return isFresh || hasEnded(latest) ? latest : LOOK_AGAIN;
    });
  }

  /** Up to `limit` leases, newest first, whose last run has a ledger id below `belowLedgerId`. */
  async below(belowLedgerId: number, limit: number, through: number): Promise<readonly LedgerEntry[]> {
    return await this.#asked(async (attempt) => {
      const { listing } = attempt;
      const newestFirst = segmentsBelow(listing, belowLedgerId);
      const read = (file: ArchiveName) => this.pieces.below(file, belowLedgerId, limit);
      const page = await pageOf(newestFirst, limit, read, (file, id) => file.last < id, -1);
      const oldest = page.length < limit ? 1 : lastLedgerIdOf(page.at(-1) as LedgerEntry);
      const late = await this.#late(listing, oldest, belowLedgerId - 1);
      const latest = mergedPage(page, late, -1).slice(0, limit);
      return this.#proven(attempt, latest, oldest, Math.min(belowLedgerId - 1, through));
    });
  }

  /** Up to `limit` leases, oldest first, whose last run has a ledger id above `afterLedgerId`. */
  async after(afterLedgerId: number, limit: number, through: number): Promise<readonly LedgerEntry[]> {
    return await this.#asked(async (attempt) => {
      const segments = segmentsAfter(attempt.listing, afterLedgerId);
      const read = (file: ArchiveName) => this.pieces.after(file, afterLedgerId, limit);
      const page = await pageOf(segments, limit, read, (file, id) => file.first > id, 1);
      const newest = page.length < limit ? Number.POSITIVE_INFINITY : lastLedgerIdOf(page.at(-1) as LedgerEntry);
      const late = await this.#late(attempt.listing, afterLedgerId + 1, newest);
      const latest = mergedPage(page, late, 1).slice(0, limit);
      return this.#proven(attempt, latest, afterLedgerId + 1, Math.min(newest, through));
    });
  }

  /** The oldest lease granted at a time or later: times rise with ledger ids. */
  async firstSince(timeMs: number, through: number): Promise<LedgerEntry | undefined> {
    return await this.#asked(async (attempt) => {
      // By their ends: what is true of the last lease of one is true of the last leases of all behind it.
      const segments = attempt.listing.segmentsByEnd;
      let [low, high] = [0, segments.length];
      while (low < high) {
        const middle = (low + high) >>> 1;
        const { blocks } = await this.pieces.index(segments[middle] as ArchiveName);
        if ((blocks.at(-1)?.lastLeasedAtMs ?? 0) >= timeMs) high = middle;
        else low = middle + 1;
      }
      let page: readonly LedgerEntry[] = [];
      for (const file of segments.slice(low)) {
        if (page[0] !== undefined && file.first > lastLedgerIdOf(page[0])) continue;
        const lease = await this.pieces.firstSince(file, timeMs);
        if (lease !== undefined) page = mergedPage(page, [lease], 1).slice(0, 1);
      }
      const [found] = page;
      const before = (segments[low - 1]?.last ?? 0) + 1;
      const foundId = found && lastLedgerIdOf(found);
      const upTo = Math.min(foundId ?? through, through);
      const late = foundId === undefined ? [] : await this.#late(attempt.listing, foundId, foundId);
      const proven = this.#proven(attempt, mergedPage(page, late, 1), before, upTo);
      return proven === LOOK_AGAIN ? LOOK_AGAIN : proven[0];
    });
  }

  /** The greatest ledger id that files cover: beyond what the store says, where the store was restored. */
  async reach(): Promise<number> {
    return await this.#asked(async ({ listing }) => listing.last);
  }

  /** The folder as it is now. @throws CoordinatorError when no file covers what was handed over last: it is another folder. */
  async mustCover(through: number): Promise<ArchiveListing> {
    const listing = await this.look();
    if (through > 0 && listing.covering(through).length === 0) throw this.#missing(through);
    return listing;
  }

  /** The folder as it is now. */
  async look(): Promise<ArchiveListing> {
    const readAtMs = performance.now();
    let names: readonly string[] | undefined;
    try {
      names = await this.#disk.list(this.folder);
      if (names === undefined && (await this.#disk.list(this.root)) === undefined) {
        throw archiveUnavailable(`the ledger folder ${this.root} is not there. Mount or make it, or say the right one`);
      }
    } catch (error) {
      throw this.#unreadable(error);
    }
    const listing = new ArchiveListing(names ?? []);
    this.#listing = { listing, readAtMs };
    return listing;
  }

  /** Asks with the listing that is known, and with a fresh one when that is not enough. */
  async #asked<T>(ask: (attempt: Attempt) => Promise<T | typeof LOOK_AGAIN>): Promise<T> {
    const known = this.#listing;
    const isRecent = known !== undefined && performance.now() - known.readAtMs < LISTING_AGE_MAX_MS;
    let attempt: Attempt = isRecent
      ? { listing: known.listing, isFresh: false }
      : { listing: await this.look(), isFresh: true };
    for (let tries = 1; ; tries++) {
      try {
        const answer = await ask(attempt);
        if (answer !== LOOK_AGAIN) return answer;
      } catch (error) {
        if (!isGone(error) || tries >= TRIES) throw this.#unreadable(error);
      }
      attempt = { listing: await this.look(), isFresh: true };
    }
  }

  /** The page, if the segments between two ids are all there, and nothing newer can be known of its leases. */
  #proven(
    { listing, isFresh }: Attempt,
    page: readonly LedgerEntry[],
    first: number,
    last: number,
  ): readonly LedgerEntry[] | typeof LOOK_AGAIN {
    const gap = listing.gapWithin(first, last);
    if (gap !== undefined && isFresh) throw this.#missing(gap);
    if (gap !== undefined) return LOOK_AGAIN;
    return isFresh || page.every(hasEnded) ? page : LOOK_AGAIN;
  }

  /**
   * What late files say of leases whose last runs have ledger ids from `first` to `last`, oldest first. A lease that no segment holds
   * is told, too: it left the store for a file, so it is never one that was not leased.
   */
  async #late({ late }: ArchiveListing, first: number, last: number): Promise<readonly LedgerEntry[]> {
    let told: readonly LedgerEntry[] = [];
    for (const file of late) {
      if (file.last < first || file.first > last) continue;
      const ids = await this.pieces.idsIn(file);
      const begin = firstIndex(ids.length, (at) => (ids[at] as number) >= first);
      const end = firstIndex(ids.length, (at) => (ids[at] as number) > last);
      const found: LedgerEntry[] = [];
      for (const id of ids.subarray(begin, end)) {
        const lease = await this.pieces.leaseHolding(file, id);
        if (lease !== undefined) found.push(lease);
      }
      told = mergedPage(told, found, 1);
    }
    return told;
  }

  #missing(ledgerId: number): Error {
    return archiveUnavailable(
      `no archive file in ${this.folder} covers ledger id ${ledgerId}, which the store has handed over. Put the folder back as it was ` +
        "(a mount that is missing, another --ledger-folder, a file removed): leases that stand there can't be told meanwhile",
    );
  }

  #unreadable(error: unknown): unknown {
    const isOfSystem = typeof (error as NodeJS.ErrnoException).syscall === "string";
    if (!isOfSystem) return error;
    return archiveUnavailable(`the ledger folder ${this.folder} can't be read: ${(error as Error).message}`, error);
  }
}

/** Those that may hold a lease below a ledger id, that which ends last first. */
function* segmentsBelow({ segmentsByEnd }: ArchiveListing, belowLedgerId: number): Iterable<ArchiveName> {
  for (let at = segmentsByEnd.length - 1; at >= 0; at--) {
    const segment = segmentsByEnd[at] as ArchiveName;
    if (segment.first < belowLedgerId) yield segment;
  }
}

/** Those that may hold a lease above a ledger id, that which begins first first. */
function* segmentsAfter({ segments }: ArchiveListing, afterLedgerId: number): Iterable<ArchiveName> {
  for (const segment of segments) {
    if (segment.last > afterLedgerId) yield segment;
  }
}

/** The first `limit` leases, in their order, of files that may overlap; stops where no later file can hold one of them. */
async function pageOf(
  files: Iterable<ArchiveName>,
  limit: number,
  read: (file: ArchiveName) => Promise<readonly LedgerEntry[]>,
  isBeyond: (file: ArchiveName, ledgerId: number) => boolean,
  direction: 1 | -1,
): Promise<readonly LedgerEntry[]> {
  let page: readonly LedgerEntry[] = [];
  for (const file of files) {
    const last = page[limit - 1];
    if (last !== undefined && isBeyond(file, lastLedgerIdOf(last))) break;
    page = mergedPage(page, await read(file), direction).slice(0, limit);
  }
  return page;
}

/** Both, each lease once, in its later account. Both are in the direction's order: 1 oldest first, -1 newest first. */
export function mergedPage(
  one: readonly LedgerEntry[],
  other: readonly LedgerEntry[],
  direction: 1 | -1,
): readonly LedgerEntry[] {
  if (one.length === 0) return other;
  if (other.length === 0) return one;
  const byId = new Map(one.map((lease) => [lastLedgerIdOf(lease), lease]));
  for (const lease of other) {
    const known = byId.get(lastLedgerIdOf(lease));
    byId.set(lastLedgerIdOf(lease), known === undefined ? lease : laterOf(known, lease));
  }
  return [...byId].sort(([a], [b]) => direction * (a - b)).map(([, lease]) => lease);
}
