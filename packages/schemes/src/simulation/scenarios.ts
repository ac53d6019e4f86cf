/** The scenarios in which every scheme is simulated: what is wrong in each, and nothing else. */
import { hashOfMacs } from "../generating.js";
import type { Random } from "../scheme.js";
import type { SimulatedCounters, SimulatedNodes } from "./nodes.js";

/** What an event can change. */
interface Stage {
  readonly nodes: SimulatedNodes;
  readonly counters: SimulatedCounters;
  /** How long it takes to request all numbers. */
  readonly spanMs: number;
  /** Returns a process id that no process had before. */
  readonly newPid: () => number;
}

/** Something that goes wrong while numbers are generated, or nothing. */
export interface Scenario {
  /** As on the command line. */
  readonly name: string;
  /** What is wrong, in one line. */
  readonly title: string;
  /** How many times as fast as elsewhere numbers are requested, and how many times as many. */
  readonly times: { readonly asFast: number; readonly asMany: number };
  /** The MAC addresses of the first nodes. Those of all others are drawn. */
  readonly macs: readonly string[];
  /** Before the first number. */
  readonly atBegin?: (stage: Stage) => void;
  /** When every node has requested a quarter of its numbers. */
  readonly atQuarter?: (stage: Stage) => void;
  readonly atHalf?: (stage: Stage) => void;
}

/** A restart takes longer than any unit of a clock; a quick one does not. */
const RESTART_MS = 2_000;
const QUICK_RESTART_MS = 100;
/** Of the whole time: by so much a clock is set back. */
const STEP_SHARE = 1 / 4;
const CLOCK_RATE_ERROR = 0.1;

/** Found by search: their hashes are the same in all 32 bits. */
export const MACS_WITH_ONE_HASH = ["a0:23:df:86:c5:a7", "f8:38:c6:a0:d1:0b"] as const;

export const SCENARIOS: readonly Scenario[] = [
  scenario("good-clocks", "Every clock is right, and every node has numbers of its own"),
  scenario("clocks-apart", "One clock runs fast, one slow, by a tenth", {
    atBegin: ({ nodes: [first, second] }) => {
      first.clockRate += CLOCK_RATE_ERROR;
      second.clockRate -= CLOCK_RATE_ERROR;
    },
  }),
  scenario("clock-back", "One clock is set back by a quarter of the time, while its process runs", {
    atHalf: ({ nodes: [first], spanMs }) => {
      first.clockStepMs -= spanMs * STEP_SHARE;
    },
  }),
  scenario("clock-back-restart", "One clock is set back by a quarter of the time, while its process restarts", {
    atHalf: ({ nodes: [first], spanMs, newPid }) => {
      first.restart({ tookMs: RESTART_MS, pid: newPid() });
      first.clockStepMs -= spanMs * STEP_SHARE + RESTART_MS;
    },
  }),
  scenario("quick-restart", "All processes restart, within a tenth of a second", {
    atHalf: (stage) => restartAll(stage, QUICK_RESTART_MS),
  }),
  scenario("one-hash", "Two nodes have MAC addresses with the same hash", {
    macs: MACS_WITH_ONE_HASH,
  }),
  scenario("one-number", "Two nodes were given the same number", {
    atBegin: ({ nodes: [first, second] }) => {
      const { given, server } = first.identity;
      second.identity = { ...second.identity, given, server };
    },
  }),
  scenario("cloned", "One node is a copy of another, process id and all; both started after it", {
    atBegin: ({ nodes: [first, second] }) => {
      second.identity = first.identity;
    },
  }),
  scenario("disk-lost", "One process restarts with its old process id, and its disk is lost", {
    atHalf: ({ nodes: [first] }) => {
      first.restart({ tookMs: RESTART_MS, pid: first.identity.pid });
      first.loseDisk();
    },
  }),
  scenario("counter-back", "The central counter is set back to its backup, and all processes restart", {
    atQuarter: (stage) => {
      stage.counters.backUp();
      restartAll(stage, RESTART_MS);
    },
    atHalf: (stage) => {
      stage.counters.restore();
      restartAll(stage, RESTART_MS);
    },
  }),
  scenario("heavy-rate", "A thousand times as fast, and five times as many", {
    times: { asFast: 1_000, asMany: 5 },
  }),
];

function scenario(
  name: string,
  title: string,
  { times = { asFast: 1, asMany: 1 }, macs = [], ...events }: Partial<Scenario> = {},
): Scenario {
  return { ...events, name, title, times, macs };
}

function restartAll({ nodes, newPid }: Stage, tookMs: number): void {
  for (const node of nodes) node.restart({ tookMs, pid: newPid() });
}

/** The smallest field that takes a hash of MAC addresses: machines that differ in these bits differ in every scheme. */
const HASH_FIELD_CAPACITY = 2n ** 10n;

/**
 * Returns `macs` and further addresses up to `count`, none of the further ones with the lowest ten bits of another's hash.
 * @param count less than 2^10.
 */
export function distinctMacs(count: number, random: Random, macs: readonly string[]): readonly string[] {
  const all = [...macs];
  const taken = new Set(macs.map(lowestBits));
  while (all.length < count) {
    const mac = randomMac(random);
    if (taken.has(lowestBits(mac))) continue;
    taken.add(lowestBits(mac));
    all.push(mac);
  }
  return all;
}

function lowestBits(mac: string): bigint {
  return hashOfMacs([mac]) % HASH_FIELD_CAPACITY;
}

/** Of a manufacturer: neither a multicast address nor one that was set manually, so the first byte is a multiple of 4. */
function randomMac(random: Random): string {
  const bytes = [4 * random.below(64), ...Array.from({ length: 5 }, () => random.below(256))];
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}
