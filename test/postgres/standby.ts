/** Standbys of a test's PostgreSQL. */
import { appendFile, chown } from "node:fs/promises";
import { join } from "node:path";
import { OTHER_USER } from "./postgres-programs.js";
import type { PostgresServer } from "./postgres-server.js";

/** Writes a base backup of a server as the data of another one. `lines`: added to its settings. `signal`: what it begins as. */
export async function baseBackup(
  from: PostgresServer,
  data: string,
  lines: string,
  signal: "standby.signal" | "recovery.signal" = "standby.signal",
): Promise<void> {
  await from.program("pg_basebackup", [`--pgdata=${data}`, "--checkpoint=fast", "--wal-method=stream", "--no-sync"]);
  await appendFile(join(data, "postgresql.conf"), lines);
  await appendFile(join(data, signal), "");
  if (OTHER_USER !== undefined) await chown(join(data, signal), OTHER_USER.uid, OTHER_USER.gid);
}

/** Receives the log of a server into a folder, and acknowledges it, until the server ends the connection. */
export async function archive(from: PostgresServer, folder: string, name: string): Promise<void> {
  const words = [`--dbname=application_name=${name}`, `--directory=${folder}`, "--no-loop", "--synchronous"];
  await from.program("pg_receivewal", words).catch(() => {});
}

/** For `primary_conninfo`: the standby is called `standby` there. */
export function followed({ host, port }: PostgresServer): string {
  return `host=${host} port=${port} user=postgres application_name=standby`;
}
