/** What tests use: a PostgreSQL of the test file's own, which ends with it. */
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import type { SqlServer } from "../processes/sql-server.js";
import { findPostgres } from "./postgres-programs.js";
import { launchPostgres, type PostgresOptions, whyNotAsRoot } from "./postgres-server.js";

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache/postgres", import.meta.url));

/** A server that ends with the test file, or, for `ctx.skip`, why there can be none here. */
export async function startPostgres(options?: PostgresOptions): Promise<SqlServer | string> {
  const programs = await findPostgres(process.env["PATH"] ?? "", CACHE_FOLDER);
  if (Array.isArray(programs)) return `no PostgreSQL can be started: ${programs.join("; ")}`;
  const refusal = await whyNotAsRoot(programs);
  if (refusal !== undefined) return `no PostgreSQL can be started: ${refusal}`;
  const server = await launchPostgres(programs, options);
  started.push(server);
  return server;
}

const started: SqlServer[] = [];
// Each test file loads this module anew, so this runs at the end of each file that uses it.
afterAll(async () => {
  for (const server of started) await server.dispose();
});
