/**
 * The worlds in which every scheme is played: what is wrong in each, and nothing else. A happening comes when every node has asked for that
 * share of its numbers.
 */
import type { Random } from "../mint-context.js";
import { macsToldApart, macsWithOneHash } from "./mac-addresses.js";
import type { SimulatedCounters } from "./simulated-counters.js";
import { QUICK_RESTART_MS, RESTART_MS, type SimulatedNode } from "./simulated-node.js";

export interface Stage {
  readonly nodes: readonly SimulatedNode[];
  readonly counters: SimulatedCounters;
  /** How long it takes to ask for all numbers. */
  readonly spanMs: number;
  /** A process id that no process had before. */
  readonly freshPid: () => number;
}

export interface World {
  /** As it is typed. */
  readonly name: string;
  /** What is wrong, in one line. */
  readonly title: string;
  /** How many times as fast as elsewhere numbers are asked for, and how many times as many. */
  readonly times: { readonly asFast: number; readonly asMany: number };
  /** The MAC address of each node. */
  readonly macs: (count: number, random: Random) => readonly string[];
  readonly begin: (stage: Stage) => void;
  readonly happenings: readonly Happening[];
}

interface Happening {
  /** Above 0, below 1. */
  readonly afterShare: number;
  readonly happen: (stage: Stage) => void;
}

/** A fast clock is put right by a step back of what it was ahead: in these worlds by so much of the whole time. */
const STEP_SHARE = 1 / 4;
const PACE_DIFFERENCE = 0.1;

export const WORLDS: readonly World[] = [
  world("good-clocks", "Every clock is right, and every node has numbers of its own"),
  world("clocks-apart", "One clock runs fast, one slow, by a tenth", {
    begin: ({ nodes: [first, second] }) => {
      if (first !== undefined) first.clockPace += PACE_DIFFERENCE;
      if (second !== undefined) second.clockPace -= PACE_DIFFERENCE;
    },
  }),
  world("clock-back", "One clock is set back by a quarter of the time, while its process runs", {
    happenings: [halfway(({ nodes: [first], spanMs }) => first?.stepClockBack(spanMs * STEP_SHARE))],
  }),
  world("clock-back-restart", "One clock is set back by a quarter of the time, while its process restarts", {
    happenings: [
      halfway(({ nodes: [first], spanMs, freshPid }) => {
        first?.restart({ tookMs: RESTART_MS, pid: freshPid() });
        first?.stepClockBack(spanMs * STEP_SHARE + RESTART_MS);
      }),
    ],
  }),
  world("quick-restart", "All processes restart, within a tenth of a second", {
    happenings: [halfway((stage) => restartAll(stage, QUICK_RESTART_MS))],
  }),
  world("one-hash", "Two nodes have MAC addresses with the same hash", {
    macs: (count, random) => macsToldApart(count, random, macsWithOneHash(random)),
  }),
  world("one-number", "Two nodes were given the same number", {
    begin: ({ nodes: [first, second] }) => {
      if (first === undefined || second === undefined) return;
      const { given, server } = first.identity;
      second.identity = { ...second.identity, given, server };
    },
  }),
  world("cloned", "One node is a copy of another, process id and all; both started after it", {
    begin: ({ nodes: [first, second] }) => {
      if (first !== undefined && second !== undefined) second.identity = first.identity;
    },
  }),
  world("disk-lost", "One process restarts with its old process id, and its disk is lost", {
    happenings: [
      halfway(({ nodes: [first] }) => {
        first?.restart({ tookMs: RESTART_MS, pid: first.identity.pid });
        first?.loseDisk();
      }),
    ],
  }),
  world("counter-back", "The central counter is set back to its backup, and all processes restart", {
    happenings: [
      {
        afterShare: 1 / 4,
        happen: (stage) => {
          stage.counters.backUp();
          restartAll(stage, RESTART_MS);
        },
      },
      halfway((stage) => {
        stage.counters.restore();
        restartAll(stage, RESTART_MS);
      }),
    ],
  }),
  world("heavy-rate", "A thousand times as fast, and five times as many", { times: { asFast: 1_000, asMany: 5 } }),
];

function world(
  name: string,
  title: string,
  { times = { asFast: 1, asMany: 1 }, macs = macsToldApart, begin = () => {}, happenings = [] }: Partial<World> = {},
): World {
  return { name, title, times, macs, begin, happenings };
}

function halfway(happen: (stage: Stage) => void): Happening {
  return { afterShare: 1 / 2, happen };
}

function restartAll({ nodes, freshPid }: Stage, tookMs: number): void {
  for (const node of nodes) node.restart({ tookMs, pid: freshPid() });
}
