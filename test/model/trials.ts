/**
 * What is searched: the full design, which must repeat nothing, and designs from which one thing was taken away, which must repeat.
 * Each search has the start and the bounds in which it ends soon; the bounds of all variants lie inside those of the full design.
 */
import type { Limits } from "./adversary.js";
import { type Design, FULL_DESIGN, type Numbers } from "./design.js";
import type { FaultKind } from "./faults.js";
import type { StartName } from "./starts.js";

export interface Trial {
  readonly name: string;
  /** What is different from the guard, as the end of a sentence that begins with "a repeat is found". */
  readonly words: string;
  readonly expected: "nothing" | "repeat";
  readonly design: Design;
  readonly numbers: Numbers;
  readonly touches: boolean;
  readonly start: StartName;
  readonly limits: Limits;
}

const NUMBERS: Numbers = { rate: 1, burst: 1, eps: 0, gap: 1 };
const NUMBERS_WITH_EPS: Numbers = { ...NUMBERS, eps: 1 };

/** As the guard was first written: a partial resynchronisation went unnoticed. */
const FIRST_EPOCH: Partial<Design> = { partialSyncInEpoch: false };

type Extent = Pick<Limits, "faults" | "ticks" | "generations"> & {
  readonly kinds?: readonly FaultKind[];
  readonly touches?: true;
};

const SHORT: Extent = { faults: 1, ticks: 2, generations: 3 };
const FAIL_OVER: readonly FaultKind[] = ["promote", "follow", "restart"];

/** Every kind of fault at every start, a few at a time; ends within a minute on a slow machine. */
export const SHORT_FULL_TRIALS: readonly Trial[] = [
  full("fresh", { ...SHORT, ticks: 3 }),
  full("fresh", { ...SHORT, faults: 2, kinds: ["promote", "follow", "rollBack", "forget"] }),
  full("split", { ...SHORT, ticks: 1, generations: 2 }),
  full("failedOver", { ...SHORT, ticks: 1, generations: 2 }),
  full("clocksApart", { ...SHORT, ticks: 4, generations: 2, kinds: ["follow"] }, NUMBERS_WITH_EPS),
];

/** The full bound: takes minutes, and up to a few gigabytes. */
export const FULL_TRIALS: readonly Trial[] = [
  full("fresh", { faults: 2, ticks: 2, generations: 3 }),
  full("fresh", { faults: 3, ticks: 1, generations: 2, kinds: FAIL_OVER }),
  full("split", { faults: 2, ticks: 1, generations: 2 }),
  full("failedOver", { faults: 2, ticks: 1, generations: 2 }),
  full("clocksApart", { faults: 1, ticks: 4, generations: 2 }, NUMBERS_WITH_EPS),
];

export const VARIANTS: readonly Trial[] = [
  variant("no-wait", "without the quorum", { quorum: false }, "fresh", { ...SHORT, generations: 2, kinds: FAIL_OVER }),
  variant("no-epoch", "without the epoch", { epoch: false }, "fresh", { ...SHORT, kinds: FAIL_OVER }),
  variant("no-jump", "without the jump", { jump: "none" }, "fresh", { ...SHORT, generations: 2, kinds: FAIL_OVER }),
  variant(
    "no-claim",
    "when the jump comes before the quorum instead of after it, and the epoch is the first one",
    { ...FIRST_EPOCH, claimFirst: false },
    "split",
    { ...SHORT, kinds: ["restart"] },
  ),
  variant("no-checksum", "without the checksum", { checksum: false }, "fresh", { ...SHORT, kinds: ["edit"] }),
  variant("no-line", "when a jump is the age of the record at full rate", { jump: "age" }, "fresh", {
    ...SHORT,
    faults: 2,
    kinds: ["restart"],
  }),
  variant("no-full-sync", "without sync_full in the epoch", { fullSyncInEpoch: false }, "split", {
    ...SHORT,
    faults: 2,
    generations: 2,
    kinds: ["follow"],
  }),
  variant("no-partial-sync", "without sync_partial_ok in the epoch", FIRST_EPOCH, "failedOver", {
    ...SHORT,
    generations: 2,
    kinds: FAIL_OVER,
  }),
  variant("no-check", "without the check after the quorum", { check: false }, "failedOver", {
    ...SHORT,
    generations: 2,
    kinds: FAIL_OVER,
  }),
  variant("no-memory", "when coordinators remember nothing", { memory: false }, "fresh", {
    ...SHORT,
    kinds: ["rollBack"],
  }),
  variant("no-gap", "without the gap", { gap: false }, "fresh", { ...SHORT, kinds: ["rollBack"] }),
  variant("no-nonce", "without the nonce", { nonce: false }, "fresh", { ...SHORT, kinds: ["doubleAnswer"] }),
  variant(
    "half-margin",
    "when a jump lands one eps beyond the clock instead of two",
    { marginEps: 1 },
    "clocksApart",
    { ...SHORT, ticks: 4, generations: 2, kinds: ["follow"] },
    NUMBERS_WITH_EPS,
  ),
  variant(
    "plain-counter",
    "with a plain INCR and WAIT",
    { epoch: false, check: false, checksum: false, gap: false, memory: false },
    "fresh",
    { ...SHORT, kinds: FAIL_OVER },
  ),
  {
    ...variant("one-remembers", "when only one coordinator remembers what was rolled back", {}, "fresh", {
      ...SHORT,
      kinds: ["rollBack"],
    }),
    limits: { ...SHORT, kinds: ["rollBack"], everyoneRemembers: false },
  },
];

/** That the claim alone is what no-claim lacks: the same, but claimed first. */
export const CLAIM_CONTROL: Trial = {
  ...variant("claim-alone", "", FIRST_EPOCH, "split", { ...SHORT, kinds: ["restart"] }),
  words: "the epoch is the first one, and claims come first",
  expected: "nothing",
};

function full(start: StartName, extent: Extent, numbers = NUMBERS): Trial {
  const { faults, ticks, kinds } = extent;
  const words = `${faults} ${faults === 1 ? "fault" : "faults"} of ${kinds ? kinds.join(", ") : "any kind"} in ${ticks} ticks`;
  const limits = { ...extent, everyoneRemembers: true };
  return { name: `full/${start}/${faults}`, words, expected: "nothing", design: FULL_DESIGN, numbers, touches: extent.touches ?? false, start, limits };
}

function variant(
  name: string,
  words: string,
  without: Partial<Design>,
  start: StartName,
  extent: Extent,
  numbers = NUMBERS,
): Trial {
  const limits = { ...extent, everyoneRemembers: true };
  return { name, words, expected: "repeat", design: { ...FULL_DESIGN, ...without }, numbers, touches: extent.touches ?? false, start, limits };
}
