/** What tests use: a MariaDB of the test file's own, which ends with it. */
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import type { SqlServer } from "../processes/sql-server.js";
import { startMariadbContainer } from "./mariadb-container.js";
import { findMariadb } from "./mariadb-programs.js";
import { launchMariadb, type MariadbOptions } from "./mariadb-server.js";

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache/mariadb", import.meta.url));

/** A server that ends with the test file, or, for `ctx.skip`, why there can be none here. */
export async function startMariadb(options?: MariadbOptions): Promise<SqlServer | string> {
  const programs = await findMariadb(process.env["PATH"] ?? "", CACHE_FOLDER);
  const server = Array.isArray(programs)
    ? await startMariadbContainer(process.env["DOCKER_HOST"])
    : await launchMariadb(programs, options);
  if (typeof server === "string") return `no MariaDB can be started: ${[...(programs as string[]), server].join("; ")}`;
  started.push(server);
  return server;
}

const started: SqlServer[] = [];
// Each test file loads this module anew, so this runs at the end of each file that uses it.
afterAll(async () => {
  for (const server of started) await server.dispose();
});
