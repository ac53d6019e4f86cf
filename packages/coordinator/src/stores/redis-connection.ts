/**
 * The one connection of a Redis store, and the scripts that run over it. Knows nothing of runs.
 * Invariant: a command is sent at most once. A lease whose answer is lost must stay lost: the client's own resending,
 * its queue for bad times and its pools are all off.
 */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Redis } from "ioredis";
import { asStoreError, type CommandContext } from "./redis-errors.js";

const COMMAND_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 5_000;
const RECONNECT_DELAY_MAX_MS = 1_000;

/** Steps of the guard: they share lua/guard.lua besides lua/record.lua. */
const STEP_SCRIPTS = ["lease", "touch", "claim", "confirm", "seal", "resume", "recover", "init"] as const;
export type StepScriptName = (typeof STEP_SCRIPTS)[number];
export type ScriptName = StepScriptName | "check" | "read" | "report" | "lease-since";

/** A command and its parameters. */
export type Words = readonly [name: string, ...parameters: (string | number)[]];

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly database: number;
}

export class RedisConnection {
  readonly #redis: Redis;
  /** Where it leads, for messages. */
  readonly server: string;
  readonly #database: number;
  /** Whether the connection of this moment speaks to our database. Each new connection begins at database 0. */
  #isSelected = false;
  /** How many connections there were: answers of another one are not answers to this one's questions. */
  #life = 0;
  #scriptsLoadedIn = -1;

  private constructor(redis: Redis, server: string, database: number) {
    this.#redis = redis;
    this.server = server;
    this.#database = database;
    redis.on("close", () => {
      this.#isSelected = false;
      this.#life++;
    });
  }

  /** @throws CoordinatorError `store_unavailable` when the server can't be reached, or refuses the user or the database. */
  static async open(address: RedisAddress): Promise<RedisConnection> {
    const server = `${address.host}:${address.port}`;
    const redis = new Redis({
      host: address.host,
      port: address.port,
      ...(address.username ? { username: address.username } : {}),
      ...(address.password ? { password: address.password } : {}),
      ...(address.tls ? { tls: {} } : {}),
      lazyConnect: true,
      disableClientInfo: true,
      connectTimeout: CONNECT_TIMEOUT_MS,
      autoResendUnfulfilledCommands: false,
      enableOfflineQueue: false,
      // Both are needed once resending is off: without them a promise never settles when the connection breaks.
      maxRetriesPerRequest: 0,
      commandTimeout: COMMAND_TIMEOUT_MS,
      retryStrategy: (attempt) => Math.min(attempt * 50, RECONNECT_DELAY_MAX_MS),
    });
    let lastError: unknown;
    // Each command reports its own failure; an event without a listener would end the process.
    redis.on("error", (error) => {
      lastError = error;
    });
    const connection = new RedisConnection(redis, server, address.database);
    try {
      await redis.connect();
      await connection.#send((ready) => ready.ping());
    } catch (error) {
      redis.disconnect();
      throw asStoreError(lastError ?? error, { namespace: "" }, server);
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
   * that it refused with. The scripts of `EVALSHA` are known to the server before.
   * @throws CoordinatorError `store_unavailable` when not all of them were answered, by this connection.
   */
  async together(commands: readonly Words[], context: CommandContext): Promise<readonly unknown[]> {
    await this.#loadScripts(context);
    const life = this.#life;
    const answers = await this.ask(context, async (redis) => {
      const results = (await redis.pipeline(commands.map((words) => [...words])).exec()) ?? [];
      return results.map(([error, answer]) => {
        if (error !== null && error.name !== "ReplyError") throw error;
        return error ?? answer;
      });
    });
    if (this.#life !== life || answers.length !== commands.length)
      throw asStoreError(new Error("the connection broke"), context, this.server);
    return answers;
  }

  /** The command that runs one of our scripts. */
  static evalsha(script: ScriptName, keys: readonly string[], parameters: readonly (string | number)[]): Words {
    return ["evalsha", scriptNamed(script).sha1, keys.length, ...keys, ...parameters];
  }

  /** The error for what a script, or the server, refused a command with. */
  refusalIn(error: Error, context: CommandContext): Error {
    return asStoreError(error, context, this.server);
  }

  /** Ends the connection, as one whose answers can't be trusted or that leads to the wrong server; a new one is made. */
  breakOff(): void {
    this.#redis.disconnect(true);
  }

  async #loadScripts(context: CommandContext): Promise<void> {
    if (this.#scriptsLoadedIn === this.#life) return;
    const life = this.#life;
    await this.ask(context, (redis) =>
      Promise.all([...STEP_SCRIPTS, "check" as const].map((name) => redis.script("LOAD", scriptNamed(name).text))),
    );
    this.#scriptsLoadedIn = life;
  }

  /** Sends commands. @throws CoordinatorError `store_unavailable`. */
  async ask<T>(context: CommandContext, send: (redis: Redis) => Promise<T>): Promise<T> {
    try {
      return await this.#send(send);
    } catch (error) {
      if (error instanceof Error && error.message === "Command timed out") this.#redis.disconnect(true);
      throw asStoreError(error, context, this.server);
    }
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
  }

  /**
   * The Redis client's own way to a database goes on in database 0 when SELECT is refused, and leases somebody else's runs.
   * So the database is chosen here, and nothing is sent before the server has agreed.
   */
  async #send<T>(send: (redis: Redis) => Promise<T>): Promise<T> {
    if (this.#database !== 0 && !this.#isSelected) {
      await this.#redis.call("SELECT", this.#database);
      this.#isSelected = true;
    }
    return send(this.#redis);
  }
}

function isScriptUnknown(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message.startsWith("NOSCRIPT");
}

const scripts = new Map<ScriptName, { readonly text: string; readonly sha1: string }>();

function scriptNamed(name: ScriptName): { readonly text: string; readonly sha1: string } {
  const known = scripts.get(name);
  if (known !== undefined) return known;
  const isStep = (STEP_SCRIPTS as readonly string[]).includes(name);
  const text = ["record", ...(isStep ? ["guard"] : []), name].map(readScript).join("\n");
  const script = { text, sha1: createHash("sha1").update(text).digest("hex") };
  scripts.set(name, script);
  return script;
}

function readScript(name: string): string {
  return readFileSync(new URL(`../../lua/${name}.lua`, import.meta.url), "utf8");
}
