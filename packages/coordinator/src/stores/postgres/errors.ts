/** From an error of the server, or of the way to it, to an error code. */
import type { ErrorCode } from "@callnumber/protocol/api";
import { CoordinatorError } from "../../errors.js";
import { escapeAndShorten } from "../../text.js";
import { tlsFailure } from "../endpoint.js";
import { type PostgresAddress, serverOf } from "./address.js";

/** What an operator must change, by SQLSTATE. */
const HINTS: Readonly<Record<string, string>> = {
  "28P01": "it rejects user or password",
  "28000": "it rejects this user from here: see its pg_hba.conf, and whether the role may log in",
  "3D000": "it has no such database: create it",
  "25006":
    "it takes no writes: it is a replica, or default_transaction_read_only is on. Point the store's URL at the primary",
  "53100": "its disk is full. Free space there",
  "53300": "it has no connection left (max_connections, or the limit of the role)",
  "40001": "its transactions are not read committed. ALTER ROLE … SET default_transaction_isolation = 'read committed'",
  "40P01": "it ended this transaction, because two waited for each other. The next one may succeed",
  "55P03":
    "another transaction holds the record. If commits wait for a standby, start it, or take it out of synchronous_standby_names. Else see pg_stat_activity and pg_prepared_xacts",
  "57014": "the statement was canceled there, by a person or by statement_timeout",
  "57P01": "it is shutting down, or ended the connection",
  "57P02": "another process of it crashed",
  "57P03": "it is starting, or shutting down",
};

/** The schema, a table or a column of ours is gone. */
const GONE = new Set(["3F000", "42P01", "42703"]);

const RIGHTS =
  "What a coordinator needs is in deploy/postgres/coordinator.sql; init, recover and move need the owner's user";

/** What a login lacks that was made as a printed command shows it, without password or user: the driver and the server say it in words alone. */
const LOGIN_MISSING = /client password must be a string|no PostgreSQL user name/;

/** What the epoch or the count of standbys is read from: the server's own, whose name stands in the message in any language. */
const OF_SERVER = /\bpg_\w+/;
const VIEWS = new Set(["pg_database", "pg_replication_slots", "pg_roles", "pg_stat_replication"]);

/** The error for whatever a statement rejected with. */
export function asStoreError(error: unknown, address: PostgresAddress): CoordinatorError {
  if (error instanceof CoordinatorError) return error;
  const server = serverOf(address);
  const state = sqlStateOf(error);
  const { message } = address.tls ? tlsFailure(error as Error) : (error as Error);
  const text = escapeAndShorten(message);
  // The driver's own error holds the parameters.
  const as = (code: ErrorCode, what: string) => new CoordinatorError(code, what, { cause: new Error(text) });
  if (LOGIN_MISSING.test(message)) {
    const remedy = "Set CALLNUMBER_STORE to the whole URL, or put the password into ~/.pgpass (mode 600)";
    return as("store_unavailable", `PostgreSQL at ${server} wants a user and a password. ${remedy}`);
  }
  if (state === undefined) return as("store_unavailable", `PostgreSQL at ${server} can't be reached: ${text}`);
  if (GONE.has(state)) {
    // Tables can be made again, and no column of theirs.
    const orMakeThem = state === "42703" ? "" : ", or run what callnumber doctor prints";
    const remedy = `Another program has changed the schema "${address.schema}". Restore it${orMakeThem}`;
    return as("store_corrupt", `the store's tables can't be used: ${text}. ${remedy}`);
  }
  const rejected = `PostgreSQL at ${server} rejected:`;
  const [denied] = (state === "42501" && OF_SERVER.exec(message)) || [];
  if (denied === undefined || denied === address.database) {
    return as("store_unavailable", `${rejected} ${state === "42501" ? `${text}. ${RIGHTS}` : (HINTS[state] ?? text)}`);
  }
  const right = VIEWS.has(denied) ? "SELECT" : "EXECUTE";
  return as("store_epoch_unreadable", `${rejected} ${text}. Grant ${right} on ${denied} to the coordinator's user`);
}

/** Five characters; undefined for an error that is not the server's: EPIPE has five, too. */
function sqlStateOf(error: unknown): string | undefined {
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  return typeof code === "string" && typeof severity === "string" ? code : undefined;
}
