/** What tests use: a MariaDB of the test file's own, which ends with it. */
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import type { SqlServer } from "../processes/sql-server.js";
import { startMariadbContainer } from "./mariadb-container.js";
import { findMariadb } from "./mariadb-programs.js";
import { launchMariadb, type MariadbOptions } from "./mariadb-server.js";

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache/mariadb", import.meta.url));

/** A server that ends with the test file, or, for `ctx.skip`, why there can be none here. A container takes no options. */
export async function startMariadb(options?: MariadbOptions): Promise<SqlServer | string> {
  const programs = await findMariadb(process.env["PATH"] ?? "", CACHE_FOLDER);
  if (!Array.isArray(programs)) return endingWithFile(await launchMariadb(programs, options));
  const container = await startMariadbContainer(process.env["DOCKER_HOST"]);
  if (typeof container !== "string") return endingWithFile(container);
  return `no MariaDB can be started: ${[...programs, container].join("; ")}`;
}

function endingWithFile(server: SqlServer): SqlServer {
  started.push(server);
  return server;
}

const started: SqlServer[] = [];
// Each test file loads this module anew, so this runs at the end of each file that uses it.
afterAll(async () => {
  for (const server of started) await server.dispose();
});
