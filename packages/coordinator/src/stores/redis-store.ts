/**
 * State in Redis: a record, a ledger stream, holders and reports for each namespace, in one hash slot.
 * Everything that changes is one script (lua/); this file carries its arguments and answers.
 */
import type { Holder, LedgerEntry } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { type Bounds, DEFAULT_BOUNDS, quorumOf } from "../guard/bounds.js";
import { leaseHoldsRun } from "../ledger/lease-identity.js";
import {
  type Finding,
  LEDGER_TRIM_LEASES_MAX,
  type LedgerTrim,
  type NamespaceRecord,
  type Outcome,
  type ReportCommand,
  type Retention,
  type StepCommand,
  type Store,
} from "../store.js";
import { labelsIn, labelsText } from "./kept-labels.js";
import type { ClusterPlace, RedisAddress, RedisLogin, SentinelPlace } from "./redis-address.js";
import { recordIn } from "./redis-answer.js";
import { clusterLookUp } from "./redis-cluster.js";
import type { RedisConnection } from "./redis-connection.js";
import { strayAnswer } from "./redis-errors.js";
import type { ServerUse } from "./redis-facts.js";
import { inspectServers } from "./redis-inspection.js";
import {
  importParametersOf,
  keysOf,
  leasesIn,
  type NamespaceKeys,
  RETENTION_FIELDS,
  retentionIn,
  stateNumber,
  trimParametersOf,
} from "./redis-ledger.js";
import { type LookUp, PURPOSES, RedisRoute } from "./redis-route.js";
import type { ScriptName } from "./redis-scripts.js";
import { sentinelFindings } from "./redis-sentinel-warnings.js";
import { sentinelLookUp } from "./redis-sentinels.js";
import { RedisSteps } from "./redis-steps.js";

const QUORUM_TIMEOUT_MS = 1_000;
/** More would make one script block the server for longer than others like. */
const IMPORT_LEASES_MAX = 256;
/** One text, so that labels are taken away without a right to delete. */
const LABELS_FIELD = "json";

type NodesOf = ServerUse["namespaces"][number];

interface RedisSettings {
  /** Stands in front of every key. Without braces, which belong to the hash slot. */
  readonly keyPrefix: string;
  /** The coordinator's clock, in milliseconds. */
  readonly now?: () => number;
  readonly bounds?: Bounds;
  /** How long the other nodes may take to acknowledge a step. Default 1,000 ms; well below 5,000. */
  readonly quorumTimeoutMs?: number;
}

/** A store on one server. */
export interface RedisStoreOptions extends RedisAddress, RedisSettings {
  readonly kind?: "redis";
}

/** A store on a Sentinel group or a Cluster. */
export type RedisGroupOptions = (SentinelPlace | ClusterPlace) & RedisLogin & RedisSettings;

export class RedisStore implements Store {
  readonly kind = "redis";
  readonly isExclusive = false;
  readonly #options: RedisStoreOptions | RedisGroupOptions;
  readonly #route: RedisRoute;
  /** The steps over each connection. */
  readonly #steps = new WeakMap<RedisConnection, RedisSteps>();
  /** As last seen. A step that finds another number is not acknowledged by enough nodes, and is burnt. */
  readonly #nodeCounts = new Map<string, number>();

  private constructor(options: RedisStoreOptions | RedisGroupOptions) {
    this.#options = options;
    this.#route = new RedisRoute({ lookUp: lookUpFor(options), login: options });
  }

  /** @throws CoordinatorError `store_unavailable`. */
  static async open(options: RedisStoreOptions | RedisGroupOptions): Promise<RedisStore> {
    const store = new RedisStore(options);
    try {
      await Promise.all(PURPOSES.map((purpose) => store.#route.connectionFor(store.#namesKey(), purpose)));
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  async step(namespace: string, command: StepCommand): Promise<Outcome> {
    // The name first: a name without a record is harmless, a record without its name would not be listed.
    if (command.step === "init" || command.step === "recover") {
      const namesKey = this.#namesKey();
      await this.#ask(namespace, namesKey, (redis) => redis.hsetnx(namesKey, namespace, ""));
    }
    const asked = "nodeCount" in command ? command.nodeCount : undefined;
    const nodeCount = asked ?? this.#nodeCounts.get(namespace) ?? 1;
    const keys = this.#keys(namespace);
    const outcome = await this.#route.use(keys.record, "steps", (connection) =>
      this.#stepsOver(connection).step(namespace, keys, command, nodeCount),
    );
    const { after, acknowledgedCount } = outcome;
    this.#nodeCounts.set(namespace, after.nodeCount);
    // This server may be alone on its side of a cut.
    if (acknowledgedCount < quorumOf(after.nodeCount)) this.#route.doubt();
    return outcome;
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    const { record } = this.#keys(namespace);
    const { fields, server } = await this.#route.use(record, "reads", async (connection) => {
      const answer = await connection.run("read", [record], [namespace], { namespace });
      return { fields: recordIn(answer), server: connection.server };
    });
    if (fields === undefined) throw strayAnswer(server);
    this.#nodeCounts.set(namespace, fields.nodeCount);
    return { namespace, ...fields };
  }

  async listNamespaces(): Promise<readonly string[]> {
    const namesKey = this.#namesKey();
    const names = await this.#ask("", namesKey, (redis) => redis.hkeys(namesKey));
    return names.sort();
  }

  async report(namespace: string, ledgerId: number, { nonce, lastSequence, state }: ReportCommand): Promise<void> {
    const { record, ledger, reports } = this.#keys(namespace);
    const used = lastSequence === null ? 0 : lastSequence + 1;
    const parameters = [namespace, ledgerId, nonce, used, stateNumber(state)];
    await this.#route.use(record, "reads", (connection) =>
      connection.run("report", [record, ledger, reports], parameters, { namespace }),
    );
  }

  async findLease(namespace: string, ledgerId: number): Promise<LedgerEntry | undefined> {
    const [lease] = await this.#leases("lease-at", namespace, [namespace, ledgerId]);
    return lease !== undefined && leaseHoldsRun(lease, ledgerId) ? lease : undefined;
  }

  async listLeases(
    namespace: string,
    { belowLedgerId, limit }: { readonly belowLedgerId: number; readonly limit: number },
  ): Promise<readonly LedgerEntry[]> {
    return await this.#leases("leases-below", namespace, [namespace, belowLedgerId, limit]);
  }

  async firstLeaseSince(namespace: string, timeMs: number): Promise<LedgerEntry | undefined> {
    const [lease] = await this.#leases("lease-since", namespace, [namespace, timeMs]);
    return lease;
  }

  /**
   * Looks at every server that holds a namespace, and at the way there. `asOperator`: also at what only an operator's user may ask (CONFIG, ACL).
   */
  async preflight({ asOperator = false }: { readonly asOperator?: boolean } = {}): Promise<readonly Finding[]> {
    const holdings = new Map([[await this.#route.connectionFor(this.#namesKey(), "reads"), [] as NodesOf[]]]);
    for (const namespace of await this.listNamespaces()) {
      const connection = await this.#route.connectionFor(this.#keys(namespace).record, "reads");
      const held = { namespace, nodeCount: await this.#nodeCountOf(namespace) };
      holdings.set(connection, [...(holdings.get(connection) ?? []), held]);
    }
    const ofWay = this.#options.kind === "redis-sentinel" ? sentinelFindings(this.#options) : [];
    return [...ofWay, ...(await inspectServers(holdings, { asOperator }))];
  }

  async exportLeases(
    namespace: string,
    { afterLedgerId, limit }: { readonly afterLedgerId: number; readonly limit: number },
  ): Promise<readonly LedgerEntry[]> {
    return await this.#leases("leases-after", namespace, [afterLedgerId, limit]);
  }

  async importLeases(namespace: string, leases: readonly LedgerEntry[]): Promise<void> {
    const { record, ledger, holders, reports } = this.#keys(namespace);
    for (let at = 0; at < leases.length; at += IMPORT_LEASES_MAX) {
      const parameters = leases.slice(at, at + IMPORT_LEASES_MAX).flatMap(importParametersOf);
      await this.#route.use(record, "reads", (connection) =>
        connection.run("import", [record, ledger, holders, reports], [namespace, ...parameters], { namespace }),
      );
    }
  }

  async describeNamespace(namespace: string, labels: Holder["labels"]): Promise<void> {
    // No script: labels that outlive a record are harmless.
    await this.readNamespace(namespace);
    const { labels: key } = this.#keys(namespace);
    await this.#ask(namespace, key, (redis) => redis.hset(key, LABELS_FIELD, labelsText(labels)));
  }

  async readDescription(namespace: string): Promise<Holder["labels"]> {
    const { labels: key } = this.#keys(namespace);
    const [text] = await Promise.all([
      this.#ask(namespace, key, (redis) => redis.hget(key, LABELS_FIELD)),
      this.readNamespace(namespace),
    ]);
    return labelsIn(text ?? "{}", namespace);
  }

  async readRetention(namespace: string): Promise<Retention> {
    const { retention } = this.#keys(namespace);
    return retentionIn(await this.#ask(namespace, retention, (redis) => redis.hmget(retention, ...RETENTION_FIELDS)));
  }

  async setRetention(namespace: string, days: number): Promise<void> {
    const { retention } = this.#keys(namespace);
    await this.#ask(namespace, retention, (redis) => redis.hset(retention, { days }));
  }

  async trimLedger(namespace: string, trim: LedgerTrim): Promise<boolean> {
    const { record, ledger, reports, retention } = this.#keys(namespace);
    const parameters = [namespace, LEDGER_TRIM_LEASES_MAX, ...trimParametersOf(trim)];
    return await this.#route.use(record, "reads", async (connection) => {
      const answer = await connection.run("trim", [record, ledger, reports, retention], parameters, { namespace });
      if (answer !== 0 && answer !== 1) throw strayAnswer(connection.server);
      return answer === 1;
    });
  }

  async close(): Promise<void> {
    await this.#route.close();
  }

  /** As many as there can be, where the record can't be read: its own steps say why. */
  async #nodeCountOf(namespace: string): Promise<number> {
    try {
      return (await this.readNamespace(namespace)).nodeCount;
    } catch (error) {
      if (error instanceof CoordinatorError && error.code !== "store_unavailable") return Number.POSITIVE_INFINITY;
      throw error;
    }
  }

  #ask<T>(namespace: string, key: string, send: Parameters<typeof RedisConnection.prototype.ask<T>>[1]): Promise<T> {
    return this.#route.use(key, "reads", (connection) => connection.ask({ namespace }, send));
  }

  #stepsOver(connection: RedisConnection): RedisSteps {
    const known = this.#steps.get(connection);
    if (known !== undefined) return known;
    const { now = Date.now, bounds = DEFAULT_BOUNDS, quorumTimeoutMs = QUORUM_TIMEOUT_MS } = this.#options;
    const steps = new RedisSteps({ connection, now, bounds, quorumTimeoutMs });
    this.#steps.set(connection, steps);
    return steps;
  }

  /** Record, ledger, holders and reports in one script: one round trip, and one moment. */
  async #leases(
    script: ScriptName,
    namespace: string,
    parameters: readonly (string | number)[],
  ): Promise<readonly LedgerEntry[]> {
    const { record, ledger, holders, reports } = this.#keys(namespace);
    return await this.#route.use(record, "reads", async (connection) =>
      leasesIn(await connection.run(script, [record, ledger, holders, reports], parameters, { namespace })),
    );
  }

  #keys(namespace: string): NamespaceKeys {
    return keysOf(this.#options.keyPrefix, namespace);
  }

  #namesKey(): string {
    return `${this.#options.keyPrefix}namespaces`;
  }
}

function lookUpFor(options: RedisStoreOptions | RedisGroupOptions): LookUp {
  if (options.kind === "redis-sentinel") return sentinelLookUp(options, options);
  if (options.kind === "redis-cluster") return clusterLookUp(options, options);
  const { host, port } = options;
  return async () => ({ endpoints: [{ host, port }], endpointOf: () => ({ host, port }) });
}
