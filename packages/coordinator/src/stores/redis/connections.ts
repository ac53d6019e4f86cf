/**
 * The connections to the servers that hold the keys. The topology is discovered once, kept, and discovered again when an error shows
 * that it may have changed.
 */
import { CoordinatorError } from "../../errors.js";
import { type Endpoint, endpointText } from "../endpoint.js";
import type { RedisLogin } from "./address.js";
import { RedisConnection } from "./connection.js";
import type { Discover, Topology } from "./discovery.js";

/** Steps have a connection of their own: WAIT blocks it, and counts only what its own connection wrote. */
export const PURPOSES = ["steps", "reads"] as const;
type Purpose = (typeof PURPOSES)[number];

/** Minimum time between two discoveries, however many commands fail, ms. */
const DISCOVERY_INTERVAL_MS = 200;

export class RedisConnections {
  readonly #discoverTopology: Discover;
  readonly #login: RedisLogin;
  #topology: Topology | undefined;
  #mayHaveChanged = false;
  #discoveredAtMs = Number.NEGATIVE_INFINITY;
  #discovering: Promise<Topology> | undefined;
  /** By purpose and server. Each reconnects when it breaks, as long as its server is part of the topology. */
  readonly #connections = new Map<string, Promise<RedisConnection>>();
  #isClosed = false;

  constructor(discover: Discover, login: RedisLogin) {
    this.#discoverTopology = discover;
    this.#login = login;
  }

  /**
   * The connection to the server that holds a key: the same one as long as that server holds it.
   * @throws CoordinatorError `store_unavailable` when the server can't be found, or a new connection can't be made.
   */
  async connectionFor(key: string, purpose: Purpose): Promise<RedisConnection> {
    const topology = await this.#newestTopology();
    return this.#connectionTo(topology.endpointOf(key), purpose);
  }

  /**
   * Uses the connection to the server of a key. A command that fails is never retried here; when the server may have changed, the
   * next use discovers the topology again.
   */
  async use<T>(key: string, purpose: Purpose, send: (connection: RedisConnection) => Promise<T>): Promise<T> {
    try {
      return await send(await this.connectionFor(key, purpose));
    } catch (error) {
      const code = error instanceof CoordinatorError ? error.code : undefined;
      if (code === "store_unavailable" || code === "store_is_replica") this.rediscover();
      throw error;
    }
  }

  /** Makes the next use discover the topology again: another server may be the right one by now. */
  rediscover(): void {
    this.#mayHaveChanged = true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#closeAllBut([]);
  }

  async #newestTopology(): Promise<Topology> {
    const known = this.#topology;
    const isDue = this.#discovering !== undefined || performance.now() - this.#discoveredAtMs >= DISCOVERY_INTERVAL_MS;
    if (known !== undefined && !(this.#mayHaveChanged && isDue)) return known;
    try {
      // One discovery, however many requests wait for it.
      this.#discovering ??= this.#discover().finally(() => {
        this.#discoveredAtMs = performance.now();
        this.#discovering = undefined;
      });
      return await this.#discovering;
    } catch (error) {
      // Without another result the known topology is as good as before.
      if (known === undefined) throw error;
      return known;
    }
  }

  async #discover(): Promise<Topology> {
    const topology = await this.#discoverTopology();
    this.#topology = topology;
    this.#mayHaveChanged = false;
    // A connection that is closed may hang: nothing waits for it.
    void this.#closeAllBut(topology.endpoints);
    return topology;
  }

  #connectionTo(endpoint: Endpoint, purpose: Purpose): Promise<RedisConnection> {
    if (this.#isClosed) throw new CoordinatorError("store_unavailable", "the store is closed");
    const name = `${purpose} ${endpointText(endpoint)}`;
    const known = this.#connections.get(name);
    if (known !== undefined) return known;
    const opening = RedisConnection.open({ ...this.#login, ...endpoint });
    this.#connections.set(name, opening);
    opening.catch(() => {
      if (this.#connections.get(name) === opening) this.#connections.delete(name);
    });
    return opening;
  }

  async #closeAllBut(endpoints: readonly Endpoint[]): Promise<void> {
    const kept = new Set(endpoints.map(endpointText));
    const others = [...this.#connections].filter(([name]) => !kept.has(name.slice(name.indexOf(" ") + 1)));
    for (const [name] of others) this.#connections.delete(name);
    await Promise.all(others.map(([, opening]) => opening.then((connection) => connection.close()).catch(() => {})));
  }
}
