/**
 * Faults of coordinators: killed, frozen, with a wrong clock, against a clone, beside a stale restore.
 * Guarantees: G3, G6, G7, G8 (docs/guarantees.md).
 */
import { setTimeout as delay } from "node:timers/promises";
import { type Fault, fault } from "./fault.js";
import { recover } from "./recovering.js";
import { BOUNDS, type World } from "./world.js";

const RDB_ONLY = { save: "3600 1", appendonly: "no" };
const HOUR_MS = 3_600_000;
const CLOCK_MOVES_MS = [HOUR_MS, -HOUR_MS, 365 * 24 * HOUR_MS, -365 * 24 * HOUR_MS];

export const FAULTS_OF_COORDINATORS: readonly Fault[] = [
  fault({
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
  fault({
    number: 30,
    name: "coordinators killed while they settle a doubt",
    expected: ["store_epoch_changed"],
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
  fault({
    number: 31,
    name: "all coordinators restarted with a stale restore",
    expected: ["store_epoch_changed"],
    inject: (world) => restoreUnder(world),
  }),
  fault({
    number: 31,
    name: "the same, and nothing is remembered anywhere",
    hasWitness: false,
    expected: ["store_epoch_changed"],
    inject: (world) => restoreUnder(world),
  }),
  fault({
    number: 14,
    name: "an old record copied back while all coordinators are dead",
    expected: ["store_went_back"],
    inject: async (world) => {
      const record = await world.on(world.server, (redis) => redis.hgetall(world.key("record")));
      await world.work();
      for (const coordinator of world.coordinators) await coordinator.kill();
      await world.on(world.server, (redis) => redis.hset(world.key("record"), record));
      for (const coordinator of world.coordinators) await coordinator.start();
    },
  }),
  fault({
    number: 32,
    name: "all coordinators frozen for longer than the gap",
    expected: ["store_silent"],
    inject: async (world) => {
      for (const coordinator of world.coordinators) coordinator.freeze();
      await delay(BOUNDS.gapMs + 500);
      for (const coordinator of world.coordinators) coordinator.thaw();
      await world.untilSeen("store_silent");
    },
  }),
  fault({
    number: 33,
    name: "the clock of a coordinator moved by an hour or a year, back and forth",
    expected: ["clocks_disagree"],
    inject: async (world) => {
      const [coordinator] = world.coordinators;
      const move = CLOCK_MOVES_MS[Math.floor(world.random() * CLOCK_MOVES_MS.length)] as number;
      coordinator?.moveClock(move);
      await world.untilSeen("clocks_disagree");
      coordinator?.moveClock(0);
    },
  }),
  fault({
    number: 36,
    name: "two coordinators on two clones, an importer meets both",
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
      const stray = await world.addCoordinator(clone);
      await world.untilSeen("store_forked");
      await stray.kill();
      world.coordinators.splice(world.coordinators.indexOf(stray), 1);
      await clone.kill("SIGKILL");
      for (const coordinator of world.coordinators) await coordinator.kill();
      await recover(world);
      for (const coordinator of world.coordinators) await coordinator.start();
    },
  }),
];

async function restoreUnder(world: World): Promise<void> {
  const snapshot = await world.snapshot();
  await world.work();
  for (const coordinator of world.coordinators) await coordinator.kill();
  await world.server.kill("SIGKILL");
  await world.restore(snapshot);
  await world.server.start();
  for (const coordinator of world.coordinators) await coordinator.start();
}
