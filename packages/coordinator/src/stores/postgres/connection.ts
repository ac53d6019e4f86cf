/**
 * Connections to the server, and the statements that run over them. Knows nothing of runs.
 * Invariant: a statement is sent at most once. No connection has a state of its own, so that a pooler may stand between.
 */
import pg from "pg";
// @ts-expect-error: it has no types.
import passwordFromFile from "pgpass";
import { CoordinatorError } from "../../errors.js";
import { tlsOptionsOf } from "../endpoint.js";
import { type PostgresAddress, serverOf } from "./address.js";
import { asStoreError } from "./errors.js";

/** For an answer, and for a connection. */
const TIMEOUT_MS = 5_000;
/** Steps have connections of their own: a long page of the ledger holds up none. */
const CONNECTIONS_MAX = { steps: 8, reads: 4 } as const;

/** A class of SQLSTATE: the word for it is in the server's language. */
const WARNING = /^01/;

/** A bigint as a number: none of ours is greater than a number can be. */
const NUMBERS = {
  getTypeParser: ((oid, format) =>
    oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

type Purpose = keyof typeof CONNECTIONS_MAX;
export type Row = Readonly<Record<string, unknown>>;

/** Sends one statement, once. Returns its rows, or how many rows it changed. @throws CoordinatorError. */
export type Send = (
  text: string,
  parameters?: readonly unknown[],
) => Promise<{ readonly rows: readonly Row[]; readonly rowCount: number }>;

/** What statements returned that were committed. */
interface Committed<T> {
  readonly value: T;
  /** What the server warned of meanwhile: that a standby may not have them. Empty for nothing. */
  readonly warnings: readonly string[];
}

export class PostgresConnections {
  readonly #address: PostgresAddress;
  readonly #timeoutMs: number;
  readonly #pools: Readonly<Record<Purpose, pg.Pool>>;
  #isClosed = false;

  /** `timeoutMs`: how long connecting, and each answer, may take; default 5,000. @throws CoordinatorError for a file of TLS. */
  constructor(address: PostgresAddress, timeoutMs = TIMEOUT_MS) {
    this.#address = address;
    this.#timeoutMs = timeoutMs;
    this.#pools = { steps: this.#poolOf(CONNECTIONS_MAX.steps), reads: this.#poolOf(CONNECTIONS_MAX.reads) };
  }

  /**
   * Runs statements over one connection. `send` sends each by itself, and each is committed when it returns.
   * @throws CoordinatorError `store_unavailable`: whether the last one was done is not known.
   */
  async use<T>(purpose: Purpose, run: (send: Send) => Promise<T>): Promise<Committed<T>> {
    if (this.#isClosed) throw new CoordinatorError("store_unavailable", "the store is closed");
    const client = await this.#pools[purpose].connect().catch((error: unknown) => {
      throw this.#storeError(error);
    });
    const warnings: string[] = [];
    const note = ({ code = "", message = "" }: { code?: string | undefined; message?: string | undefined }) =>
      void (WARNING.test(code) && warnings.push(message));
    client.on("notice", note);
    let isSound = false;
    try {
      const value = await run((text, parameters) => this.#send(client, text, parameters));
      isSound = true;
      return { value, warnings };
    } finally {
      client.off("notice", note);
      // What it was doing is not known: the next statement gets another connection.
      client.release(!isSound);
    }
  }

  /** As `use`, in one transaction: nothing is kept of it when `run` throws. */
  transaction<T>(run: (send: Send) => Promise<T>): Promise<Committed<T>> {
    return this.use("steps", async (send) => {
      await send("BEGIN");
      const value = await run(send);
      await send("COMMIT");
      return value;
    });
  }

  /** May be called twice. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.all(Object.values(this.#pools).map((pool) => pool.end()));
  }

  /** The error for an answer to another statement than the one sent. */
  unexpectedAnswer(): CoordinatorError {
    const text = `PostgreSQL at ${serverOf(this.#address)} answered another statement than the one sent`;
    return new CoordinatorError("store_unavailable", text);
  }

  async #send(client: pg.PoolClient, text: string, parameters: readonly unknown[] = []) {
    // Ends the connection, so that nothing that still arrives is taken for the answer to a later statement.
    const timer = setTimeout(() => client.end().catch(() => {}), this.#timeoutMs);
    try {
      const { rows, rowCount } = await client.query(text, [...parameters]);
      return { rows: rows as Row[], rowCount: rowCount ?? 0 };
    } catch (error) {
      throw this.#storeError(error);
    } finally {
      clearTimeout(timer);
    }
  }

  #storeError(error: unknown): CoordinatorError {
    return asStoreError(error, this.#address);
  }

  #poolOf(max: number): pg.Pool {
    const { host, port, database, username: user, password, tls, tlsFiles } = this.#address;
    const pool = new pg.Pool({
      host,
      port,
      database,
      user,
      // The driver reads the file by itself, and warns that it will not for long.
      password: password ?? (() => ownPasswordOf(this.#address) as Promise<string>),
      ssl: tls && tlsOptionsOf("PostgreSQL", tlsFiles),
      connectionTimeoutMillis: this.#timeoutMs,
      application_name: "callnumber",
      keepAlive: true,
      types: NUMBERS,
      max,
    });
    // A connection that breaks is replaced, and each statement reports its own failure; an event without a listener would end the process. One may
    // come with the same bytes as the end of the login, before anything uses it.
    const ignore = () => {};
    return pool.on("error", ignore).on("connect", (client) => void client.on("error", ignore));
  }
}

/** From `~/.pgpass`; undefined where it has none. */
function ownPasswordOf({ host, port, database, username: user }: PostgresAddress): Promise<string | undefined> {
  return new Promise((resolve) => {
    (passwordFromFile as (of: object, found: (password?: string) => void) => void)(
      { host, port, database, user },
      resolve,
    );
  });
}
