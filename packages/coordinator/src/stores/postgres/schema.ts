/** The tables of the store: made once, in one transaction, and used only in the version that this release knows. */
import { readFileSync } from "node:fs";
import { shellWord } from "@callnumber/protocol/api";
import { CoordinatorError } from "../../errors.js";
import { commandUrlOf } from "../store-url.js";
import { type PostgresAddress, serverOf } from "./address.js";
import type { PostgresConnections } from "./connection.js";

const SCHEMA_VERSION = 1;

export interface SchemaOptions {
  /** Makes the tables where there are none. */
  readonly create: boolean;
  /** Called where there are none. @throws CoordinatorError to make none. */
  readonly mustNotBeLost?: (() => void) | undefined;
}

const LOOK = `SELECT to_regnamespace($1) IS NOT NULL AS has_schema, to_regclass($2) IS NOT NULL AS has_tables,
  current_setting('server_encoding') AS encoding`;

/** Returns whether the tables were made. @throws CoordinatorError `store_not_found`, `store_schema_unsupported`, `store_unavailable`. */
export async function prepareSchema(
  connections: PostgresConnections,
  { create, mustNotBeLost, ...address }: PostgresAddress & SchemaOptions,
): Promise<boolean> {
  const { schema } = address;
  const { value } = await connections.use("reads", async (send) => {
    const [found = {}] = (await send(LOOK, [`"${schema}"`, `"${schema}".store`])).rows;
    if (found["has_tables"] !== true) return { ...found, version: undefined };
    const [row = {}] = (await send(`SELECT schema_version FROM "${schema}".store`)).rows;
    return { ...found, version: row["schema_version"] };
  });
  const { encoding, has_schema, version } = value as Record<string, unknown>;
  if (encoding !== "UTF8") {
    const text = `the database ${address.database} has the encoding ${encoding}; a store needs UTF8. Use another database`;
    throw new CoordinatorError("store_schema_unsupported", text);
  }
  if (version === SCHEMA_VERSION) return false;
  if (version !== undefined) {
    const text = `the store has schema version ${version}; this release reads version ${SCHEMA_VERSION}. Use the release that wrote it`;
    throw new CoordinatorError("store_schema_unsupported", text);
  }
  mustNotBeLost?.();
  if (!create) throw missing(address);
  const tables = readFileSync(new URL("../../../sql/store.sql", import.meta.url), "utf8");
  await connections.transaction(async (send) => {
    if (has_schema !== true) await send(`CREATE SCHEMA "${schema}"`);
    await send(`SET LOCAL search_path TO "${schema}"`);
    // Several statements at once take no parameters, and are one message all the same.
    await send(tables);
  });
  return true;
}

function missing(address: PostgresAddress): CoordinatorError {
  const { database, schema } = address;
  return new CoordinatorError(
    "store_not_found",
    `there is no store in the schema "${schema}" of ${database} at ${serverOf(address)}. If an archive has call numbers, restore its schema. ` +
      `To begin a new one: callnumber init --store ${shellWord(commandUrlOf(address))}`,
  );
}
