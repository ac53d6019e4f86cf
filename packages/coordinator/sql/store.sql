-- The tables of a store in PostgreSQL, version 1. `callnumber init` runs this file in one transaction, in the schema
-- that the store's URL names. So does `recover --apply` where some are missing: it makes those, and changes no other.
-- deploy/postgres/coordinator.sql grants a coordinator what it needs of them.

CREATE TABLE IF NOT EXISTS store (
  schema_version integer PRIMARY KEY
);
INSERT INTO store SELECT 1 WHERE NOT EXISTS (SELECT FROM store);

-- A namespace keeps its record as the guard writes it, field by field; k is the SHA-256 of the others, a line each.
-- Up to the ledger id trimmed_through its ledger was trimmed. Half of a page stays free, because the row is written
-- with each lease, and a new version of it fits next to the old one.
CREATE TABLE IF NOT EXISTS namespaces (
  name text COLLATE "C" PRIMARY KEY,
  v text, ns text, sid text, ver text, c text, t text, ep text, g text, p text, n text, rk text, ph text, k text,
  retention_days integer NOT NULL DEFAULT 0,
  trimmed_through bigint NOT NULL DEFAULT 0,
  trimmed_leased_at_ms bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The id comes from the JSON, so that nothing is looked up for a lease, and no sequence can go back.
CREATE TABLE IF NOT EXISTS holders (
  id uuid PRIMARY KEY,
  name text NOT NULL,
  json text NOT NULL
);
CREATE INDEX IF NOT EXISTS holders_by_name ON holders (name);

-- A lease has the ledger id of its last run, so that the lease of a run is the first one at or after it.
CREATE TABLE IF NOT EXISTS leases (
  namespace text COLLATE "C" NOT NULL REFERENCES namespaces,
  last_ledger_id bigint NOT NULL,
  run_count integer NOT NULL,
  leased_at_ms bigint NOT NULL,
  holder_id uuid NOT NULL REFERENCES holders,
  nonce text NOT NULL,
  progress_run integer,
  progress_sequence integer,
  progress_state text,
  progress_at_ms bigint,
  PRIMARY KEY (namespace, last_ledger_id)
);
CREATE INDEX IF NOT EXISTS leases_by_time ON leases (namespace, leased_at_ms, last_ledger_id);
