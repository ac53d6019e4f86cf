/**
 * One connection to one server, and the scripts that run over it. Knows nothing of runs, nor of other servers.
 * Invariant: a command is sent at most once. A lease whose answer is lost must stay lost: the client's own resending,
 * its queue for bad times and its pools are all off. Its Cluster sends again what was redirected, and its Sentinel connector
 * believes the first sentinel that answers, so neither is used: route.ts finds the way.
 */
import { Redis } from "ioredis";
import { CoordinatorError } from "../../errors.js";
import { endpointText, type RedisAddress } from "./address.js";
import { asStoreError, type CommandContext, isStray, type Speaker } from "./errors.js";
import { SCRIPTS_SENT_BY_SUM, type ScriptName, scriptNamed } from "./scripts.js";
import { tlsFailure, tlsOptionsOf } from "./tls.js";

/** For an answer, and for a connection. */
const TIMEOUT_MS = 5_000;
const RECONNECT_DELAY_MAX_MS = 1_000;

/** A command and its parameters. */
export type Words = readonly [name: string, ...parameters: (string | number)[]];

export class RedisConnection {
  readonly #redis: Redis;
  readonly address: RedisAddress;
  /** Where it leads, for messages. */
  readonly server: string;
  /** Whether the connection of this moment speaks to our database. Each new connection begins at database 0. */
  #isSelected = false;
  /** How many connections there were: answers of another one are not answers to this one's questions. */
  #life = 0;
  #scriptsLoadedIn = -1;
  /** Why there is no connection at this moment, or was none at last. */
  #lastFailure: Error | undefined;

  private constructor(redis: Redis, address: RedisAddress) {
    this.#redis = redis;
    this.address = address;
    this.server = endpointText(address);
    redis.on("close", () => {
      this.#isSelected = false;
      this.#life++;
      this.#lastFailure ??= new Error("the connection broke");
    });
    // What an earlier connection failed with is not why this one does.
    redis.on("connect", () => {
      this.#lastFailure = undefined;
      // The client hears one error of each socket. Behind a TLS handshake a second one can come, and would end the process.
      redis.stream.on("error", () => {});
    });
    redis.on("ready", () => {
      this.#lastFailure = undefined;
    });
    // Each command reports its own failure; an event without a listener would end the process.
    redis.on("error", (error: Error) => {
      this.#lastFailure = address.tls ? tlsFailure(error) : error;
    });
  }

  /**
   * `timeoutMs`: how long a connection, and each answer, may take; default 5,000.
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
      ...(address.tls ? { tls: tlsOptionsOf(address.tlsFiles) } : {}),
      lazyConnect: true,
      disableClientInfo: true,
      connectTimeout: timeoutMs,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      enableOfflineQueue: false,
      // It would hold up whoever connects until a server has loaded its data, however long that takes.
      enableReadyCheck: false,
      // Both are needed once resending is off: without them a promise never settles when the connection breaks.
      maxRetriesPerRequest: 0,
      commandTimeout: timeoutMs,
      retryStrategy: (attempt) => Math.min(attempt * 50, RECONNECT_DELAY_MAX_MS),
    });
    const connection = new RedisConnection(redis, address);
    try {
      await redis.connect();
      await connection.#send((ready) => ready.ping());
    } catch (error) {
      redis.disconnect();
      throw asStoreError(connection.#lastFailure ?? error, { namespace: "" }, connection.#speaker);
    }
    return connection;
  }

  /** Runs one of our scripts, once. @throws CoordinatorError for a refusal or a failure. */
  async run(
    script: ScriptName,
    keys: readonly string[],
    parameters: readonly (string | number)[],
    context: CommandContext,
  ): Promise<unknown> {
    const { text, sha1 } = scriptNamed(script);
    try {
      return await this.ask(context, (redis) => redis.evalsha(sha1, keys.length, ...keys, ...parameters));
    } catch (error) {
      // Nothing ran: the server forgot the script with a restart, or never had it.
      if (!isScriptUnknown(error)) throw error;
      return await this.ask(context, (redis) => redis.eval(text, keys.length, ...keys, ...parameters));
    }
  }

  /**
   * Sends commands in one write, on one connection, each at most once, and answers for each what it answered or the error
   * that it refused with. The scripts of `EVALSHA` are known to the server before; only then the commands are made, so that the
   * clock that they tell is not older than their way.
   * @throws CoordinatorError `store_unavailable` when not all of them were answered, by this connection.
   */
  async together(makeCommands: () => readonly Words[], context: CommandContext): Promise<readonly unknown[]> {
    await this.#loadScripts(context);
    const life = this.#life;
    const commands = makeCommands();
    const answers = await this.ask(context, async (redis) => {
      const results = (await redis.pipeline(commands.map((words) => [...words])).exec()) ?? [];
      return results.map(([error, answer]) => {
        if (error !== null && error.name !== "ReplyError") throw error;
        if (error?.message.startsWith("NOSCRIPT")) this.#scriptsLoadedIn = -1;
        return error ?? answer;
      });
    });
    if (this.#life !== life || answers.length !== commands.length)
      throw asStoreError(new Error("the connection broke"), context, this.#speaker);
    return answers;
  }

  /** The command that runs one of our scripts. */
  static evalsha(script: ScriptName, keys: readonly string[], parameters: readonly (string | number)[]): Words {
    return ["evalsha", scriptNamed(script).sha1, keys.length, ...keys, ...parameters];
  }

  /**
   * The error for what a script, or the server, refused a command with. Ends the connection when the refusal is another step's, and
   * when it leads to a replica: the same name may lead to the master by now.
   */
  refusalIn(error: Error, context: CommandContext): Error {
    const refusal = asStoreError(error, context, this.#speaker);
    const isReplica = refusal instanceof CoordinatorError && refusal.code === "store_is_replica";
    if (isReplica || isStray(error, context)) this.breakOff();
    return refusal;
  }

  /** Ends the connection, as one whose answers can't be trusted or that leads to the wrong server; a new one is made. */
  breakOff(): void {
    this.#redis.disconnect(true);
  }

  async #loadScripts(context: CommandContext): Promise<void> {
    if (this.#scriptsLoadedIn === this.#life) return;
    const life = this.#life;
    await this.ask(context, (redis) =>
      Promise.all(SCRIPTS_SENT_BY_SUM.map((name) => redis.script("LOAD", scriptNamed(name).text))),
    );
    this.#scriptsLoadedIn = life;
  }

  /**
   * Sends commands, each at most once. Where an answer does not come in time the connection is ended: nothing that still comes on it
   * is read as the answer to a later question.
   * @throws CoordinatorError `store_unavailable`.
   */
  async ask<T>(context: CommandContext, send: (redis: Redis) => Promise<T>): Promise<T> {
    try {
      return await this.#send(send);
    } catch (error) {
      if (error instanceof Error && error.message === "Command timed out") this.breakOff();
      throw asStoreError(isUnanswered(error) ? this.#whyUnanswered() : error, context, this.#speaker);
    }
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
  }

  get #speaker(): Speaker {
    return { server: this.server, password: this.address.password };
  }

  #whyUnanswered(): Error {
    return this.#lastFailure ?? new Error("the connection broke and is being made anew");
  }

  /**
   * The Redis client's own way to a database goes on in database 0 when SELECT is refused, and leases somebody else's runs.
   * So the database is chosen here, and nothing is sent before the server has agreed.
   */
  async #send<T>(send: (redis: Redis) => Promise<T>): Promise<T> {
    const { database } = this.address;
    if (database !== 0 && !this.#isSelected) {
      await this.#redis.call("SELECT", database);
      this.#isSelected = true;
    }
    return send(this.#redis);
  }
}

/** There was no connection to send it on, or it ended; the client's own words say less than why, and speak of its options. */
const UNANSWERED = /^(?:Stream isn't writeable|Connection is closed|Reached the max retries)/;

function isUnanswered(error: unknown): boolean {
  return error instanceof Error && UNANSWERED.test(error.message);
}

function isScriptUnknown(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message.startsWith("NOSCRIPT");
}
