/**
 * Faults of coordinators: killed, frozen, against a clone, during a stale restore, without their checkpoint.
 * Guarantees: G3, G7, G8 (docs/guarantees.md).
 */
import { readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Bounds } from "../../../packages/coordinator/src/guard/clocks.js";
import { recover } from "../commands.js";
import { type RedisWorld, redisFault } from "../redis-world.js";
import type { Fault } from "../run-fault.js";
import { BOUNDS } from "../world.js";

/** For a store that no coordinator attends for some seconds. */
const SOON_UNATTENDED: Bounds = { ...BOUNDS, attendedMs: 3_000 };
const RDB_ONLY = { save: "3600 1", appendonly: "no" };

// The clone leases from the run ceiling, the original far below it. With both at the ceiling, as after a recovery, they would lease
// the same runs before an importer could have met both: the guard promises to detect that, not to prevent it.
export const TWO_CLONES = redisFault(
  "two coordinators on two clones, an importer meets both",
  {
    isShort: true,
    config: RDB_ONLY,
    coordinatorCount: 1,
    injectionCountMax: 1,
    expected: ["store_forked"],
  },
  async (world) => {
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
    await world.withoutCoordinators(() => recover(world));
  },
);

export const COORDINATORS: readonly Fault[] = [
  redisFault("coordinators killed at random moments", { expected: ["coordinator_unreachable"] }, async (world) => {
    for (let time = 0; time < 3; time++) {
      for (const coordinator of world.coordinators) {
        await delay(world.random() * 20);
        await coordinator.kill();
        await coordinator.start();
      }
    }
  }),
  redisFault("coordinators killed while they recover", { expected: ["epoch_changed"] }, async (world) => {
    for (const coordinator of world.coordinators) {
      await world.crash();
      await delay(world.random() * 30);
      await coordinator.kill();
      await coordinator.start();
    }
  }),
  redisFault(
    "all coordinators restarted with a stale restore",
    { isShort: true, expected: ["epoch_changed"] },
    restoreUnder,
  ),
  redisFault(
    "all coordinators restarted with a stale restore, no checkpoint",
    { hasCheckpoint: false, expected: ["epoch_changed"] },
    restoreUnder,
  ),
  redisFault("an old record copied back while all coordinators are dead", { expected: ["rolled_back"] }, (world) =>
    copyBackRecord(world),
  ),
  redisFault("all coordinators frozen for longer than the gap", { expected: ["heartbeat_expired"] }, async (world) => {
    for (const coordinator of world.coordinators) coordinator.freeze();
    await delay(BOUNDS.gapMs + 500);
    for (const coordinator of world.coordinators) coordinator.thaw();
    await world.untilSeen("heartbeat_expired");
  }),
  redisFault(
    "the checkpoint damaged while all coordinators are dead, with an old record copied back",
    { expected: ["generation_stale"] },
    (world) =>
      copyBackRecord(world, async () => {
        const names = await readdir(world.checkpointDir);
        for (const name of names) await writeFile(join(world.checkpointDir, name), "garbage");
      }),
  ),
  redisFault(
    "the checkpoint deleted while all coordinators are dead, with old record and ledger put back",
    { isShort: true, bounds: SOON_UNATTENDED, expected: ["heartbeat_expired"] },
    async (world) => {
      const putBack = await world.saveKeys();
      await world.work();
      await world.withoutCoordinators(async () => {
        await rm(world.checkpointDir, { recursive: true });
        await delay(SOON_UNATTENDED.attendedMs + BOUNDS.epsMs);
        await putBack();
      });
    },
  ),
  redisFault(
    "the checkpoint directory gone, and no folder in its place",
    { expected: ["checkpoint_unavailable"] },
    async (world) => {
      await world.withoutCoordinators(async () => {
        await rm(world.checkpointDir, { recursive: true });
        await writeFile(world.checkpointDir, "");
      });
      await world.untilSeen("checkpoint_unavailable");
      await rm(world.checkpointDir);
    },
  ),
  redisFault(
    "a file in place of the checkpoint directory while runs are leased, then a restore",
    { expected: ["checkpoint_unavailable"] },
    async (world) => {
      await replaceByFile(world.checkpointDir);
      await world.untilSeen("checkpoint_unavailable");
      await rm(world.checkpointDir);
      await restoreUnder(world);
    },
  ),
  TWO_CLONES,
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

async function copyBackRecord(world: RedisWorld, meanwhile: () => Promise<void> = async () => {}): Promise<void> {
  const record = await world.record();
  await world.work();
  await world.withoutCoordinators(async () => {
    await meanwhile();
    await world.copyBack(record);
  });
}

async function restoreUnder(world: RedisWorld): Promise<void> {
  const snapshot = await world.snapshot();
  await world.work();
  await world.withoutCoordinators(() => world.crash(() => world.restore(snapshot)));
}
