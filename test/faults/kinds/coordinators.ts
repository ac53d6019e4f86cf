/**
 * Faults of coordinators: killed, frozen, against a clone, beside a stale restore, without what they remembered.
 * Guarantees: G3, G7, G8 (docs/guarantees.md).
 */
import { readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Fault } from "../fault.js";
import { type RedisWorld, redisFault } from "../redis-world.js";
import { recover } from "../verbs.js";
import { BOUNDS } from "../world.js";

const RDB_ONLY = { save: "3600 1", appendonly: "no" };

export const COORDINATORS: readonly Fault[] = [
  redisFault({
    number: 30,
    name: "coordinators killed at random moments",
    expected: ["coordinator_unreachable"],
    inject: async (world) => {
      for (let time = 0; time < 3; time++) {
        for (const coordinator of world.coordinators) {
          await delay(world.random() * 20);
          await coordinator.kill();
          await coordinator.start();
        }
      }
    },
  }),
  redisFault({
    number: 30,
    name: "coordinators killed while they settle a doubt",
    expected: ["epoch_changed"],
    inject: async (world) => {
      for (const coordinator of world.coordinators) {
        await world.server.kill("SIGKILL");
        await world.server.start();
        await delay(world.random() * 30);
        await coordinator.kill();
        await coordinator.start();
      }
    },
  }),
  redisFault({
    number: 31,
    name: "all coordinators restarted with a stale restore",
    isShort: true,
    expected: ["epoch_changed"],
    inject: (world) => restoreUnder(world),
  }),
  redisFault({
    number: 31,
    name: "the same, and nothing is remembered anywhere",
    hasCheckpoint: false,
    expected: ["epoch_changed"],
    inject: (world) => restoreUnder(world),
  }),
  redisFault({
    number: 14,
    name: "an old record copied back while all coordinators are dead",
    expected: ["rolled_back"],
    inject: async (world) => {
      const record = await world.on(world.server, (redis) => redis.hgetall(world.key("record")));
      await world.work();
      await world.killCoordinators();
      await world.on(world.server, (redis) => redis.hset(world.key("record"), record));
      await world.startCoordinators();
    },
  }),
  redisFault({
    number: 32,
    name: "all coordinators frozen for longer than the gap",
    expected: ["heartbeat_expired"],
    inject: async (world) => {
      for (const coordinator of world.coordinators) coordinator.freeze();
      await delay(BOUNDS.gapMs + 500);
      for (const coordinator of world.coordinators) coordinator.thaw();
      await world.untilSeen("heartbeat_expired");
    },
  }),
  redisFault({
    number: 31,
    name: "the checkpoint damaged while all coordinators are dead, with an old record copied back",
    expected: ["generation_stale"],
    inject: async (world) => {
      const record = await world.on(world.server, (redis) => redis.hgetall(world.key("record")));
      await world.work();
      await world.killCoordinators();
      const names = await readdir(world.checkpointDir);
      for (const name of names) await writeFile(join(world.checkpointDir, name), "garbage");
      await world.on(world.server, (redis) => redis.hset(world.key("record"), record));
      await world.startCoordinators();
    },
  }),
  redisFault({
    number: 31,
    name: "the checkpoint directory gone, and no folder in its place",
    expected: ["checkpoint_unavailable"],
    inject: async (world) => {
      await world.killCoordinators();
      await rm(world.checkpointDir, { recursive: true });
      await writeFile(world.checkpointDir, "");
      await world.startCoordinators();
      await world.untilSeen("checkpoint_unavailable");
      await rm(world.checkpointDir);
    },
  }),
  redisFault({
    number: 44,
    name: "a file in place of the checkpoint directory while runs are leased, then a restore",
    expected: ["checkpoint_unavailable"],
    inject: async (world) => {
      await replaceByFile(world.checkpointDir);
      await world.untilSeen("checkpoint_unavailable");
      await rm(world.checkpointDir);
      await restoreUnder(world);
    },
  }),
  redisFault({
    number: 36,
    name: "two coordinators on two clones, an importer meets both",
    isShort: true,
    config: RDB_ONLY,
    coordinatorCount: 1,
    // The clone leases from the line, the original far below it. Had both sat on the line, as after a recovery, they would lease the
    // same runs before anybody could have met both: the guard promises to find that out, not to prevent it.
    injectionCountMax: 1,
    expected: ["store_forked"],
    inject: async (world) => {
      const { server } = world;
      await world.on(server, (redis) => redis.save());
      const snapshot = await world.snapshot();
      const clone = await world.addServer();
      await clone.stop();
      await world.restore(snapshot, clone);
      await clone.start();
      // Its coordinator remembers another place, as on another machine.
      const stray = await world.addCoordinatorAt(clone);
      await world.untilSeen("store_forked");
      await world.removeCoordinator(stray);
      await world.removeServer(clone);
      await world.killCoordinators();
      await recover(world);
      await world.startCoordinators();
    },
  }),
];

/** A coordinator makes the folder again, perhaps just now. */
async function replaceByFile(folder: string): Promise<void> {
  for (let tried = 0; ; tried++) {
    const away = `${folder}-away-${Date.now()}-${tried}`;
    await rename(folder, away).catch(() => {});
    try {
      await writeFile(folder, "", { flag: "wx" });
      return;
    } catch {
      // There is a folder again.
    }
  }
}

async function restoreUnder(world: RedisWorld): Promise<void> {
  const snapshot = await world.snapshot();
  await world.work();
  await world.killCoordinators();
  await world.server.kill("SIGKILL");
  await world.restore(snapshot);
  await world.server.start();
  await world.startCoordinators();
}
