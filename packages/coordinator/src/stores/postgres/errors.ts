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
  "42501":
    "its rights do not let this user do that. What a coordinator needs is in deploy/postgres/coordinator.sql; init, recover and move need the owner's user",
  "25006":
    "it takes no writes: it is a replica, or default_transaction_read_only is on. Point the store's URL at the primary",
  "53100": "its disk is full. Free space there",
  "53300": "it has no connection left (max_connections, or the limit of the role)",
  "40001": "its transactions are not read committed. ALTER ROLE … SET default_transaction_isolation = 'read committed'",
  "40P01": "it ended this transaction, because two waited for each other. The next one may succeed",
  "55P03":
    "another transaction holds the record: perhaps one that waits for a standby that is away. pg_stat_activity or pg_prepared_xacts shows it: end it",
  "57014": "the statement was canceled there, by a person or by statement_timeout",
  "57P01": "it is shutting down, or ended the connection",
  "57P02": "another process of it crashed",
  "57P03": "it is starting, or shutting down",
};

/** The schema, a table or a column of ours is gone. */
const GONE = new Set(["3F000", "42P01", "42703"]);

/** A function that the epoch or the count of standbys is read with. */
const FUNCTION_DENIED = /^permission denied for (function|view) (pg_\w+)$/;

/** The error for whatever a statement rejected with. */
export function asStoreError(error: unknown, address: PostgresAddress): CoordinatorError {
  if (error instanceof CoordinatorError) return error;
  const server = serverOf(address);
  const state = sqlStateOf(error);
  const { message } = address.tls ? tlsFailure(error as Error) : (error as Error);
  const text = escapeAndShorten(message);
  // The driver's own error holds the parameters.
  const as = (code: ErrorCode, what: string) => new CoordinatorError(code, what, { cause: new Error(text) });
  if (state === undefined) return as("store_unavailable", `PostgreSQL at ${server} can't be reached: ${text}`);
  if (GONE.has(state)) {
    const remedy = `Restore the schema "${address.schema}", or another program has changed it`;
    return as("store_corrupt", `the store's tables can't be used: ${text}. ${remedy}`);
  }
  const rejected = `PostgreSQL at ${server} rejected:`;
  const [, kind, denied] = (state === "42501" && FUNCTION_DENIED.exec(message)) || [];
  if (denied === undefined) return as("store_unavailable", `${rejected} ${HINTS[state] ?? text}`);
  const right = kind === "view" ? "SELECT" : "EXECUTE";
  return as("store_epoch_unreadable", `${rejected} ${text}. Grant ${right} on ${denied} to the coordinator's user`);
}

/** Five characters; undefined for an error that is not the server's: EPIPE has five, too. */
function sqlStateOf(error: unknown): string | undefined {
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  return typeof code === "string" && typeof severity === "string" ? code : undefined;
}
