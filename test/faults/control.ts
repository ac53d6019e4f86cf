/**
 * The control: a plain counter in the same store under the same faults. It must repeat numbers, or the faults were none: a run in
 * which it repeats nothing proves nothing.
 */
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";
import { Redis } from "ioredis";
import { TESTER_LOGIN } from "../redis/shipped-users.js";

export interface Control {
  /** Different numbers. */
  readonly count: number;
  readonly repeatCount: number;
  /** `onNumber` gets each number, also one that came before; the next one is made when it resolves. */
  start(onNumber: (number: number) => Promise<void> | void): void;
  stop(): Promise<void>;
}

interface Counter {
  /** The next number, from the server that keeps the counter now. */
  next(): Promise<number>;
  end(): void;
}

/** As an importer: it tries again. */
const RETRY_MS = 5;
const KEY = "control";
/** A loop of synchronous writes would leave no processor time to others. */
const SQLITE_EVERY_MS = 2;

export class CounterControl implements Control {
  repeatCount = 0;
  readonly #seen = new Set<number>();
  #isStopped = false;
  #working: Promise<void> = Promise.resolve();

  constructor(readonly counter: Counter) {}

  start(onNumber: (number: number) => Promise<void> | void): void {
    this.#working = this.#work(onNumber);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#working;
    this.counter.end();
  }

  get count(): number {
    return this.#seen.size;
  }

  async #work(onNumber: (number: number) => Promise<void> | void): Promise<void> {
    while (!this.#isStopped) {
      try {
        const number = await this.counter.next();
        if (this.#seen.has(number)) this.repeatCount++;
        this.#seen.add(number);
        await onNumber(number);
      } catch {
        await delay(RETRY_MS);
      }
    }
  }
}

/** On Redis: INCR, at the first server that accepts it. */
export function redisControl(addresses: readonly { readonly host: string; readonly port: number }[]): Control {
  const connections = addresses.map(({ host, port }) => {
    const times = { maxRetriesPerRequest: 0, commandTimeout: 1_000, retryStrategy: () => 20 };
    const redis = new Redis({ host, port, ...TESTER_LOGIN, ...times });
    redis.on("error", () => {});
    return redis;
  });
  let turn = 0;
  return new CounterControl({
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
  });
}

/**
 * On an embedded store: a counter in SQLite, in a file next to the store's that shares its fate.
 * @param path where the counter is now; it is opened again for each number, as by a process that was killed and started again.
 */
export function sqliteControl(path: () => string): Control {
  return new CounterControl({
    next: async () => {
      await delay(SQLITE_EVERY_MS);
      const isNew = !existsSync(path());
      const database = new DatabaseSync(path());
      try {
        database.exec("PRAGMA journal_mode = WAL");
        if (isNew) database.exec("CREATE TABLE counter (last INTEGER NOT NULL); INSERT INTO counter VALUES (0)");
        return database.prepare("UPDATE counter SET last = last + 1 RETURNING last").get()["last"] as number;
      } finally {
        database.close();
      }
    },
    end: () => {},
  });
}
