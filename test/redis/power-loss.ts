/**
 * What a server finds in its folder after a loss of power, or after someone restored an older copy of it.
 * Every function that changes the folder kills the server first and leaves it ended: `start` it to see what it makes of it.
 */
import { readFile, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { appendedAof, dataFiles, type FolderContents, readContents, writeContents } from "./data-folder.js";
import { until } from "./redis-command.js";
import type { RedisServer } from "./test-redis.js";
import { holdToBeSynced, type WatchedDisk } from "./watched-disk.js";

export interface Cut {
  /** From the server's folder. */
  readonly file: string;
  readonly keptBytes: number;
  readonly lostBytes: number;
}

/**
 * All data files as they are at one instant, as a snapshot of the disk would have them: a running server is frozen meanwhile.
 * Holds also what was never synced. With `restoreFolder` it is a loss of power that kept just what was there then, for
 * machines where no disk can be watched.
 */
export async function snapshotFolder(server: RedisServer): Promise<FolderContents> {
  const wasRunning = server.state === "running";
  if (wasRunning) {
    await server.kill("SIGSTOP");
    await untilFrozen(server.pid);
  }
  try {
    return await readContents(server.directory);
  } finally {
    if (wasRunning) await server.kill("SIGCONT");
  }
}

/** Kills the server and puts the snapshot in place of its data files: those and no others, as often as one likes. */
export async function restoreFolder(server: RedisServer, snapshot: FolderContents): Promise<void> {
  await server.kill("SIGKILL");
  await writeContents(server.directory, snapshot);
  for (const file of snapshot.keys()) await holdToBeSynced(join(server.directory, file));
}

/**
 * Kills the server and cuts the end off its AOF, at any byte, as a torn write leaves it.
 * @param lost how many bytes (at most all), or random numbers from 0 to 1 that draw it: `seededRandom(seed)`.
 */
export async function cutAof(server: RedisServer, lost: number | (() => number)): Promise<Cut> {
  await server.kill("SIGKILL");
  const file = await appendedAof(server.directory);
  const { size } = await stat(join(server.directory, file));
  const lostBytes = Math.min(size, typeof lost === "number" ? lost : Math.floor(lost() * (size + 1)));
  return await cut(server, file, size - lostBytes);
}

/**
 * Kills the server and cuts each data file back to what it had synced: the least that the disk must have kept. Names are
 * taken to be kept: a new or renamed file is there, with what was synced of it, or empty.
 * Answers what was cut. The server must have been started with the disk's preload.
 */
export async function losePower(server: RedisServer, disk: WatchedDisk): Promise<Cut[]> {
  await server.kill("SIGKILL");
  const cuts: Cut[] = [];
  for (const file of await dataFiles(server.directory)) {
    const synced = await disk.syncedBytes(join(server.directory, file));
    cuts.push(await cut(server, file, synced));
  }
  if (cuts.length > 0 && cuts.every(({ keptBytes }) => keptBytes === 0))
    throw new Error(`${server.url} never synced a file that the disk saw: was it started with the disk's preload?`);
  return cuts.filter(({ lostBytes }) => lostBytes > 0);
}

async function cut(server: RedisServer, file: string, keptBytes: number): Promise<Cut> {
  const path = join(server.directory, file);
  const { size } = await stat(path);
  await truncate(path, keptBytes);
  await holdToBeSynced(path);
  return { file, keptBytes, lostBytes: size - keptBytes };
}

/** A signal is sent before it works. Where there is no /proc, sent is all that can be known. */
async function untilFrozen(pid: number): Promise<void> {
  if (process.platform !== "linux") return;
  const state = async () => /\) (\S)/.exec(await readFile(`/proc/${pid}/stat`, "utf8"))?.[1];
  await until(`process ${pid} is frozen`, state, (letter) => letter === "T");
}
