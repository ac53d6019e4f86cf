/**
 * What servers of a test's own have had synced to disk, file by file, and a disk that takes its time.
 * Nothing else is known to outlive a loss of power, however much the files hold while the machine runs.
 */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { compiledShim } from "./preload-shim.js";
import type { Preload } from "./redis-server.js";
import { folderForLibrary, writeMicros } from "./shared-number.js";

const SOURCE = "watched-disk.c";

export interface WatchedDisk {
  /** For `preloads` of each server whose files shall be watched. */
  readonly preload: Preload;
  /** From now on each sync takes this much longer; at first 0. An orderly `stop` syncs too, and so wants 0 again. */
  slowSyncs(delayMs: number): void;
  /** How many of the file's first bytes were ever synced, at most as many as it now has. */
  syncedBytes(path: string): Promise<number>;
}

/** Why `createWatchedDisk` cannot work here, for `ctx.skip(reason)`; undefined when it can. */
export function watchedDiskUnavailable(): string | undefined {
  const shim = compiledShim(SOURCE);
  return "unavailable" in shim ? `no one can see what a server syncs: ${shim.unavailable}` : undefined;
}

/**
 * Watches no server yet. Its own files are removed at the end of the test file.
 * @throws Error when `watchedDiskUnavailable()` gives a reason.
 */
export function createWatchedDisk(): WatchedDisk {
  const shim = compiledShim(SOURCE);
  if ("unavailable" in shim) throw new Error(shim.unavailable);
  const folder = folderForLibrary();
  const [log, delay] = [join(folder, "synced.txt"), join(folder, "delay-micros")];
  writeFileSync(log, "");
  writeMicros(delay, 0);
  logs.push(log);
  return {
    preload: { library: shim.library, environment: { WATCHED_DISK_LOG: log, WATCHED_DISK_DELAY: delay }, config: {} },
    slowSyncs: (delayMs) => writeMicros(delay, delayMs),
    async syncedBytes(path) {
      const { name, size } = await fileAt(path);
      return Math.min(size, bytesInLog(readFileSync(log, "utf8"), name));
    },
  };
}

/** To be called for a file that a test has put into a server's folder or cut there: every disk holds it to be synced as it is. */
export async function holdToBeSynced(path: string): Promise<void> {
  const { name, size } = await fileAt(path);
  for (const log of logs) appendFileSync(log, `sync ${name} ${size}\n`);
}
const logs: string[] = [];

async function fileAt(path: string): Promise<{ name: string; size: number }> {
  const { ino, birthtimeNs, size } = await stat(path, { bigint: true });
  return { name: `${ino} ${birthtimeNs}`, size: Number(size) };
}

/** Of a file that was cut after its last sync, what is left of that sync. */
function bytesInLog(log: string, file: string): number {
  let synced = 0;
  for (const [, event, of, bytes] of log.matchAll(/^(sync|cut) (\d+ -?\d+) (\d+)$/gm)) {
    if (of !== file) continue;
    synced = event === "sync" ? Number(bytes) : Math.min(synced, Number(bytes));
  }
  return synced;
}
