/**
 * The control: plain counters in the same store under the same faults. They must repeat numbers, or the faults were none: a run in
 * which they repeat nothing proves nothing.
 */
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";
import { Redis } from "ioredis";
import pg from "pg";
import { TESTER_LOGIN } from "../redis/shipped-users.js";

export interface Counter {
  /** The next number, from the server that keeps the counter now. */
  next(): Promise<number>;
  /** What `next` still waits for fails. */
  end(): Promise<void> | void;
}

/** As an importer: it tries again. */
const RETRY_MS = 5;
const KEY = "control";
/** A loop of synchronous writes would leave no processor time to others. */
const SQL_EVERY_MS = 2;

export class Control {
  repeatCount = 0;
  readonly #counters: readonly Counter[];
  readonly #seen = new Set<number>();
  #stops: readonly (() => Promise<void>)[] = [];

  constructor(...counters: readonly Counter[]) {
    this.#counters = counters;
  }

  /** `onNumber` gets each number, also one that came before; the next one is made when it resolves. */
  start(onNumber: (number: number) => Promise<void> | void): void {
    this.#stops = this.#counters.map((counter) =>
      repeated(async () => {
        try {
          const number = await counter.next();
          if (this.#seen.has(number)) this.repeatCount++;
          this.#seen.add(number);
          await onNumber(number);
        } catch {
          await delay(RETRY_MS);
        }
      }),
    );
  }

  async stop(): Promise<void> {
    const stopping = this.#stops.map((stop) => stop());
    for (const counter of this.#counters) await counter.end();
    await Promise.all(stopping);
  }

  /** Different numbers. */
  get count(): number {
    return this.#seen.size;
  }
}

/** Does something repeatedly. Returns what stops that, and resolves when it is done for the last time. */
export function repeated(act: () => Promise<void>): () => Promise<void> {
  const stopping = new AbortController();
  const work = async () => {
    while (!stopping.signal.aborted) await act();
  };
  const working = work();
  return () => {
    stopping.abort();
    return working;
  };
}

/** On Redis: INCR, at the first server that accepts it. */
export function redisCounter(addresses: readonly { readonly host: string; readonly port: number }[]): Counter {
  const connections = addresses.map(({ host, port }) => {
    const times = { maxRetriesPerRequest: 0, commandTimeout: 1_000, retryStrategy: () => 20 };
    const redis = new Redis({ host, port, ...TESTER_LOGIN, ...times });
    redis.on("error", () => {});
    return redis;
  });
  let turn = 0;
  return {
    // As an importer that looks for the master: the next one after each failure.
    next: async () => {
      try {
        return await (connections[turn % connections.length] as Redis).incr(KEY);
      } catch (error) {
        turn++;
        throw error;
      }
    },
    end: () => {
      for (const redis of connections) redis.disconnect();
    },
  };
}

/** On PostgreSQL, at the first server that accepts it: a sequence, or a row that is updated. */
export function postgresCounter(servers: readonly { readonly url: string }[], way: "sequence" | "row"): Counter {
  const text =
    way === "sequence"
      ? "SELECT nextval('control_sequence') AS last"
      : "UPDATE control SET last = last + 1 RETURNING last";
  let client: pg.Client | undefined;
  let turn = 0;
  return {
    next: async () => {
      await delay(SQL_EVERY_MS);
      try {
        client ??= await connectedTo(servers[turn % servers.length]?.url ?? "");
        const { rows } = await client.query(text);
        return Number(rows[0].last);
      } catch (error) {
        turn++;
        client?.end().catch(() => {});
        client = undefined;
        throw error;
      }
    },
    end: async () => void (await client?.end().catch(() => {})),
  };
}

export async function connectedTo(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1_000, query_timeout: 1_000 });
  client.on("error", () => {});
  await client.connect();
  return client;
}

/**
 * On an embedded store: a counter in SQLite, in a file next to the store's that shares its fate.
 * @param path where the counter is now; it is opened again for each number, as by a process that was killed and started again.
 */
export function sqliteCounter(path: string): Counter {
  return {
    next: async () => {
      await delay(SQL_EVERY_MS);
      const isNew = !existsSync(path);
      const database = new DatabaseSync(path);
      try {
        database.exec("PRAGMA journal_mode = WAL");
        if (isNew) database.exec("CREATE TABLE counter (last INTEGER NOT NULL); INSERT INTO counter VALUES (0)");
        return database.prepare("UPDATE counter SET last = last + 1 RETURNING last").get()["last"] as number;
      } finally {
        database.close();
      }
    },
    end: () => {},
  };
}
