/**
 * Several coordinators on one server: one that knows what was true minutes ago, three in tight loops, one of an older release.
 * Guarantees: G1, G3 (docs/guarantees.md).
 */
import { setTimeout as delay } from "node:timers/promises";
import { RUN_MAX } from "@callnumber/protocol/codec";
import { startFaultyProxy } from "../../redis/faulty-proxy.js";
import { Apart } from "../apart.js";
import { advance } from "../commands.js";
import { type RedisWorld, redisFault } from "../redis-world.js";
import { ReleasedCoordinator } from "../released-coordinator.js";
import type { Fault } from "../run-fault.js";
import { BOUNDS } from "../world.js";

/** The next version can be begun, and neither this one nor the room of that one ends meanwhile. */
const NEAR_THE_END = { firstRun: RUN_MAX - 20_000_000, ageDays: 30 };
const LOOP_MS = 6_000;
/** Of an equal share: a coordinator that gets less starves. */
const SHARE_MIN = 0.5;
/** A lease adds to the mark, whatever others have leased: hardly one is tried again. */
const TRIES_MAX = 1.5;
/** Leases of each, while both releases lease. */
const LEASES_OF_BOTH = 30;

/** First for longer than the gap, and then for less: only what is younger is leased from without a look at the store. */
export const SHORT_STALE = stale(17_000, 15_000);
export const STALE = stale(120_000, BOUNDS.gapMs);

export const TOGETHER: readonly Fault[] = [
  STALE,
  redisFault(
    "three coordinators in tight loops, then an older state restored under them",
    { coordinatorCount: 3, injectionCountMax: 1, expected: ["epoch_changed"] },
    async (world) => {
      await leaseInLoops(world);
      await restoreUnder(world);
    },
  ),
  redisFault(
    "a coordinator of an older release on the same store, an older state restored under both",
    { injectionCountMax: 1, expected: ["epoch_changed"] },
    async (world) => {
      const released = new ReleasedCoordinator(world);
      world.defer(() => released.end());
      released.start();
      await Promise.all([released.untilLeasing(LEASES_OF_BOTH), world.work(LEASES_OF_BOTH)]);
      // Each recovers once for the other, which goes on with what it saw before.
      for (const coordinator of world.coordinators) coordinator.freeze();
      await restoreUnder(world, () => released.untilLeasing(LEASES_OF_BOTH));
      await world.until("the released coordinator recovers", () => released.recoveryCount > 0);
      for (const coordinator of world.coordinators) coordinator.thaw();
      await Promise.all([released.untilLeasing(LEASES_OF_BOTH), world.untilLeasing()]);
      await released.pause();
      await restoreUnder(world);
      await world.untilSeen("epoch_changed");
      await world.untilLeasing();
      released.start();
      await Promise.all([released.untilLeasing(LEASES_OF_BOTH), world.untilLeasing()]);
      await released.end();
    },
  ),
];

/** Two coordinators that no importer of the suite asks: one is frozen, the other's replies are held. Then they go on with what they saw last. */
function stale(awayMs: number, gapMs: number): Fault {
  return redisFault(
    `coordinators that are away for ${awayMs / 1000} s while others lease, advance and recover`,
    {
      store: NEAR_THE_END,
      bounds: { ...BOUNDS, gapMs },
      injectionCountMax: 1,
      expected: ["epoch_changed", "rolled_back"],
    },
    async (world) => {
      const frozen = Apart.start(world, await world.addCoordinatorAt(world.server));
      const proxy = await startFaultyProxy(world.server);
      world.defer(() => proxy.close());
      const cutOff = Apart.start(world, await world.addCoordinatorAt(proxy));
      const whileAway = async (act: () => Promise<unknown>) => {
        await Promise.all([frozen.lease(), cutOff.lease()]);
        frozen.coordinator.freeze();
        proxy.holdAnswers();
        await act();
        const before = await world.record();
        frozen.coordinator.thaw();
        proxy.heal();
        await Promise.all([frozen.lease(), cutOff.lease()]);
        const after = await world.record();
        // They have nothing to recover: what they know is old, and the store is not.
        if (after["g"] !== before["g"] || after["ver"] !== before["ver"])
          world.noteProblem(`generation ${before["g"]} became ${after["g"]}, version ${before["ver"]} ${after["ver"]}`);
      };
      await whileAway(() => Promise.all([world.work(), delay(awayMs)]));
      await whileAway(async () => {
        await world.until("the version is advanced", () => isAdvanced(world));
        await world.untilLeasing();
      });
      await whileAway(async () => {
        await restoreUnder(world);
        await world.untilLeasing();
      });
      await whileAway(async () => {
        const record = await world.record();
        await world.work();
        await world.copyBack(record);
        await world.untilSeen("rolled_back");
        await world.untilLeasing();
      });
    },
  );
}

/** Whether an operator was faster than importers that do not pause: an advance is tried some times and then given up. */
async function isAdvanced(world: RedisWorld): Promise<boolean> {
  try {
    await advance(world, { isForcedEarly: true });
    return true;
  } catch (error) {
    if ((error as { reason?: unknown }).reason !== "conflict") throw error;
    return false;
  }
}

async function leaseInLoops(world: RedisWorld): Promise<void> {
  const loops = await Promise.all(world.coordinators.map((coordinator) => coordinator.leaseFor(LOOP_MS)));
  for (const [index, { leases, tries, changes, failure }] of loops.entries()) {
    if (failure !== undefined) world.noteProblem(`coordinator ${index} leased no more: ${failure}`);
    for (const lease of leases) world.received.note({ importer: `loop ${index}`, ...lease });
    if (tries > TRIES_MAX * changes)
      world.noteProblem(`coordinator ${index} tried ${tries} times for ${changes} changes`);
  }
  const counts = loops.map(({ leases }) => leases.length);
  const equalShare = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  const lines = loops.map(({ leases, tries, changes }, index) => {
    const share = `${leases.length} leases (${(leases.length / equalShare).toFixed(2)} of an equal share)`;
    return `  coordinator ${index}: ${share}, ${(tries / changes).toFixed(2)} tries each`;
  });
  console.log(["three coordinators in tight loops:", ...lines].join("\n"));
  if (Math.min(...counts) < SHARE_MIN * equalShare)
    world.noteProblem(`a coordinator starved: ${counts.join(", ")} leases`);
}

async function restoreUnder(world: RedisWorld, work: () => Promise<unknown> = () => world.work()): Promise<void> {
  const snapshot = await world.snapshot();
  await work();
  await world.crash(() => world.restore(snapshot));
}
