/** What happens to clocks, and to time itself: set wrong on one side, set right, and long silences. */
import type { Kind } from "./kind.js";

const SECOND_MS = 1_000;
const STEPS_MS = [
  0,
  1 * SECOND_MS,
  2 * SECOND_MS,
  3 * SECOND_MS,
  4 * SECOND_MS,
  60 * SECOND_MS,
  3_600 * SECOND_MS,
  31_536_000 * SECOND_MS,
];
const SILENCES_MS = [60 * SECOND_MS, 299 * SECOND_MS, 301 * SECOND_MS, 3_600 * SECOND_MS, 31 * 24 * 3_600 * SECOND_MS];

export const CLOCK_FAULTS = {
  setServerClock: {
    group: "clocks",
    weight: 2,
    play: (world, a, b) => {
      const server = a.one(world.group.servers);
      const aheadMs = b.one(STEPS_MS) * (b.of(2) === 0 ? 1 : -1);
      world.tell(() => `the clock of server ${server.index + 1} is set: now ${aheadMs} ms ahead`);
      server.clockAheadMs = aheadMs;
      return true;
    },
  },
  setCoordinatorClock: {
    group: "clocks",
    weight: 2,
    play: (world, a, b) => {
      const host = a.one(world.hosts);
      const aheadMs = b.one(STEPS_MS) * (b.of(2) === 0 ? 1 : -1);
      world.tell(() => `the clock of coordinator ${host.index + 1} is set: now ${aheadMs} ms ahead`);
      host.clockAheadMs = aheadMs;
      return true;
    },
  },
  setClocksRight: {
    group: "clocks",
    weight: 4,
    play: (world) => {
      const clocks = [...world.group.servers, ...world.hosts];
      if (clocks.every(({ clockAheadMs }) => clockAheadMs === 0)) return false;
      world.tell(() => "all clocks are set right");
      for (const clock of clocks) clock.clockAheadMs = 0;
      return true;
    },
  },
  silence: {
    group: "silences",
    weight: 1,
    play: async (world, a) => {
      const durationMs = a.one(SILENCES_MS);
      world.tell(() => `nothing happens for ${durationMs / SECOND_MS} s`);
      await world.pass(durationMs);
      return true;
    },
  },
} satisfies Record<string, Kind>;
