/**
 * Crashes of a single server: what comes up again is older than what was answered, or nothing.
 * Guarantees: G3 (docs/guarantees.md).
 */
import { spawnSync } from "node:child_process";
import { readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Fault } from "../fault.js";
import { redisFault, shimmedFault } from "../redis-world.js";
import { recover } from "../verbs.js";

const RDB_ONLY = { save: "3600 1", appendonly: "no" };
const NOTHING_KEPT = { save: '""', appendonly: "no" };

/** A process that can't write beyond a limit is told so, instead of being ended. */
const TOLD_OF_LIMITS = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"];

export const CRASHES: readonly Fault[] = [
  shimmedFault({
    number: 2,
    name: "kill -9 while fsync takes two seconds",
    expected: ["epoch_changed"],
    inject: async (world, { disk }) => {
      const { server } = world;
      disk.slowSyncs(2_000);
      // A sync is under way, and what is answered from now on waits in the server for its end.
      await delay(1_200);
      await world.work();
      await server.kill("SIGKILL");
      disk.slowSyncs(0);
      await server.start();
    },
  }),
  shimmedFault({
    number: 3,
    name: "power loss: files cut to what was synced",
    expected: ["epoch_changed"],
    inject: async (world, { disk }) => {
      const { server } = world;
      const isSynced = async () => (await disk.syncedBytes(await growingAof(server.directory))) > 0;
      await world.until("the AOF was synced", isSynced);
      await disk.losePower(server);
      await server.start();
    },
  }),
  redisFault({
    number: 1,
    name: "kill -9, AOF everysec",
    isShort: true,
    expected: ["epoch_changed"],
    inject: async ({ server }) => {
      await server.kill("SIGKILL");
      await server.start();
    },
  }),
  redisFault({
    number: 3,
    name: "the AOF cut back to what it was a moment before",
    expected: ["epoch_changed"],
    inject: async (world) => {
      const { server } = world;
      const synced = await aofSize(server.directory);
      await world.work();
      await server.kill("SIGKILL");
      await cutAof(server.directory, synced);
      await server.start();
    },
  }),
  redisFault({
    number: 4,
    name: "kill -9, RDB only",
    config: RDB_ONLY,
    expected: ["epoch_changed"],
    inject: async (world) => {
      const { server } = world;
      await world.on(server, (redis) => redis.save());
      await world.work();
      await server.kill("SIGKILL");
      await server.start();
    },
  }),
  redisFault({
    number: 5,
    name: "no persistence, restart",
    config: NOTHING_KEPT,
    expected: ["namespace_lost"],
    inject: async (world) => {
      await world.server.kill("SIGKILL");
      await world.server.start();
      await world.untilSeen("namespace_lost");
      await recover(world);
    },
  }),
  redisFault({
    number: 6,
    name: "appendonly switched on in the config, restart",
    config: RDB_ONLY,
    expected: ["namespace_lost"],
    inject: async (world) => {
      const { server } = world;
      await world.on(server, (redis) => redis.save());
      await server.kill("SIGKILL");
      await rm(join(server.directory, "appendonlydir"), { recursive: true, force: true });
      const path = join(server.directory, "redis.conf");
      const text = await readFile(path, "utf8");
      await writeFile(path, text.replace("appendonly no", "appendonly yes"));
      await server.start();
      await world.untilSeen("namespace_lost");
      await recover(world);
    },
  }),
  redisFault({
    number: 7,
    name: "AOF cut at a random byte",
    expected: ["epoch_changed"],
    inject: async (world) => {
      const { server, random } = world;
      const earlier = await aofSize(server.directory);
      await world.work();
      await server.kill("SIGKILL");
      const now = await aofSize(server.directory);
      await cutAof(server.directory, earlier + Math.floor(random() * (now - earlier)));
      await server.start();
    },
  }),
  redisFault({
    number: 8,
    name: "an older state restored",
    expected: ["epoch_changed"],
    inject: async (world) => {
      const { server } = world;
      const snapshot = await world.snapshot();
      await world.work();
      await server.kill("SIGKILL");
      await world.restore(snapshot);
      await server.start();
    },
  }),
  redisFault({
    number: 9,
    name: "one backup restored twice, across jumps",
    expected: ["epoch_changed"],
    inject: async (world) => {
      const { server } = world;
      const snapshot = await world.snapshot();
      for (let time = 0; time < 2; time++) {
        await world.work();
        await server.kill("SIGKILL");
        await world.restore(snapshot);
        await server.start();
        await world.untilLeasing();
      }
    },
  }),
  redisFault({
    number: 5,
    name: "the same, and nothing is remembered anywhere",
    config: NOTHING_KEPT,
    hasCheckpoint: false,
    expected: ["namespace_not_found"],
    inject: async (world) => {
      await world.killCoordinators();
      await world.server.kill("SIGKILL");
      await world.server.start();
      await world.startCoordinators();
      await world.untilSeen("namespace_not_found");
      // From the id that is kept beside the archive.
      await recover(world);
    },
  }),
  redisFault({
    number: 29,
    name: "the AOF can't grow any more, as on a full disk, then kill -9",
    runIn: TOLD_OF_LIMITS,
    unavailable: () => (spawnSync("prlimit", ["--version"]).status === 0 ? undefined : "no prlimit on PATH"),
    expected: ["store_unavailable", "epoch_changed"],
    inject: async (world) => {
      const { server } = world;
      const limit = await aofSize(server.directory);
      const { status, stderr } = spawnSync("prlimit", [`--pid=${server.pid}`, `--fsize=${limit}:`], {
        encoding: "utf8",
      });
      if (status !== 0) throw new Error(stderr);
      await world.untilSeen("store_unavailable");
      await server.kill("SIGKILL");
      await server.start();
    },
  }),
];

/** The newest of the AOF's files: the one that grows. */
async function growingAof(directory: string): Promise<string> {
  const folder = join(directory, "appendonlydir");
  const names = (await readdir(folder)).filter((name) => name.endsWith(".incr.aof")).sort();
  return join(folder, names.at(-1) as string);
}

async function aofSize(directory: string): Promise<number> {
  return (await stat(await growingAof(directory))).size;
}

async function cutAof(directory: string, byteCount: number): Promise<void> {
  await truncate(await growingAof(directory), byteCount);
}
