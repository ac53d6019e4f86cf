import { stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, inject, it } from "vitest";
import { seededRandom } from "../faults/seeded-random.js";
import { appendedAof } from "./data-folder.js";
import { cutAof, losePower, restoreFolder, snapshotFolder } from "./power-loss.js";
import { command, commands, until, untilInfo } from "./redis-command.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "./test-redis.js";
import { createWatchedDisk, type WatchedDisk, watchedDiskUnavailable } from "./watched-disk.js";

/** Of one `INCR mark` in the AOF. */
const INCR_BYTES = "*2\r\n$4\r\nINCR\r\n$4\r\nmark\r\n".length;
const HOUR_MS = 3_600_000;
const AOF = { appendonly: "yes", appendfsync: "always" };

beforeEach((context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
});

describe("a folder that is put back", () => {
  it("brings back the mark of then, as often as it is restored, from an AOF and from a dump", async () => {
    for (const config of [AOF, { save: "3600 1" }]) {
      const server = await startRedisServer({ config });
      await countTo(server, 3);
      if (!("appendonly" in config)) await command(server, "SAVE");
      const snapshot = await snapshotFolder(server);
      expect(server.state).toBe("running");
      for (let time = 0; time < 3; time++) {
        await countTo(server, 5);
        await restoreFolder(server, snapshot);
        expect(server.state).toBe("ended");
        await server.start();
        expect(await markOf(server)).toBe(3);
      }
    }
  });

  it("holds one life only: files of a later AOF are gone", async () => {
    const server = await startRedisServer({ config: AOF });
    await countTo(server, 2);
    const snapshot = await snapshotFolder(server);
    await countTo(server, 4);
    await command(server, "BGREWRITEAOF");
    await untilInfo(server, { aof_rewrite_in_progress: "0", aof_rewrite_scheduled: "0" });
    await restoreFolder(server, snapshot);
    expect([...(await snapshotFolder(server)).keys()].sort()).toEqual([...snapshot.keys()].sort());
    await server.start();
    expect(await markOf(server)).toBe(2);
  });

  it("leaves a server frozen that was frozen, and one ended that had ended", async () => {
    const server = await startRedisServer({ config: AOF });
    await server.kill("SIGSTOP");
    await snapshotFolder(server);
    expect(server.state).toBe("frozen");
    await server.kill("SIGKILL");
    await snapshotFolder(server);
    expect(server.state).toBe("ended");
  });
});

describe("an AOF that is cut", () => {
  it("loses the last command, when it loses its last byte", async () => {
    const server = await startRedisServer({ config: AOF });
    await countTo(server, 5);
    expect(await cutAof(server, 1)).toMatchObject({ lostBytes: 1 });
    await server.start();
    expect(await markOf(server)).toBe(4);
  });

  it("is cut in the file that is appended to, after a rewrite too", async () => {
    const server = await startRedisServer({ config: AOF });
    await countTo(server, 5);
    await command(server, "BGREWRITEAOF");
    await untilInfo(server, { aof_rewrite_in_progress: "0", aof_rewrite_scheduled: "0" });
    await countTo(server, 7);
    const { keptBytes, file } = await cutAof(server, Number.POSITIVE_INFINITY);
    expect(file).toMatch(/\.2\.incr\.aof$/);
    expect(keptBytes).toBe(0);
    await server.start();
    expect(await markOf(server)).toBe(5);
  });

  it("is cut in the last of two files, while a rewrite is under way", async () => {
    const server = await startRedisServer({ config: { ...AOF, "rdb-key-save-delay": "500000" } });
    await countTo(server, 5);
    await command(server, "BGREWRITEAOF");
    await countTo(server, 7);
    const { keptBytes, file } = await cutAof(server, Number.POSITIVE_INFINITY);
    expect(file).toMatch(/\.2\.incr\.aof$/);
    expect(keptBytes).toBe(0);
    expect([...(await snapshotFolder(server)).keys()]).toContain(file.replace(".2.", ".1."));
    await server.start();
    expect(await markOf(server)).toBe(5);
  });

  it("comes back with an earlier mark wherever it is cut, and where is decided by the seed", async () => {
    const seed = inject("seed");
    const [random, again] = [seededRandom(seed), seededRandom(seed)];
    const server = await startRedisServer({ config: AOF });
    for (let round = 0; round < 5; round++) {
      await countTo(server, 100);
      const { keptBytes, lostBytes } = await cutAof(server, random);
      expect(lostBytes).toBe(Math.floor(again() * (keptBytes + lostBytes + 1)));
      await server.start();
      const mark = await markOf(server);
      expect(mark).toBeLessThanOrEqual(100);
      expect(mark === 100).toBe(lostBytes === 0);
    }
  });
});

describe("a loss of power", () => {
  beforeEach((context) => {
    const reason = watchedDiskUnavailable();
    context.skip(reason !== undefined, reason);
  });

  it("takes nothing that was acknowledged, where each write is synced first", async () => {
    const { server, disk } = await onWatchedDisk("always");
    await countTo(server, 50);
    await losePower(server, disk);
    await server.start();
    expect(await markOf(server)).toBe(50);
  });

  it("takes what kill -9 would have left, where nothing is synced", async () => {
    const { server, disk } = await onWatchedDisk("no");
    await countTo(server, 50);
    await server.kill("SIGKILL");
    await server.start();
    expect(await markOf(server), "the process died and the machine did not").toBe(50);

    const cuts = await losePower(server, disk);
    expect(cuts).toMatchObject([{ file: expect.stringMatching(/incr\.aof$/), keptBytes: 0 }]);
    await server.start();
    expect(await markOf(server)).toBe(0);
  });

  it("takes what came after the last sync, where one is made each second", async () => {
    const { server, disk } = await onWatchedDisk("everysec");
    await countTo(server, 50);
    await untilSynced(server, disk);
    disk.slowSyncs(HOUR_MS);
    await countTo(server, 60);
    await losePower(server, disk);
    disk.slowSyncs(0);
    await server.start();
    expect(await markOf(server)).toBe(50);
  });

  it("takes what is written unsynced behind a torn end that the server cut off", async () => {
    const { server, disk } = await onWatchedDisk("always");
    await countTo(server, 50);
    // Set before the end: a server that syncs always would sync its file as soon as it starts.
    await command(server, "CONFIG", "SET", "appendfsync", "no");
    await command(server, "CONFIG", "REWRITE");
    // Torn while no one looks, so that the disk still holds that all was synced: ten commands go, and part of another.
    await server.kill("SIGKILL");
    const path = await aofOf(server);
    await truncate(path, (await stat(path)).size - 10 * INCR_BYTES - 1);
    await server.start();
    await countTo(server, 60);
    await losePower(server, disk);
    await server.start();
    expect(await markOf(server)).toBe(39);
  });

  it("takes nothing of what a restore or an earlier loss of power left", async () => {
    const { server, disk } = await onWatchedDisk("no");
    await countTo(server, 50);
    const snapshot = await snapshotFolder(server);
    await restoreFolder(server, snapshot);
    await losePower(server, disk);
    await server.start();
    expect(await markOf(server)).toBe(50);

    await countTo(server, 60);
    const { keptBytes } = await cutAof(server, 1);
    expect(await losePower(server, disk)).toEqual([]);
    expect((await stat(await aofOf(server))).size).toBe(keptBytes);
  });

  it("is told from a server that the disk does not see", async () => {
    const server = await startRedisServer({ config: AOF });
    await expect(losePower(server, createWatchedDisk())).rejects.toThrow(/preload/);
  });
});

it("a disk that is slow to sync makes Redis keep acknowledged writes from the file, and kill -9 lose them", async (context) => {
  const reason = watchedDiskUnavailable();
  context.skip(reason !== undefined, reason);
  const { server, disk } = await onWatchedDisk("everysec");
  let acknowledged = 0;
  // Redis holds them back for two seconds at most: if this machine stalls that long before the kill, the next round shows it.
  do {
    const mark = await markOf(server);
    await countTo(server, mark + 10);
    disk.slowSyncs(HOUR_MS);
    await untilInfo(server, { aof_pending_bio_fsync: "1" });
    acknowledged = mark + 20;
    await countTo(server, acknowledged);
    await server.kill("SIGKILL");
    disk.slowSyncs(0);
    await server.start();
  } while ((await markOf(server)) === acknowledged);
  expect(await markOf(server)).toBeLessThan(acknowledged);
});

async function onWatchedDisk(appendfsync: string) {
  const disk = createWatchedDisk();
  const server = await startRedisServer({ config: { appendonly: "yes", appendfsync }, preloads: [disk.preload] });
  return { server, disk };
}

/** Resolves when all that the AOF holds is synced. */
async function untilSynced(server: RedisServer, disk: WatchedDisk): Promise<void> {
  const path = await aofOf(server);
  const bytes = async () => [await disk.syncedBytes(path), (await stat(path)).size];
  await until("the AOF is synced", bytes, ([synced, size]) => synced === size);
}

async function aofOf({ directory }: RedisServer): Promise<string> {
  return join(directory, await appendedAof(directory));
}

/** Counts the mark up by ones, each written down on its own. */
async function countTo(server: RedisServer, mark: number): Promise<void> {
  const steps = mark - (await markOf(server));
  await commands(server, ...Array.from({ length: steps }, () => ["INCR", "mark"]));
}

async function markOf(server: RedisServer): Promise<number> {
  return Number(await command(server, "GET", "mark"));
}
