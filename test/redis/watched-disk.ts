/**
 * What servers of a test's own have had synced to disk, file by file; a disk that takes its time; and a loss of power.
 * Nothing else is known to outlive a loss of power, however much the files hold while the machine runs.
 */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { readdir, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { compiledShim, folderForLibrary, writeMicros } from "./preload-shim.js";
import type { Preload, RedisServer } from "./redis-server.js";

const SOURCE = "watched-disk.c";
/** They are in the directory of a server too, and are not data. */
const NOT_DATA = new Set(["redis.conf", "redis.log", "redis.sock", "users.acl"]);

export interface WatchedDisk {
  /** For `preloads` of each server whose files shall be watched. */
  readonly preload: Preload;
  /** From now on each sync takes this much longer; at first 0. An orderly `stop` syncs too, and so wants 0 again. */
  slowSyncs(delayMs: number): void;
  /** How many of the file's first bytes were ever synced, at most as many as it now has. */
  syncedBytes(path: string): Promise<number>;
  /**
   * Kills the server and cuts each data file back to what it had synced: the least that the disk must have kept. A new or renamed file
   * is there, with what was synced of it, or empty.
   */
  losePower(server: RedisServer): Promise<void>;
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
  const syncedBytes = async (path: string) => {
    const { name, size } = await fileAt(path);
    return Math.min(size, bytesInLog(readFileSync(log, "utf8"), name));
  };
  return {
    preload: { library: shim.library, environment: { WATCHED_DISK_LOG: log, WATCHED_DISK_DELAY: delay }, config: {} },
    slowSyncs: (delayMs) => writeMicros(delay, delayMs),
    syncedBytes,
    async losePower(server) {
      await server.kill("SIGKILL");
      const entries = await readdir(server.directory, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile() && !NOT_DATA.has(entry.name));
      let syncedTotal = 0;
      for (const { parentPath, name } of files) {
        const path = join(parentPath, name);
        const synced = await syncedBytes(path);
        await truncate(path, synced);
        // What is left was synced, whatever this file is called from now on.
        const { name: file } = await fileAt(path);
        appendFileSync(log, `sync ${file} ${synced}\n`);
        syncedTotal += synced;
      }
      if (files.length > 0 && syncedTotal === 0)
        throw new Error(`${server.url} never synced a file that the disk saw: was it started with the disk's preload?`);
    },
  };
}

async function fileAt(path: string): Promise<{ name: string; size: number }> {
  const { ino, birthtimeNs, size } = await stat(path, { bigint: true });
  return { name: `${ino} ${birthtimeNs}`, size: Number(size) };
}

/** Of a file that was cut after its last sync, returns what is left of that sync. */
function bytesInLog(log: string, file: string): number {
  let synced = 0;
  for (const [, event, of, bytes] of log.matchAll(/^(sync|cut) (\d+ -?\d+) (\d+)$/gm)) {
    if (of !== file) continue;
    synced = event === "sync" ? Number(bytes) : Math.min(synced, Number(bytes));
  }
  return synced;
}
