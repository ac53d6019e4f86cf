/** A PgBouncer of a test's own: from this machine, else from Debian's packages, unpacked without root. */
import { existsSync } from "node:fs";
import { chown, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { onTestFinished } from "vitest";
import { unpackDebianPackages } from "../debian/unpacked-packages.js";
import { freePort, launch } from "../processes/server-process.js";
import { OTHER_USER } from "./postgres-programs.js";
import type { PostgresServer } from "./postgres-server.js";

type Pgbouncer =
  | { readonly program: string; readonly environment: NodeJS.ProcessEnv; readonly missing?: undefined }
  | { readonly missing: string };

export async function findPgbouncer(): Promise<Pgbouncer> {
  const path = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"];
  const installed = path.map((folder) => join(folder, "pgbouncer")).find((file) => existsSync(file));
  if (installed !== undefined) return { program: installed, environment: {} };
  const unpacked = await unpackDebianPackages("pgbouncer", ["pgbouncer"], ({ home, libraryPath }) => {
    const program = join(home, "usr/sbin/pgbouncer");
    return existsSync(program) ? { program, environment: { LD_LIBRARY_PATH: libraryPath } } : undefined;
  });
  return typeof unpacked === "string" ? { missing: unpacked } : unpacked;
}

/** In transaction mode, with two sessions at the server for all clients, in turns. It ends with the test. */
export async function startPgbouncer(
  { program, environment }: Extract<Pgbouncer, { readonly program: string }>,
  server: Pick<PostgresServer, "host" | "port">,
): Promise<{ readonly port: number }> {
  const folder = await mkdtemp(join(tmpdir(), "callnumber-pgbouncer-"));
  const port = await freePort();
  const settings = [
    "[databases]",
    `postgres = host=${server.host} port=${server.port} dbname=postgres`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
    "default_pool_size = 2",
    "server_round_robin = 1",
    "max_client_conn = 100",
  ];
  // With any user: each is the superuser at the server, which would hide a missing right.
  const databases = settings.map((line) => line.replace("dbname=postgres", "dbname=postgres user=callnumber"));
  await writeFile(join(folder, "pgbouncer.ini"), `${databases.join("\n")}\n`);
  if (OTHER_USER !== undefined) await chown(folder, OTHER_USER.uid, OTHER_USER.gid);
  const words = [join(folder, "pgbouncer.ini")];
  const command = { program, words, environment, ...(OTHER_USER && { asUser: OTHER_USER }) };
  const running = await launch(command, async ({ log }) => {
    if (!log().includes("process up")) throw new Error("not up");
  });
  onTestFinished(async () => {
    await running.kill();
    await rm(folder, { recursive: true, force: true });
  });
  return { port };
}
