/**
 * State in Redis: a record, a ledger stream, holders and reports for each namespace, in one hash slot.
 * Everything that changes is one script (lua/); this file carries its arguments and answers.
 */
import type { LedgerEntry } from "@callnumber/protocol/wire";
import type { GrantedRuns, LeaseCommand, NamespaceRecord, ReportCommand, Store } from "../store.js";
import { holderJsonOf, holdsRun } from "./ledger-entry.js";
import { keptRecord, newRecord } from "./namespace-record.js";
import { type RedisAddress, RedisConnection } from "./redis-connection.js";
import {
  entryOf,
  type KeptLease,
  keysOf,
  leaseOf,
  type NamespaceKeys,
  reportFieldOf,
  reportIn,
  type StreamEntry,
  stateNumber,
} from "./redis-ledger.js";

export interface RedisStoreOptions extends RedisAddress {
  /** Stands in front of every key. Without braces, which belong to the hash slot. */
  readonly keyPrefix: string;
}

export class RedisStore implements Store {
  readonly kind = "redis";
  readonly #connection: RedisConnection;
  readonly #keyPrefix: string;

  private constructor(connection: RedisConnection, keyPrefix: string) {
    this.#connection = connection;
    this.#keyPrefix = keyPrefix;
  }

  /** @throws CoordinatorError `store_unavailable`. */
  static async open({ keyPrefix, ...address }: RedisStoreOptions): Promise<RedisStore> {
    return new RedisStore(await RedisConnection.open(address), keyPrefix);
  }

  async createNamespace(namespace: string, storeId: string): Promise<NamespaceRecord> {
    const record = newRecord(namespace, storeId);
    const { record: recordKey, ledger } = this.#keys(namespace);
    // The name first: a name without a record is harmless, a record without its name would not be listed.
    await this.#connection.ask({ namespace }, (redis) => redis.hsetnx(this.#namesKey(), namespace, ""));
    const parameters = [namespace, storeId, record.highWaterMark, record.changedAtMs];
    await this.#connection.run("init", [recordKey, ledger], parameters, { namespace });
    return record;
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    const answer = await this.#connection.run("read", [this.#keys(namespace).record], [namespace], { namespace });
    const [storeId, ...numbers] = answer as [string, ...string[]];
    const [version, highWaterMark, changedAtMs] = numbers.map(Number) as [number, number, number];
    return keptRecord({ namespace, storeId, version, highWaterMark, changedAtMs });
  }

  async listNamespaces(): Promise<readonly string[]> {
    const names = await this.#connection.ask({ namespace: "" }, (redis) => redis.hkeys(this.#namesKey()));
    return names.sort();
  }

  async lease(namespace: string, command: LeaseCommand): Promise<GrantedRuns> {
    const { runCount, floor, nonce } = command;
    const { record, ledger, holders } = this.#keys(namespace);
    const parameters = [namespace, runCount, floor, nonce, holderJsonOf(command)];
    const answer = await this.#connection.run("lease", [record, ledger, holders], parameters, { namespace, floor });
    const [storeId, ...numbers] = answer as [string, ...string[]];
    const [version, firstRun, granted, leasedAtMs] = numbers.map(Number) as [number, number, number, number];
    return { storeId, version, firstRun, runCount: granted, leasedAtMs };
  }

  async report(namespace: string, ledgerId: number, { nonce, lastSequence, state }: ReportCommand): Promise<void> {
    const { record, ledger, reports } = this.#keys(namespace);
    const used = lastSequence === null ? 0 : lastSequence + 1;
    const parameters = [namespace, ledgerId, nonce, used, stateNumber(state)];
    await this.#connection.run("report", [record, ledger, reports], parameters, { namespace });
  }

  async findLease(namespace: string, ledgerId: number): Promise<LedgerEntry | undefined> {
    await this.readNamespace(namespace);
    const lease = await this.#leaseAtOrAfter(namespace, `${ledgerId}-0`);
    if (lease === undefined || !holdsRun(lease, ledgerId)) return undefined;
    return (await this.#entries(namespace, [lease]))[0];
  }

  async listLeases(
    namespace: string,
    { belowLedgerId, limit }: { readonly belowLedgerId: number; readonly limit: number },
  ): Promise<readonly LedgerEntry[]> {
    const { ledger } = this.#keys(namespace);
    await this.readNamespace(namespace);
    if (belowLedgerId <= 0) return [];
    const found = await this.#connection.ask({ namespace }, (redis) =>
      redis.xrevrange(ledger, String(belowLedgerId - 1), "-", "COUNT", limit),
    );
    return this.#entries(
      namespace,
      found.map((entry) => leaseOf(entry as StreamEntry)),
    );
  }

  async firstLeaseSince(namespace: string, timeMs: number): Promise<LedgerEntry | undefined> {
    await this.readNamespace(namespace);
    const id = await this.#connection.run("lease-since", [this.#keys(namespace).ledger], [timeMs], { namespace });
    if (typeof id !== "string") return undefined;
    const lease = await this.#leaseAtOrAfter(namespace, id);
    return lease && (await this.#entries(namespace, [lease]))[0];
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async #leaseAtOrAfter(namespace: string, id: string): Promise<KeptLease | undefined> {
    const { ledger } = this.#keys(namespace);
    const [entry] = await this.#connection.ask({ namespace }, (redis) => redis.xrange(ledger, id, "+", "COUNT", 1));
    return entry && leaseOf(entry as StreamEntry);
  }

  async #entries(namespace: string, leases: readonly KeptLease[]): Promise<LedgerEntry[]> {
    if (leases.length === 0) return [];
    const { holders, reports } = this.#keys(namespace);
    const [holderJsons, packed] = await this.#connection.ask({ namespace }, (redis) =>
      Promise.all([
        redis.hmget(holders, ...leases.map(({ holder }) => holder)),
        redis.hmgetBuffer(reports, ...leases.map(({ lastLedgerId }) => reportFieldOf(lastLedgerId))),
      ]),
    );
    return leases.map((lease, index) => {
      const report = reportIn(packed[index] ?? null, lease.lastLedgerId);
      return entryOf(lease, holderJsons[index] ?? null, report);
    });
  }

  #keys(namespace: string): NamespaceKeys {
    return keysOf(this.#keyPrefix, namespace);
  }

  #namesKey(): string {
    return `${this.#keyPrefix}namespaces`;
  }
}
