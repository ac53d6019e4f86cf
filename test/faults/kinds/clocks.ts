/**
 * Wrong clocks, and the two limits of runs: the run ceiling, and the end of the run space.
 * Guarantees: G2, G6, G12 (docs/guarantees.md).
 */
import { RUN_MAX } from "@callnumber/protocol/codec";
import { BURST_RUNS } from "../../../packages/coordinator/src/guard/ceiling.js";
import { advance, expectRejection, recover } from "../commands.js";
import { redisFault, shimmedFault } from "../redis-world.js";
import type { Fault } from "../run-fault.js";
import { oneOf } from "../seeded-random.js";

const HOUR_MS = 3_600_000;
const DAY_S = 24 * 3_600;
const MOVES_MS = [HOUR_MS, -HOUR_MS, 365 * 24 * HOUR_MS, -365 * 24 * HOUR_MS];
/** Both clocks together: more than eps, less than the gap. */
const TOGETHER_MS = 2_000;
const BACKDATED_RATE = 16;
const ROOM_LEFT_RUNS = 2_000;
const RUNS_LEFT = 8_000;

export const CLOCKS: readonly Fault[] = [
  redisFault(
    "the clock of a coordinator moved by an hour or a year, back and forth",
    { isShort: true, expected: ["clock_skew"] },
    async (world) => {
      const [coordinator] = world.coordinators;
      coordinator?.moveClock(oneOf(world.random, MOVES_MS));
      await world.untilSeen("clock_skew");
      coordinator?.moveClock(0);
    },
  ),
  shimmedFault(
    "the clock of Redis moved by an hour or a year, back and forth",
    { expected: ["clock_skew"] },
    async (world) => {
      await world.clock.move(oneOf(world.random, MOVES_MS), world.server);
      await world.untilSeen("clock_skew");
      await world.clock.move(0, world.server);
    },
  ),
  shimmedFault(
    "all clocks ahead and then set right, recover run meanwhile",
    { expected: ["clock_moved_backward"] },
    async (world) => {
      const moveAll = async (offsetMs: number) => {
        for (const coordinator of world.coordinators) coordinator.moveClock(offsetMs);
        await world.clock.move(offsetMs, world.server);
      };
      await moveAll(TOGETHER_MS);
      await world.work(20);
      await moveAll(0);
      await world.untilSeen("clock_moved_backward");
      const what = "recover while the clocks are behind the store";
      await world.withoutCoordinators(() => expectRejection(world, "clock_moved_backward", what, recover(world)));
    },
  ),
  redisFault(
    "leases at the run ceiling",
    {
      isShort: true,
      store: { ageDays: (ROOM_LEFT_RUNS - BURST_RUNS) / BACKDATED_RATE / DAY_S },
      expected: ["run_ceiling_reached"],
    },
    (world) => world.untilSeen("run_ceiling_reached", 5),
  ),
  redisFault(
    "leases at the end of the run space, the version advanced by two operators at once, and again after a restore",
    {
      isShort: true,
      store: { firstRun: RUN_MAX - RUNS_LEFT },
      hasPython: false,
      injectionCountMax: 1,
      expected: ["run_space_exhausted"],
    },
    async (world) => {
      await world.untilSeen("run_space_exhausted", 5);
      if (world.received.greatest !== RUN_MAX) throw new Error(`it ended at run ${world.received.greatest}`);
      const snapshot = await world.snapshot();
      const advanced = await Promise.allSettled([advance(world), advance(world)]);
      if (advanced.filter(({ status }) => status === "fulfilled").length !== 1)
        throw new Error("both operators advanced, or none");
      await world.untilLeasing();
      await world.work(20);
      if (world.received.greatest <= RUN_MAX) throw new Error("nothing was leased of the next version");
      await world.crash(() => world.restore(snapshot));
      await world.untilSeenAgain("run_space_exhausted", 20);
      await advance(world);
    },
  ),
];
