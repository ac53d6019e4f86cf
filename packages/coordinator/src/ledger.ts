/**
 * The whole ledger of a namespace: what stands in the store, and what was archived, read as one, each lease once. Where a lease may
 * stand in an archive that can't be read, it answers with an error, never as if the lease had not been.
 * Knows the store and the archive as ports.
 */
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "./lease-copy.js";
import { archiveUnavailable } from "./ledger-archive/archive-fault.js";
import { hasEnded, laterOf } from "./ledger-archive/later-progress.js";
import type { LedgerArchive } from "./ledger-archive/ledger-archive.js";
import { mergedPage, type NamespaceArchive } from "./ledger-archive/namespace-archive.js";
import type { RecordedLedger } from "./ledger-reader.js";
import type { ArchivedPart, LeaseCopy, NamespaceRecord, Store } from "./store.js";

export class Ledger implements RecordedLedger {
  readonly #store: Store;
  readonly #archive: LedgerArchive | undefined;

  /** @param archive undefined: nothing was ever archived, or this coordinator was not told where. */
  constructor(store: Store, archive: LedgerArchive | undefined) {
    this.#store = store;
    this.#archive = archive;
  }

  readNamespace(namespace: string): Promise<NamespaceRecord> {
    return this.#store.readNamespace(namespace);
  }

  async findLease(namespace: string, ledgerId: number): Promise<LedgerEntry | undefined> {
    if (this.#archive === undefined) {
      const hot = await this.#store.findLease(namespace, ledgerId);
      return hot ?? (await this.#notArchived(namespace, ledgerId));
    }
    // Together: one round trip to a store that is elsewhere.
    const [hot, { archive, through }] = await Promise.all([
      this.#store.findLease(namespace, ledgerId),
      this.#archived(namespace),
    ]);
    if (archive === undefined || (hot !== undefined && hasEnded({ entry: hot }))) return hot;
    if (hot === undefined) {
      const found = await archive.find(ledgerId, through);
      if (found !== undefined) return found.entry;
      // Cut between the two questions, it would be taken for one that never was.
      const after = await this.#store.readArchived(namespace);
      return after.through === through ? undefined : (await archive.find(ledgerId, after.through))?.entry;
    }
    // A store that was restored knows an older account; that nobody can tell a later one is no reason to tell none.
    const archived = await archive.find(ledgerId, through).catch(() => undefined);
    return archived === undefined ? hot : laterOf({ entry: hot }, { entry: archived.entry }).entry;
  }

  async listLeases(
    namespace: string,
    page: { readonly belowLedgerId: number; readonly limit: number },
  ): Promise<readonly LedgerEntry[]> {
    const { belowLedgerId, limit } = page;
    const [entries, { archive, through }] = await this.#thenArchived(
      namespace,
      this.#store.listLeases(namespace, page),
    );
    const oldest = entries[limit - 1];
    const reach = await reachOf(archive, through);
    if (reach === 0 || (oldest !== undefined && lastLedgerIdOf(oldest) > reach)) return entries;
    if (archive === undefined) throw noFolder(namespace, through);
    const hot = entries.map((entry) => ({ entry }));
    const archived = (await archive.below(belowLedgerId, limit, through)).map(({ entry }) => ({ entry }));
    return mergedPage(hot, archived, -1)
      .slice(0, limit)
      .map(({ entry }) => entry);
  }

  async firstLeaseSince(namespace: string, timeMs: number): Promise<LedgerEntry | undefined> {
    const [hot, { archive, through }] = await this.#thenArchived(
      namespace,
      this.#store.firstLeaseSince(namespace, timeMs),
    );
    const reach = await reachOf(archive, through);
    if (reach === 0) return hot;
    const [behind] = await this.#store.exportLeases(namespace, { afterLedgerId: reach, limit: 1 });
    // Times rise with ledger ids: all that is archived is older.
    if (behind !== undefined && behind.entry.leasedAtMs < timeMs) return hot;
    if (archive === undefined) throw noFolder(namespace, through);
    const archived = await archive.firstSince(timeMs, through);
    const [first] = mergedPage(asPage(hot), asPage(archived?.entry), 1);
    return first?.entry;
  }

  async exportLeases(
    namespace: string,
    page: { readonly afterLedgerId: number; readonly limit: number },
  ): Promise<readonly LeaseCopy[]> {
    const { afterLedgerId, limit } = page;
    const [hot, { archive, through }] = await this.#thenArchived(namespace, this.#store.exportLeases(namespace, page));
    const reach = await reachOf(archive, through);
    if (afterLedgerId >= reach) return hot;
    if (archive === undefined) throw noFolder(namespace, through);
    return mergedPage(hot, await archive.after(afterLedgerId, limit, through), 1).slice(0, limit);
  }

  /** How much is archived is not older than what was read: no lease is cut in between. */
  async #thenArchived<T>(namespace: string, reading: Promise<T>) {
    return [await reading, await this.#archived(namespace)] as const;
  }

  /** @throws CoordinatorError when it may stand in an archive that this coordinator was not told of. */
  async #notArchived(namespace: string, ledgerId: number): Promise<undefined> {
    const { through } = await this.#store.readArchived(namespace);
    if (ledgerId >= 1 && ledgerId <= through) throw noFolder(namespace, through);
    return undefined;
  }

  async #archived(namespace: string): Promise<ArchivedPart & { readonly archive: NamespaceArchive | undefined }> {
    const part = await this.#store.readArchived(namespace);
    const { storeId } = part;
    return { ...part, archive: storeId === undefined ? undefined : this.#archive?.of(namespace, storeId) };
  }
}

function asPage(entry: LedgerEntry | undefined): readonly { readonly entry: LedgerEntry }[] {
  return entry === undefined ? [] : [{ entry }];
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
