/**
 * State in Redis: a record, a ledger stream, holders and reports for each namespace, in one hash slot.
 * Everything that changes is one script (lua/); this file sends its arguments and reads its replies.
 * Guarantees: G4 (docs/guarantees.md).
 */
import type { Progress } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../../errors.js";
import { KEY_NAMES, namespaceRecordIn } from "../../guard/checks.js";
import { type NamespaceRecord, quorumOf } from "../../guard/record.js";
import type { Applied, Change, Expected, Finding, Observed, PreflightScope } from "../../guard/step-store.js";
import { freshNonce } from "../../guard/verify-outcome.js";
import type { LeaseQuery, LedgerTrim, Retention, Store } from "../store.js";
import type { ClusterPlace, RedisAddress, RedisLogin, SentinelPlace } from "./address.js";
import { appliedIn, FIELDS, fieldsIn, observedIn, parametersOf } from "./changes.js";
import { type RedisClient, type RedisCommand, RedisConnection } from "./connection.js";
import { PURPOSES, RedisConnections } from "./connections.js";
import { type Discover, discoverCluster, discoverMaster } from "./discovery.js";
import { reportOf, type ServerUse, sentinelFindings, serverFindings } from "./findings.js";
import {
  appendParametersOf,
  changedIn,
  mayHaveHolder,
  RETENTION_FIELDS,
  readLeases,
  reportParametersOf,
  retentionIn,
  type ScriptParameter,
  sinceIn,
  trimParametersOf,
} from "./ledger.js";
import { asideKeyOf, keysOf, type NamespaceKeys, type ScriptName } from "./scripts.js";

const QUORUM_TIMEOUT_MS = 1_000;
interface RedisSettings {
  /** In front of every key. Without braces, which belong to the hash slot. */
  readonly keyPrefix: string;
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
  /** A hash with the name of each namespace. */
  readonly #namesKey: string;
  readonly #connections: RedisConnections;

  private constructor(options: RedisStoreOptions | RedisGroupOptions) {
    this.#options = options;
    this.#namesKey = `${options.keyPrefix}namespaces`;
    this.#connections = new RedisConnections(discoveryFor(options), options);
  }

  /** @throws CoordinatorError `store_unavailable`. */
  static async open(options: RedisStoreOptions | RedisGroupOptions): Promise<RedisStore> {
    const store = new RedisStore(options);
    try {
      await Promise.all(PURPOSES.map((purpose) => store.#connections.connectionFor(store.#namesKey, purpose)));
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  /** Over the connection for steps: it may lead to a replica, and is then made again. */
  async read(namespace: string): Promise<Observed> {
    const { record: key } = this.#keys(namespace);
    return await this.#connections.use(key, "steps", async (connection) => {
      const nonce = freshNonce();
      const [reply] = await connection.pipeline([this.#readCommand(namespace, nonce)], namespace);
      const found = observedIn(connection.replyIn(reply, namespace), nonce);
      if (found === undefined) throw connection.unexpectedReply();
      return this.#noteServer(connection, found);
    });
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    const { record: key } = this.#keys(namespace);
    const read = (redis: RedisClient) => Promise.all([redis.ttl(key), redis.hmget(key, ...FIELDS)]);
    const [ttl, values] = await this.#send(namespace, key, read);
    const fields = fieldsIn(values);
    // A record may be made between the two.
    const isThere = ttl !== -2 || Object.keys(fields).length > 0;
    const keys = { record: isThere ? "hash" : "none", fields, expires: ttl >= 0 } as const;
    return namespaceRecordIn({ keys }, namespace);
  }

  async apply(namespace: string, expected: Expected, change: Change): Promise<Applied | Observed> {
    // The name first: a name without a record is harmless, a record without its name would not be listed.
    if (expected.rising === undefined) {
      await this.#send(namespace, this.#namesKey, (redis) => redis.hsetnx(this.#namesKey, namespace, ""));
    }
    const { record: key } = this.#keys(namespace);
    return await this.#connections.use(key, "steps", (connection) =>
      this.#applyOver(connection, namespace, expected, change),
    );
  }

  /** The change, then WAIT for the quorum, then the server again, all in one round trip; for one node nothing is waited for. Never sent twice. */
  async #applyOver(
    connection: RedisConnection,
    namespace: string,
    expected: Expected,
    change: Change,
  ): Promise<Applied | Observed> {
    const keys = this.#keys(namespace);
    const stepKeys = KEY_NAMES.map((name) => keys[name]);
    const [nonce, checkNonce] = [freshNonce(), freshNonce()];
    const movedAside = change.movesAside.map((name) => asideKeyOf(keys[name], nonce));
    const quorum = quorumOf(change.record.nodeCount);
    const { quorumTimeoutMs = QUORUM_TIMEOUT_MS } = this.#options;
    const commands: readonly RedisCommand[] = [
      RedisConnection.evalsha("apply", [...stepKeys, ...movedAside], parametersOf(nonce, expected, change)),
      ...(quorum === 0 ? [] : [["wait", quorum, quorumTimeoutMs] as const, this.#readCommand(namespace, checkNonce)]),
    ];
    const [reply, waitReply, checkReply] = await connection.pipeline(commands, namespace);
    const answer = appliedIn(connection.replyIn(reply, namespace), nonce);
    if (answer === undefined) throw connection.unexpectedReply();
    if ("keys" in answer) return this.#noteServer(connection, answer);
    if (quorum === 0) return { ...answer, acknowledgedCount: 0, check: undefined, movedAside };
    const acknowledgedCount = connection.replyIn(waitReply, namespace);
    const check = observedIn(connection.replyIn(checkReply, namespace), checkNonce);
    const isCount = typeof acknowledgedCount === "number" && acknowledgedCount >= 0;
    if (check === undefined || !isCount) throw connection.unexpectedReply();
    // This server may be alone on its side of a partition.
    if (acknowledgedCount < quorum) this.#connections.rediscover();
    const { role, epoch = "-" } = check.server;
    const generation = Number(check.keys.fields["g"] ?? Number.NaN);
    return { ...answer, acknowledgedCount, check: { role, epoch, generation }, movedAside };
  }

  #readCommand(namespace: string, nonce: string): RedisCommand {
    const keys = this.#keys(namespace);
    const names = KEY_NAMES.map((name) => keys[name]);
    return RedisConnection.evalsha("read", names, [nonce]);
  }

  /** Nothing is leased from a replica. The same host name may resolve to the master by now, or a Sentinel name another server. */
  #noteServer(connection: RedisConnection, found: Observed): Observed {
    if (found.server.epoch !== undefined && found.server.role !== "master") {
      connection.reconnect();
      this.#connections.rediscover();
    }
    return found;
  }

  async listNamespaces(): Promise<readonly string[]> {
    const names = await this.#send("", this.#namesKey, (redis) => redis.hkeys(this.#namesKey));
    return names.sort();
  }

  async setProgress(namespace: string, lease: LedgerEntry, progress: Progress): Promise<boolean> {
    const parameters = reportParametersOf(lease, progress);
    return await this.#run("report", namespace, ["ledger", "reports"], parameters, changedIn);
  }

  async hasHolder(namespace: string, name: string): Promise<boolean> {
    const { holders } = this.#keys(namespace);
    return await this.#send(namespace, holders, (redis) => mayHaveHolder(redis, holders, name));
  }

  async leases(namespace: string, query: LeaseQuery): Promise<readonly LedgerEntry[]> {
    const keys = this.#keys(namespace);
    const firstSince = (timeMs: number) => this.#run("since", namespace, ["ledger"], [timeMs], sinceIn);
    return await this.#send(namespace, keys.ledger, (redis) => readLeases(redis, keys, query, firstSince));
  }

  /** Inspects every server that holds a namespace, and the path to a master that Sentinels name. */
  async preflight({ asOperator = false, planned }: PreflightScope = {}): Promise<readonly Finding[]> {
    const servers = new Map<RedisConnection, ServerUse["namespaces"]>();
    servers.set(await this.#connections.connectionFor(this.#namesKey, "reads"), []);
    for (const namespace of new Set([...(await this.listNamespaces()), ...(planned ? [planned.namespace] : [])])) {
      const connection = await this.#connections.connectionFor(this.#keys(namespace).record, "reads");
      const isPlanned = namespace === planned?.namespace;
      const counted = isPlanned ? planned : { namespace, nodeCount: await this.#nodeCountOf(namespace) };
      servers.set(connection, [...(servers.get(connection) ?? []), counted]);
    }
    const findings = this.#options.kind === "redis-sentinel" ? [...sentinelFindings(this.#options)] : [];
    for (const [connection, namespaces] of servers) {
      const { server, address } = connection;
      const concerns = servers.size > 1 ? namespaces.map(({ namespace }) => namespace) : undefined;
      const use = { host: address.host, tls: address.tls, server, namespaces, concerns };
      findings.push(...serverFindings(await reportOf(connection, asOperator), use));
    }
    return findings;
  }

  async appendLeases(namespace: string, newestLedgerId: number, leases: readonly LedgerEntry[]): Promise<boolean> {
    const parameters = [newestLedgerId, ...leases.flatMap(appendParametersOf)];
    const keys = ["record", "ledger", "holders", "reports"] as const;
    return await this.#run("append", namespace, keys, parameters, changedIn);
  }

  async readRetention(namespace: string): Promise<Retention> {
    const key = this.#keys(namespace).retention;
    return retentionIn(await this.#send(namespace, key, (redis) => redis.hmget(key, ...RETENTION_FIELDS)));
  }

  async setRetentionDays(namespace: string, days: number): Promise<void> {
    const key = this.#keys(namespace).retention;
    await this.#send(namespace, key, (redis) => redis.hset(key, { days }));
  }

  async trimLedger(namespace: string, trim: LedgerTrim): Promise<boolean> {
    const keys = ["record", "ledger", "reports", "retention"] as const;
    return await this.#run("trim", namespace, keys, trimParametersOf(trim), changedIn);
  }

  async close(): Promise<void> {
    await this.#connections.close();
  }

  /** Infinity when the record can't be read: its own steps report why. */
  async #nodeCountOf(namespace: string): Promise<number> {
    try {
      return (await this.readNamespace(namespace)).nodeCount;
    } catch (error) {
      if (error instanceof CoordinatorError && error.code !== "store_unavailable") return Number.POSITIVE_INFINITY;
      throw error;
    }
  }

  #send<T>(namespace: string, key: string, call: Parameters<typeof RedisConnection.prototype.send<T>>[1]): Promise<T> {
    return this.#connections.use(key, "reads", (connection) => connection.send(namespace, call));
  }

  /** Runs a script of the ledger. `read` returns undefined for a reply that can't be this script's. */
  async #run<T>(
    script: ScriptName,
    namespace: string,
    keys: readonly (keyof NamespaceKeys)[],
    parameters: readonly ScriptParameter[],
    read: (reply: unknown) => T | undefined,
  ): Promise<T> {
    const keyOf = this.#keys(namespace);
    return await this.#connections.use(keyOf.record, "reads", async (connection) => {
      const names = keys.map((name) => keyOf[name]);
      const result = read(await connection.run(script, names, parameters, namespace));
      if (result === undefined) throw connection.unexpectedReply();
      return result;
    });
  }

  #keys(namespace: string): NamespaceKeys {
    return keysOf(this.#options.keyPrefix, namespace);
  }
}

function discoveryFor(options: RedisStoreOptions | RedisGroupOptions): Discover {
  if (options.kind === "redis-sentinel") return discoverMaster(options, options);
  if (options.kind === "redis-cluster") return discoverCluster(options, options);
  const { host, port } = options;
  return async () => ({ endpoints: [{ host, port }], endpointOf: () => ({ host, port }) });
}
