/**
 * What tests use: one PostgreSQL that all share, each test with a schema of its own, and servers of their own for tests that kill, copy or
 * configure one. A server of its own ends with the test file that started it.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, inject } from "vitest";
import type { PostgresPrograms } from "./postgres-programs.js";
import { launchPostgres, type PostgresServer, type PostgresServerOptions } from "./postgres-server.js";

declare module "vitest" {
  interface ProvidedContext {
    postgres: {
      url: string | undefined;
      programs: PostgresPrograms | undefined;
      unavailable: string | undefined;
      ownServerUnavailable: string | undefined;
    };
  }
}

export type { PostgresServer, PostgresServerOptions } from "./postgres-server.js";

const RIGHTS = fileURLToPath(new URL("../../deploy/postgres/coordinator.sql", import.meta.url));
/** The user that deploy/postgres/coordinator.sql gives its rights to. */
const STORE_USER = "callnumber";

/** Why there is no PostgreSQL for the tests, for `ctx.skip(reason)`; undefined where there is one. */
export function postgresUnavailable(): string | undefined {
  return inject("postgres").unavailable;
}

/** Why `startPostgresServer` can't work here, for `ctx.skip(reason)`; undefined when it can. */
export function ownPostgresUnavailable(): string | undefined {
  return inject("postgres").ownServerUnavailable;
}

/** The server of the whole run: it may be someone's own. For its superuser, or one that may make schemas and users. */
export function sharedPostgres(): string {
  const { url, unavailable } = inject("postgres");
  if (url === undefined) throw new Error(unavailable);
  return url;
}

/** A schema that no other test has, at a server. */
export function storeUrlAt(serverUrl: string, schema = `test_${randomUUID().replaceAll("-", "")}`): string {
  const url = new URL(serverUrl);
  url.searchParams.set("schema", schema);
  return url.href;
}

/** The same place for the user that we ship. */
export function asCoordinator(url: string): string {
  const parsed = new URL(url);
  parsed.username = STORE_USER;
  return parsed.href;
}

/** The statements that make the user, and give it what a coordinator needs of a schema. Without those that psql alone knows. */
export function shippedRights(schema: string): readonly string[] {
  const makeUser = `DO $$ BEGIN CREATE ROLE ${STORE_USER} LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`;
  const grants = readFileSync(RIGHTS, "utf8")
    .replace(/^\\.*$/gm, "")
    .replaceAll(':"schema"', schema)
    .replaceAll(':"coordinator"', STORE_USER);
  // In the one transaction that the text is: of two at once that change a role, PostgreSQL ends one.
  return [makeUser, `SELECT pg_advisory_xact_lock(1); ${grants}`];
}

/** Resolves when it answers. @throws Error when `ownPostgresUnavailable()` gives a reason, or the server does not start. */
export async function startPostgresServer(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const { programs, ownServerUnavailable } = inject("postgres");
  if (programs === undefined) throw new Error(ownServerUnavailable);
  const server = await launchPostgres(programs, options);
  started.push(server);
  return server;
}

const started: PostgresServer[] = [];
// Each test file loads this module again, so this runs at the end of each file that uses it.
afterAll(async () => {
  for (const server of started) await server.dispose();
});
