/**
 * One connection to one server, and the scripts that run over it. Knows nothing of runs, nor of other servers.
 * Invariant: a command is sent at most once. A lease whose reply is lost must stay lost: the client's resending, its offline
 * queue and its pools are all off. Its Cluster sends redirected commands again, and its Sentinel connector believes the first
 * sentinel that replies, so neither is used: discovery.ts finds the server.
 */
import { Redis } from "ioredis";
import { CoordinatorError } from "../../errors.js";
import { endpointText, tlsFailure, tlsOptionsOf } from "../endpoint.js";
import type { RedisAddress } from "./address.js";
import { asStoreError } from "./errors.js";
import { SCRIPTS_SENT_BY_SHA1, type ScriptName, scriptNamed } from "./scripts.js";

/** What sends plain commands. */
export type RedisClient = Redis;

/** For a reply, and for a connection. */
const TIMEOUT_MS = 5_000;
const RECONNECT_DELAY_MAX_MS = 1_000;

export type RedisCommand = readonly [name: string, ...parameters: (string | number)[]];

export class RedisConnection {
  readonly #redis: Redis;
  readonly address: RedisAddress;
  /** Host and port, for messages. */
  readonly server: string;
  /** Number of connections so far: a reply on another one is no reply to a command of this one. */
  #connectionCount = 0;
  /** The connection that has loaded the scripts, and the one that has selected our database: each begins at database 0. */
  #scriptsLoadedIn = -1;
  #databaseSelectedIn = -1;
  /** Why there is no connection now, or why the last attempt failed. */
  #lastFailure: Error | undefined;

  private constructor(redis: Redis, address: RedisAddress) {
    this.#redis = redis;
    this.address = address;
    this.server = endpointText(address);
    redis.on("close", () => {
      this.#connectionCount++;
      this.#lastFailure ??= new Error("the connection broke");
    });
    // The failure of an earlier connection does not explain a failure of this one.
    redis.on("connect", () => {
      this.#lastFailure = undefined;
      // The client listens for one error of each socket. After a TLS handshake a second one can follow, and would end the process.
      redis.stream.on("error", () => {});
    });
    // Each command reports its own failure; an event without a listener would end the process.
    redis.on("error", (error: Error) => {
      this.#lastFailure = address.tls ? tlsFailure(error) : error;
    });
  }

  /**
   * `timeoutMs`: how long connecting, and each reply, may take; default 5,000.
   * @throws CoordinatorError `store_unavailable` when the server can't be reached, or refuses the user or the database.
   */
  static async open(
    address: RedisAddress,
    { timeoutMs = TIMEOUT_MS }: { readonly timeoutMs?: number } = {},
  ): Promise<RedisConnection> {
    const redis = new Redis({
      host: address.host,
      port: address.port,
      ...(address.username ? { username: address.username } : {}),
      ...(address.password ? { password: address.password } : {}),
      ...(address.tls ? { tls: tlsOptionsOf("Redis", address.tlsFiles) } : {}),
      lazyConnect: true,
      disableClientInfo: true,
      connectTimeout: timeoutMs,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      enableOfflineQueue: false,
      // It would delay the connection until the server has loaded its data, however long that takes.
      enableReadyCheck: false,
      // Both are needed once resending is off: without them a promise never settles when the connection breaks.
      maxRetriesPerRequest: 0,
      commandTimeout: timeoutMs,
      retryStrategy: (attempt) => Math.min(attempt * 50, RECONNECT_DELAY_MAX_MS),
    });
    const connection = new RedisConnection(redis, address);
    try {
      await redis.connect();
      await connection.#selectDatabase();
      await redis.ping();
    } catch (error) {
      redis.disconnect();
      throw asStoreError(connection.#lastFailure ?? error, "", connection.server);
    }
    return connection;
  }

  /** Runs one of our scripts, once. @throws CoordinatorError for a refusal or a failure. */
  async run(
    script: ScriptName,
    keys: readonly string[],
    parameters: readonly (string | number | Buffer)[],
    namespace: string,
  ): Promise<unknown> {
    const { text, sha1 } = scriptNamed(script);
    try {
      return await this.send(namespace, (redis) => redis.evalsha(sha1, keys.length, ...keys, ...parameters));
    } catch (error) {
      // Nothing ran: the server forgot the script with a restart, or never had it.
      if (!((error as CoordinatorError).cause as Error | undefined)?.message.startsWith("NOSCRIPT")) throw error;
      return await this.send(namespace, (redis) => redis.eval(text, keys.length, ...keys, ...parameters));
    }
  }

  /**
   * Sends commands in one write, on one connection, each at most once. Returns for each its reply, or the error reply.
   * Loads the scripts of `EVALSHA` first.
   * @throws CoordinatorError `store_unavailable` when this connection did not reply to all of them.
   */
  async pipeline(commands: readonly RedisCommand[], namespace: string): Promise<readonly unknown[]> {
    await this.#loadScripts(namespace);
    const connectionCount = this.#connectionCount;
    const replies = await this.send(namespace, async (redis) => {
      const results = (await redis.pipeline(commands.map((command) => [...command])).exec()) ?? [];
      return results.map(([error, reply]) => {
        if (error !== null && error.name !== "ReplyError") throw error;
        if (error?.message.startsWith("NOSCRIPT")) this.#scriptsLoadedIn = -1;
        return error ?? reply;
      });
    });
    if (this.#connectionCount !== connectionCount || replies.length !== commands.length)
      throw asStoreError(new Error("the connection broke"), namespace, this.server);
    return replies;
  }

  /** The command that runs one of our scripts. */
  static evalsha(script: ScriptName, keys: readonly string[], parameters: readonly (string | number)[]): RedisCommand {
    return ["evalsha", scriptNamed(script).sha1, keys.length, ...keys, ...parameters];
  }

  /** Returns a reply of `pipeline`. @throws CoordinatorError for an error reply. */
  replyIn(reply: unknown, namespace: string): unknown {
    if (reply instanceof Error) throw asStoreError(reply, namespace, this.server);
    return reply;
  }

  /** The error for a reply to another command than the one sent: whether that was done is not known. Reconnects. */
  unexpectedReply(): CoordinatorError {
    this.reconnect();
    return new CoordinatorError(
      "store_unavailable",
      `Redis at ${this.server} replied to another command than the one sent`,
    );
  }

  /** Ends a connection whose replies can't be trusted, or that leads to the wrong server, and makes a new one. */
  reconnect(): void {
    this.#redis.disconnect(true);
  }

  async #loadScripts(namespace: string): Promise<void> {
    if (this.#scriptsLoadedIn === this.#connectionCount) return;
    const connectionCount = this.#connectionCount;
    await this.send(namespace, (redis) =>
      Promise.all(SCRIPTS_SENT_BY_SHA1.map((name) => redis.script("LOAD", scriptNamed(name).text))),
    );
    this.#scriptsLoadedIn = connectionCount;
  }

  /**
   * Sends commands, each at most once. Reconnects when a reply does not come in time: nothing that still arrives is read as the
   * reply to a later command. `namespace`: for the message; empty for none.
   * @throws CoordinatorError `store_unavailable`.
   */
  async send<T>(namespace: string, call: (redis: Redis) => Promise<T>): Promise<T> {
    try {
      await this.#selectDatabase();
      return await call(this.#redis);
    } catch (error) {
      const { message } = error as Error;
      if (message === "Command timed out") this.reconnect();
      const isUnsent = UNSENT.test(message);
      const cause = isUnsent ? (this.#lastFailure ?? new Error("the connection broke and is being made again")) : error;
      throw asStoreError(cause, namespace, this.server);
    }
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
  }

  /**
   * The Redis client's own option for a database continues in database 0 when SELECT is refused, and would lease the runs of
   * another store. So the database is selected here, and nothing is sent before the server has agreed.
   */
  async #selectDatabase(): Promise<void> {
    const { database } = this.address;
    const connectionCount = this.#connectionCount;
    if (database === 0 || this.#databaseSelectedIn === connectionCount) return;
    await this.#redis.call("SELECT", database);
    this.#databaseSelectedIn = connectionCount;
  }
}

/** There was no connection to send it on, or it ended; the client's message lacks the cause, and names options of its own. */
const UNSENT = /^(?:Stream isn't writeable|Connection is closed|Reached the max retries)/;
