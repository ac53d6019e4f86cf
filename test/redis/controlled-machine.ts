/**
 * A small C library that is loaded into servers before their own (LD_PRELOAD): a wall clock that can be moved while they run, a disk that
 * is slow, and a loss of power. Everything in a server sees its clock move, as if the machine's time was set; the monotonic clock goes on.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { readdir, stat, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import { command, type Reachable, until } from "./redis-command.js";
import type { Preload, RedisServer } from "./redis-server.js";

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache/shims", import.meta.url));
const SOURCE = fileURLToPath(new URL("controlled-machine.c", import.meta.url));
const COMPILERS = ["cc", "gcc", "clang"];
const MICROS_PER_MS = 1_000;
/** TIME is cut to microseconds and Date.now to milliseconds. */
const ROUNDING_MS = 2;
/** They are in the directory of a server too, and are not data. */
const NOT_DATA = new Set(["redis.conf", "redis.sock", "users.acl"]);

export interface ControlledMachine {
  /** For `preload` of each server that shall run on it. */
  readonly preload: Preload;
  readonly clock: {
    /**
     * Sets how far the clock is ahead of this machine's, or behind it if negative; at first 0. Each call counts from the
     * machine's clock, not from the last call. Resolves when TIME of each given server shows it.
     */
    move(offsetMs: number, ...servers: readonly Reachable[]): Promise<void>;
  };
  readonly disk: {
    /** From now on each sync takes this much longer; at first 0. An orderly `stop` syncs too, and so wants 0 again. */
    slowSyncs(delayMs: number): void;
    /** How many of the file's first bytes were ever synced, at most as many as it now has. */
    syncedBytes(path: string): Promise<number>;
    /**
     * Kills the server and cuts each data file back to what it had synced: the least that the disk must have kept. A new or renamed file
     * is there, with what was synced of it, or empty. Nothing else is known to outlive a loss of power.
     */
    losePower(server: RedisServer): Promise<void>;
  };
}

/** Why `newControlledMachine` cannot work here, for `ctx.skip(reason)`; undefined when it can. */
export function controlledMachineUnavailable(): string | undefined {
  const compiled = compiledLibrary();
  return "unavailable" in compiled ? `no clock or disk can be controlled: ${compiled.unavailable}` : undefined;
}

/**
 * No server runs on it yet. Its own files are removed at the end of the test file.
 * @throws Error when `controlledMachineUnavailable()` gives a reason.
 */
export function newControlledMachine(): ControlledMachine {
  const compiled = compiledLibrary();
  if ("unavailable" in compiled) throw new Error(compiled.unavailable);
  const directory = mkdtempSync(join(tmpdir(), "callnumber-preload-"));
  directories.push(directory);
  const [log, offset, delay] = [join(directory, "synced"), join(directory, "offset"), join(directory, "delay")];
  writeFileSync(log, "");
  for (const path of [offset, delay]) writeMicros(path, 0);
  const syncedBytes = async (path: string) => {
    const { name, size } = await fileAt(path);
    return Math.min(size, bytesInLog(readFileSync(log, "utf8"), name));
  };
  return {
    preload: {
      library: compiled.library,
      environment: { SYNC_LOG: log, MOVED_CLOCK_FILE: offset, SLOW_SYNC_FILE: delay },
      // Its thread sleeps until an hour of the moved clock by the kernel's own, and so would never or always be awake.
      config: { "jemalloc-bg-thread": "no" },
    },
    clock: {
      async move(offsetMs, ...servers) {
        writeMicros(offset, offsetMs);
        await Promise.all(servers.map((server) => untilMoved(server, offsetMs)));
      },
    },
    disk: {
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
          throw new Error(`${server.url} never synced a file that was watched: was it started with the preload?`);
      },
    },
  };
}

const directories: string[] = [];
afterAll(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

async function untilMoved(server: Reachable, offsetMs: number): Promise<void> {
  const bounds = async () => {
    const askedMs = Date.now();
    const [seconds, micros] = (await command(server, "TIME")) as [string, string];
    const timeMs = Number(seconds) * 1_000 + Number(micros) / MICROS_PER_MS;
    return { leastMs: timeMs - Date.now() - ROUNDING_MS, mostMs: timeMs - askedMs + ROUNDING_MS };
  };
  const isThere = ({ leastMs, mostMs }: { leastMs: number; mostMs: number }) =>
    leastMs <= offsetMs && offsetMs <= mostMs;
  await until(`TIME of ${server.url} is moved by ${offsetMs} ms`, bounds, isThere);
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

/**
 * The path of the compiled library, or why there is none. Compiled once for each text of the source, into node_modules/.cache.
 * A compiler's complaint is a reason too: what the source uses does not exist on every system.
 */
function compiledLibrary(): { library: string } | { unavailable: string } {
  if (process.platform !== "linux") return { unavailable: `LD_PRELOAD is Linux's, and this is ${process.platform}` };
  // Another machine may share the folder: the architecture is part of the name.
  const digest = createHash("sha256").update(readFileSync(SOURCE)).digest("hex").slice(0, 16);
  const library = join(CACHE_FOLDER, `controlled-machine-${process.arch}-${digest}.so`);
  if (existsSync(library)) return { library };

  const compiler = COMPILERS.find((name) => spawnSync(name, ["--version"]).status === 0);
  if (!compiler) return { unavailable: `no C compiler on PATH (${COMPILERS.join(", ")})` };
  mkdirSync(CACHE_FOLDER, { recursive: true });
  const scratch = `${library}.${process.pid}`;
  const { status, stderr } = spawnSync(
    compiler,
    ["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", scratch, SOURCE, "-ldl"],
    { encoding: "utf8" },
  );
  if (status !== 0) return { unavailable: `${compiler} could not compile ${SOURCE}: ${stderr.trim()}` };
  // Whole or not at all, since another run may look for it right now.
  renameSync(scratch, library);
  return { library };
}

/** Writes `ms` as eight bytes of microseconds, in this machine's byte order, over what is in the file. */
function writeMicros(path: string, ms: number): void {
  const number = new BigInt64Array([BigInt(Math.round(ms * MICROS_PER_MS))]);
  // The same file where it is there: servers have it mapped. And one write: they read one number.
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT);
  writeSync(file, number, 0, number.byteLength, 0);
  closeSync(file);
}
