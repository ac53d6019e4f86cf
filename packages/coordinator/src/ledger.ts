/**
 * The whole ledger of a namespace: what stands in the store, and what was archived, read as one, each lease once. Where a lease may
 * stand in an archive that can't be read, it answers with an error, never as if the lease had not been.
 * Knows the store and the archive as ports.
 */
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "./lease-identity.js";
import { archiveUnavailable } from "./ledger-archive/archive-fault.js";
import { hasEnded, laterOf } from "./ledger-archive/later-progress.js";
import type { LedgerArchive } from "./ledger-archive/ledger-archive.js";
import { mergedPage, type NamespaceArchive } from "./ledger-archive/namespace-archive.js";
import type { RecordedLedger } from "./ledger-reader.js";
import type { ArchivedPart, NamespaceRecord, Store } from "./store.js";

export class Ledger implements RecordedLedger {
  readonly #store: Store;
  readonly #archive: LedgerArchive | undefined;
  /** How far files reached when it was asked last: a hint where to look first, no more. */
  readonly #reaches = new Map<string, number>();

  /** @param archive undefined: nothing was ever archived, or this coordinator was not told where. */
  constructor(store: Store, archive: LedgerArchive | undefined) {
    this.#store = store;
    this.#archive = archive;
  }

  readNamespace(namespace: string): Promise<NamespaceRecord> {
    return this.#store.readNamespace(namespace);
  }

  async findLease(namespace: string, ledgerId: number): Promise<LedgerEntry | undefined> {
    const [hot, { archive, through }] = await this.#andArchived(namespace, this.#store.findLease(namespace, ledgerId));
    if (archive === undefined) {
      if (hot === undefined && ledgerId >= 1 && ledgerId <= through) throw noFolder(namespace, through);
      return hot;
    }
    if (hot !== undefined && hasEnded(hot)) return hot;
    if (hot === undefined) {
      const found = await archive.find(ledgerId, through);
      if (found !== undefined) return found;
      // Cut between the two questions, it would be taken for one that never was.
      const after = await this.#store.readArchived(namespace);
      return after.through === through ? undefined : await archive.find(ledgerId, after.through);
    }
    // A store that was restored knows an older account; that nobody can tell a later one is no reason to tell none.
    const archived = await archive.find(ledgerId, through).catch(() => undefined);
    return archived === undefined ? hot : laterOf(hot, archived);
  }

  async listLeases(
    namespace: string,
    page: { readonly belowLedgerId: number; readonly limit: number },
  ): Promise<readonly LedgerEntry[]> {
    const { belowLedgerId, limit } = page;
    const [hot, { archive, through }] = await this.#andArchived(namespace, this.#store.listLeases(namespace, page));
    const oldest = hot[limit - 1];
    const reach = await reachOf(archive, through);
    if (reach === 0 || (oldest !== undefined && lastLedgerIdOf(oldest) > reach)) return hot;
    if (archive === undefined) throw noFolder(namespace, through);
    return mergedPage(hot, await archive.below(belowLedgerId, limit, through), -1).slice(0, limit);
  }

  async firstLeaseSince(namespace: string, timeMs: number): Promise<LedgerEntry | undefined> {
    const [hot, { archive, through }] = await this.#andArchived(
      namespace,
      this.#store.firstLeaseSince(namespace, timeMs),
    );
    const reach = await reachOf(archive, through);
    if (reach === 0) return hot;
    const [behind] = await this.#store.exportLeases(namespace, { afterLedgerId: reach, limit: 1 });
    // Times rise with ledger ids: all that is archived is older.
    if (behind !== undefined && behind.leasedAtMs < timeMs) return hot;
    if (archive === undefined) throw noFolder(namespace, through);
    const archived = await archive.firstSince(timeMs, through);
    return mergedPage(asPage(hot), asPage(archived), 1)[0];
  }

  async exportLeases(
    namespace: string,
    page: { readonly afterLedgerId: number; readonly limit: number },
  ): Promise<readonly LedgerEntry[]> {
    const { afterLedgerId, limit } = page;
    const archived =
      afterLedgerId < (this.#reaches.get(namespace) ?? 0) ? await this.#pageOfFiles(namespace, page) : undefined;
    if (archived !== undefined) return archived;
    const hot = await this.#store.exportLeases(namespace, page);
    // Only now: an export is kept, and must not lack what another coordinator moved in between.
    const { archive, through } = await this.#archived(namespace);
    const reach = await reachOf(archive, through);
    this.#reaches.set(namespace, reach);
    if (afterLedgerId >= reach) return hot;
    if (archive === undefined) throw noFolder(namespace, through);
    return mergedPage(hot, await archive.after(afterLedgerId, limit, through), 1).slice(0, limit);
  }

  /** The page of an export when files hold all of it, and nothing in the store belongs into it; undefined when that is not so. */
  async #pageOfFiles(
    namespace: string,
    { afterLedgerId, limit }: { readonly afterLedgerId: number; readonly limit: number },
  ): Promise<readonly LedgerEntry[] | undefined> {
    const [oldest] = await this.#store.exportLeases(namespace, { afterLedgerId, limit: 1 });
    // Only now, as above.
    const { archive, through } = await this.#archived(namespace);
    const page = (await archive?.after(afterLedgerId, limit, through)) ?? [];
    const newest = page[limit - 1];
    if (newest === undefined) return undefined;
    return oldest === undefined || lastLedgerIdOf(oldest) > lastLedgerIdOf(newest) ? page : undefined;
  }

  /**
   * Asked behind it, in one round trip, for those who look at the ledger: a store answers in order, so that how much is archived is not
   * older than what was read, and no lease is cut in between. But for the first reading after a Redis server forgot its scripts: a lease
   * that another coordinator moves in that moment is missing in that one answer; `findLease` asks again. What this coordinator itself cuts
   * stands in its listing of the archive before it is cut.
   */
  async #andArchived<T>(namespace: string, reading: Promise<T>) {
    return await Promise.all([reading, this.#archived(namespace)]);
  }

  async #archived(namespace: string): Promise<ArchivedPart & { readonly archive: NamespaceArchive | undefined }> {
    const part = await this.#store.readArchived(namespace);
    const { storeId } = part;
    return { ...part, archive: storeId === undefined ? undefined : this.#archive?.of(namespace, storeId) };
  }
}

function asPage(lease: LedgerEntry | undefined): readonly LedgerEntry[] {
  return lease === undefined ? [] : [lease];
}

/**
 * The greatest ledger id that may stand in files. Beyond what was handed over only a restored store has some: a folder that can't be
 * read is none the less passed over there, as the newest leases, and how the namespace does, are asked for most then.
 */
async function reachOf(archive: NamespaceArchive | undefined, through: number): Promise<number> {
  return Math.max(through, (await archive?.reach().catch(() => 0)) ?? 0);
}

function noFolder(namespace: string, through: number): Error {
  return archiveUnavailable(
    `the ledger of namespace "${namespace}" is archived up to ledger id ${through}, and this coordinator was not told where: ` +
      'start it with "--ledger-folder DIR"',
  );
}
