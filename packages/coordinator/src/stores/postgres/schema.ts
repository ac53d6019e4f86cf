/** The tables of the store: made once, in one transaction, where they are missing, and used only in the version that this release knows. */
import { readFileSync } from "node:fs";
import { commandLine } from "@callnumber/protocol/api";
import { CoordinatorError } from "../../errors.js";
import { type PostgresAddress, serverOf } from "./address.js";
import type { PostgresConnections } from "./connection.js";

const SCHEMA_VERSION = 1;

export interface SchemaOptions {
  /** Makes the tables that are missing. */
  readonly create: boolean;
  /** Called where some are missing. @throws CoordinatorError to make none. */
  readonly mustNotBeLost?: (() => void) | undefined;
}

/** Those of sql/store.sql. */
const TABLES = ["store", "namespaces", "holders", "leases"] as const;

const LOOK = `SELECT to_regnamespace('"' || $1 || '"') IS NOT NULL AS has_schema, current_setting('server_encoding') AS encoding,
  ARRAY(SELECT name FROM unnest($2::text[]) AS name WHERE to_regclass('"' || $1 || '".' || name) IS NULL) AS missing`;

/**
 * Returns whether all tables were made, none of them having been there.
 * @throws CoordinatorError `store_not_found`, `store_corrupt`, `store_schema_unsupported`, `store_unavailable`.
 */
export async function prepareSchema(
  connections: PostgresConnections,
  { create, mustNotBeLost, ...address }: PostgresAddress & SchemaOptions,
): Promise<boolean> {
  const { schema } = address;
  const { value: found } = await connections.use("reads", async (send) => {
    const [row = {}] = (await send(LOOK, [schema, TABLES])).rows;
    const missing = row["missing"] as readonly string[];
    if (missing.includes("store")) return { ...row, missing, version: undefined };
    const [{ schema_version: version } = {}] = (await send(`SELECT schema_version FROM "${schema}".store`)).rows;
    return { ...row, missing, version };
  });
  const { encoding, has_schema, missing, version } = found as Found;
  if (encoding !== "UTF8") {
    const text = `the database ${address.database} has the encoding ${encoding}; a store needs UTF8. Use another database`;
    throw new CoordinatorError("store_schema_unsupported", text);
  }
  if (version !== undefined && version !== SCHEMA_VERSION) {
    const text = `the store has schema version ${version}; this release reads version ${SCHEMA_VERSION}. Use the release that wrote it`;
    throw new CoordinatorError("store_schema_unsupported", text);
  }
  if (version === SCHEMA_VERSION && missing.length === 0) return false;
  mustNotBeLost?.();
  const isNew = missing.length === TABLES.length;
  if (!create) throw isNew ? notFound(address) : incomplete(address, missing);
  const tables = readFileSync(new URL("../../../sql/store.sql", import.meta.url), "utf8");
  await connections.transaction(async (send) => {
    if (has_schema !== true) await send(`CREATE SCHEMA "${schema}"`);
    await send(`SET LOCAL search_path TO "${schema}"`);
    // Several statements at once take no parameters, and are one message all the same.
    await send(tables);
  });
  return isNew;
}

interface Found {
  readonly encoding: string;
  readonly has_schema: boolean;
  readonly missing: readonly string[];
  /** Undefined without a table or a row that has it. */
  readonly version: unknown;
}

function notFound(address: PostgresAddress): CoordinatorError {
  const { database, schema } = address;
  return new CoordinatorError(
    "store_not_found",
    `there is no store in the schema "${schema}" of ${database} at ${serverOf(address)}. If an archive has call numbers, restore its schema. ` +
      `To begin a new one: ${commandLine("init", undefined)}`,
  );
}

/** What is left of it may have a record, of which a new store would know nothing. */
function incomplete({ schema }: PostgresAddress, missing: readonly string[]): CoordinatorError {
  const lacks = missing.length > 0 ? `its ${missing.join(", ")}` : "the row of its table store";
  return new CoordinatorError(
    "store_corrupt",
    `the store in the schema "${schema}" lacks ${lacks}. Restore it; or, to make what is missing and recover: ` +
      `\`${commandLine("recover", undefined, { "store-id": "STORE_ID" })}\``,
  );
}
