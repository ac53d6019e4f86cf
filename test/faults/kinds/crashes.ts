/**
 * Crashes of a single server: what comes up again is older than what was answered, or nothing.
 * Guarantees: G3 (docs/guarantees.md).
 */
import { spawnSync } from "node:child_process";
import { readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { recover } from "../commands.js";
import { redisFault, shimmedFault } from "../redis-world.js";
import type { Fault } from "../run-fault.js";

const RDB_ONLY = { save: "3600 1", appendonly: "no" };
const NOTHING_KEPT = { save: '""', appendonly: "no" };

/** A process gets an error when it writes beyond a limit, instead of being ended. */
const ERROR_AT_LIMITS = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"];

export const CRASHES: readonly Fault[] = [
  shimmedFault("kill -9 while fsync takes two seconds", { expected: ["epoch_changed"] }, async (world) => {
    world.disk.slowSyncs(2_000);
    // A sync is in progress, and what is answered from now on waits in the server for its end.
    await delay(1_200);
    await world.work();
    await world.crash(async () => world.disk.slowSyncs(0));
  }),
  shimmedFault("power loss: files cut to what was synced", { expected: ["epoch_changed"] }, async (world) => {
    const { server } = world;
    const isSynced = async () => (await world.disk.syncedBytes(await growingAof(server.directory))) > 0;
    await world.until("the AOF was synced", isSynced);
    await world.disk.losePower(server);
    await server.start();
  }),
  redisFault("kill -9, AOF everysec", { isShort: true, expected: ["epoch_changed"] }, (world) => world.crash()),
  redisFault("the AOF cut back to what it was a moment before", { expected: ["epoch_changed"] }, async (world) => {
    const { directory } = world.server;
    const synced = await aofSize(directory);
    await world.work();
    await world.crash(() => cutAof(directory, synced));
  }),
  redisFault("kill -9, RDB only", { config: RDB_ONLY, expected: ["epoch_changed"] }, async (world) => {
    await world.on(world.server, (redis) => redis.save());
    await world.work();
    await world.crash();
  }),
  redisFault("no persistence, restart", { config: NOTHING_KEPT, expected: ["namespace_lost"] }, async (world) => {
    await world.crash();
    await world.untilSeen("namespace_lost");
    await recover(world);
  }),
  redisFault(
    "appendonly switched on in the config, restart",
    { config: RDB_ONLY, expected: ["namespace_lost"] },
    async (world) => {
      const { directory } = world.server;
      await world.on(world.server, (redis) => redis.save());
      await world.crash(async () => {
        await rm(join(directory, "appendonlydir"), { recursive: true, force: true });
        const path = join(directory, "redis.conf");
        const text = await readFile(path, "utf8");
        await writeFile(path, text.replace("appendonly no", "appendonly yes"));
      });
      await world.untilSeen("namespace_lost");
      await recover(world);
    },
  ),
  redisFault("AOF cut at a random byte", { expected: ["epoch_changed"] }, async (world) => {
    const { directory } = world.server;
    const earlier = await aofSize(directory);
    await world.work();
    await world.crash(async () => {
      const now = await aofSize(directory);
      await cutAof(directory, earlier + Math.floor(world.random() * (now - earlier)));
    });
  }),
  redisFault("an older state restored", { expected: ["epoch_changed"] }, async (world) => {
    const snapshot = await world.snapshot();
    await world.work();
    await world.crash(() => world.restore(snapshot));
  }),
  redisFault("one backup restored twice, across skips", { expected: ["epoch_changed"] }, async (world) => {
    const snapshot = await world.snapshot();
    for (let time = 0; time < 2; time++) {
      await world.work();
      await world.crash(() => world.restore(snapshot));
      await world.untilLeasing();
    }
  }),
  redisFault(
    "no persistence, restart, no checkpoint",
    { config: NOTHING_KEPT, hasCheckpoint: false, expected: ["namespace_not_found"] },
    async (world) => {
      await world.withoutCoordinators(() => world.crash());
      await world.untilSeen("namespace_not_found");
      // From the id that is kept with the archive.
      await recover(world);
    },
  ),
  redisFault(
    "the AOF can't grow any more, as on a full disk, then kill -9",
    {
      runIn: ERROR_AT_LIMITS,
      unavailable: () => (spawnSync("prlimit", ["--version"]).status === 0 ? undefined : "no prlimit on PATH"),
      expected: ["store_unavailable", "epoch_changed"],
    },
    async (world) => {
      const { server } = world;
      const limit = await aofSize(server.directory);
      const { status, stderr } = spawnSync("prlimit", [`--pid=${server.pid}`, `--fsize=${limit}:`], {
        encoding: "utf8",
      });
      if (status !== 0) throw new Error(stderr);
      await world.untilSeen("store_unavailable");
      await world.crash();
    },
  ),
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
