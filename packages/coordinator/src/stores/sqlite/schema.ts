/** The tables of an embedded store, and how its database differs from the databases of other programs. */
import type { DatabaseSyncInstance } from "@photostructure/sqlite";
import { CoordinatorError } from "../../errors.js";
import { syncFolderOf } from "./file-checks.js";
import { IDENTITY_SCHEMA, keepIdentity } from "./file-identity.js";

/** "CALL": distinguishes our files from those of other programs that use SQLite. */
const APPLICATION_ID = 0x43414c4c;
const SCHEMA_VERSION = 4;

/**
 * A namespace keeps its record as the guard writes it, field by field, under its checksum. A ledger entry holds the last ledger id
 * of its lease, so that the lease of a run is the first entry at or after it. Up to the ledger id `through` of its retention the ledger
 * was trimmed.
 */
const SCHEMA = `
  CREATE TABLE namespaces (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    v TEXT, ns TEXT, sid TEXT, ver TEXT, c TEXT, t TEXT, ep TEXT, g TEXT, p TEXT, n TEXT, rk TEXT, ph TEXT, k TEXT
  ) STRICT;
  CREATE TABLE holders (
    id INTEGER PRIMARY KEY,
    json TEXT NOT NULL UNIQUE
  ) STRICT;
  CREATE TABLE leases (
    namespace_id INTEGER NOT NULL REFERENCES namespaces,
    last_ledger_id INTEGER NOT NULL,
    run_count INTEGER NOT NULL,
    leased_at_ms INTEGER NOT NULL,
    holder_id INTEGER NOT NULL REFERENCES holders,
    nonce TEXT NOT NULL,
    progress_run INTEGER,
    progress_sequence INTEGER,
    progress_state TEXT,
    progress_at_ms INTEGER,
    PRIMARY KEY (namespace_id, last_ledger_id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE retention (
    namespace_id INTEGER PRIMARY KEY REFERENCES namespaces,
    days INTEGER NOT NULL DEFAULT 0,
    through INTEGER NOT NULL DEFAULT 0,
    leased_at_ms INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX leases_by_time ON leases (namespace_id, leased_at_ms, last_ledger_id);
  ${IDENTITY_SCHEMA}
`;

/** True also for what a process leaves that dies while it makes the file. */
export function holdsNothing(database: DatabaseSyncInstance): boolean {
  const { tables } = database.prepare("SELECT count(*) AS tables FROM sqlite_master").get() as { tables: number };
  return tables === 0 && pragma(database, "application_id") === 0;
}

/** Makes an empty database at `path` a store: wholly or not at all. */
export function makeSchema(database: DatabaseSyncInstance, path: string): void {
  database.exec(`BEGIN IMMEDIATE;
    PRAGMA application_id = ${APPLICATION_ID};
    PRAGMA user_version = ${SCHEMA_VERSION};
    ${SCHEMA}`);
  keepIdentity(database, path);
  database.exec("COMMIT");
  syncFolderOf(path);
}

/** @throws CoordinatorError `store_corrupt`, `store_schema_unsupported`. */
export function mustBeOurs(database: DatabaseSyncInstance, path: string): void {
  if (pragma(database, "application_id") !== APPLICATION_ID) {
    throw new CoordinatorError(
      "store_corrupt",
      `${path} is an SQLite database, but not a Callnumber store; nothing was changed in it`,
    );
  }
  const schemaVersion = pragma(database, "user_version");
  if (schemaVersion !== SCHEMA_VERSION) {
    const message = `the store ${path} has schema version ${schemaVersion}; this release reads version ${SCHEMA_VERSION}. Use the release that wrote it`;
    throw new CoordinatorError("store_schema_unsupported", message);
  }
}

function pragma(database: DatabaseSyncInstance, name: string): unknown {
  return (database.prepare(`PRAGMA ${name}`).get() as Record<string, unknown>)[name];
}
