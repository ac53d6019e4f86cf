/**
 * State in Redis: a record, a ledger stream, holders and reports for each namespace, in one hash slot.
 * Everything that changes is one script (lua/); this file carries its arguments and answers.
 */
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { type Bounds, DEFAULT_BOUNDS } from "../guard/bounds.js";
import type { NamespaceRecord, Outcome, ReportCommand, StepCommand, Store } from "../store.js";
import { parseStoreId } from "../store-id.js";
import { holdsRun } from "./ledger-entry.js";
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
import { RedisSteps } from "./redis-steps.js";

const QUORUM_TIMEOUT_MS = 1_000;

export interface RedisStoreOptions extends RedisAddress {
  /** Stands in front of every key. Without braces, which belong to the hash slot. */
  readonly keyPrefix: string;
  /** The coordinator's clock, in milliseconds. */
  readonly now?: () => number;
  readonly bounds?: Bounds;
  /** How long the other nodes may take to acknowledge a step. Default 1,000 ms; well below 5,000. */
  readonly quorumTimeoutMs?: number;
}

export class RedisStore implements Store {
  readonly kind = "redis";
  readonly isExclusive = false;
  /** For reading and reports. */
  readonly #connection: RedisConnection;
  /** For nothing but steps: what WAIT holds up must not hold up others. */
  readonly #stepConnection: RedisConnection;
  readonly #steps: RedisSteps;
  readonly #keyPrefix: string;
  /** As last seen. A step that finds another number is not acknowledged by enough nodes, and is burnt. */
  readonly #nodeCounts = new Map<string, number>();

  private constructor(connection: RedisConnection, stepConnection: RedisConnection, options: RedisStoreOptions) {
    const { keyPrefix, now = Date.now, bounds = DEFAULT_BOUNDS, quorumTimeoutMs = QUORUM_TIMEOUT_MS } = options;
    this.#connection = connection;
    this.#stepConnection = stepConnection;
    this.#steps = new RedisSteps({ connection: stepConnection, now, bounds, quorumTimeoutMs });
    this.#keyPrefix = keyPrefix;
  }

  /** @throws CoordinatorError `store_unavailable`. */
  static async open(options: RedisStoreOptions): Promise<RedisStore> {
    const connection = await RedisConnection.open(options);
    try {
      return new RedisStore(connection, await RedisConnection.open(options), options);
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  async step(namespace: string, command: StepCommand): Promise<Outcome> {
    // The name first: a name without a record is harmless, a record without its name would not be listed.
    if (command.step === "init" || command.step === "recover") {
      await this.#connection.ask({ namespace }, (redis) => redis.hsetnx(this.#namesKey(), namespace, ""));
    }
    const asked = "nodeCount" in command ? command.nodeCount : undefined;
    const nodeCount = asked ?? this.#nodeCounts.get(namespace) ?? 1;
    const outcome = await this.#steps.step(namespace, this.#keys(namespace), command, nodeCount);
    this.#nodeCounts.set(namespace, outcome.after.nodeCount);
    return outcome;
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    const answer = await this.#connection.run("read", [this.#keys(namespace).record], [namespace], { namespace });
    const [storeId = "", version, mark, changedAtMs, generation, phase, nodeCount, receiptKey = ""] =
      answer as string[];
    const id = parseStoreId(storeId);
    if (id === undefined) throw new Error(`broken invariant: lua/read.lua let the store id "${storeId}" pass`);
    this.#nodeCounts.set(namespace, Number(nodeCount));
    return {
      namespace,
      storeId,
      version: Number(version),
      firstRun: id.firstRun,
      highWaterMark: Number(mark),
      changedAtMs: Number(changedAtMs),
      generation: Number(generation),
      phase: Number(phase),
      nodeCount: Number(nodeCount),
      receiptKey,
    };
  }

  async listNamespaces(): Promise<readonly string[]> {
    const names = await this.#connection.ask({ namespace: "" }, (redis) => redis.hkeys(this.#namesKey()));
    return names.sort();
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

  async close(): Promise<void> {
    await Promise.all([this.#connection.close(), this.#stepConnection.close()]);
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
