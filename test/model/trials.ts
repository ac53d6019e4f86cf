/**
 * What is searched: the full design, which must repeat nothing; designs from which one thing was taken away, which must repeat; and
 * the full design beyond what docs/guarantees.md promises, which must repeat too, or the promise would be said too small.
 * Each search has the start and the bounds in which it ends soon.
 */
import type { Limits } from "./adversary.js";
import { type Design, FULL_DESIGN, type Numbers } from "./design.js";
import type { FaultKind } from "./faults.js";
import { SMALL_SPACE, type StartName } from "./starts.js";

export interface Trial {
  readonly name: string;
  /** What is different from the guard, or how far the search goes. */
  readonly words: string;
  readonly expected: "nothing" | "repeat";
  readonly design: Design;
  readonly numbers: Numbers;
  readonly touches: boolean;
  readonly start: StartName;
  readonly limits: Limits;
}

const NUMBERS: Numbers = { rate: 1, burst: 1, eps: 0, gap: 1, space: Number.POSITIVE_INFINITY };
const NUMBERS_WITH_EPS: Numbers = { ...NUMBERS, eps: 1 };
/** The line of the first version ends at tick 2, and something of the next one could be leased at tick 1. */
const NUMBERS_WITH_VERSIONS: Numbers = { ...NUMBERS, burst: 2, space: SMALL_SPACE };

/** As the guard was first written: a partial resynchronisation went unnoticed. */
const FIRST_EPOCH: Partial<Design> = { partialSyncInEpoch: false };

interface Extent extends Pick<Limits, "faults" | "ticks" | "generations"> {
  readonly kinds?: readonly FaultKind[];
  readonly touches?: boolean;
  readonly everyoneRemembers?: boolean;
}

const SHORT: Extent = { faults: 1, ticks: 2, generations: 2 };
const FAIL_OVER: readonly FaultKind[] = ["promote", "follow", "restart"];
const FORGETTING: readonly FaultKind[] = ["rollBack", "forget", "flush"];
const ADVANCING: readonly FaultKind[] = ["advance", "restart"];
const ADVANCED_AGAIN: Extent = { faults: 2, ticks: 2, generations: 3, kinds: ADVANCING };

/** Every kind of fault at every start, a few at a time: part of `npm test`. */
export const SHORT_FULL_TRIALS: readonly Trial[] = [
  full("fresh", SHORT),
  full("fresh", { ...SHORT, kinds: FORGETTING, touches: true }),
  full("split", { ...SHORT, ticks: 1 }),
  full("failedOver", { ...SHORT, ticks: 1 }),
  full("failedOver", { ...SHORT, faults: 2, ticks: 1, kinds: ["promote", "follow"] }),
  full("clocksApart", { ...SHORT, ticks: 3, kinds: ["follow"] }, NUMBERS_WITH_EPS),
  full("advanced", { ...ADVANCED_AGAIN, faults: 1, ticks: 3 }, NUMBERS_WITH_VERSIONS),
];

/** The full bound: takes minutes. */
export const FULL_TRIALS: readonly Trial[] = [
  full("fresh", { faults: 2, ticks: 2, generations: 2 }),
  full("fresh", { faults: 1, ticks: 2, generations: 3, touches: true }),
  full("fresh", { faults: 2, ticks: 2, generations: 2, kinds: FORGETTING, touches: true }),
  full("fresh", { faults: 3, ticks: 1, generations: 2, kinds: FAIL_OVER }),
  full("split", { faults: 2, ticks: 1, generations: 2 }),
  full("split", { faults: 1, ticks: 2, generations: 3 }),
  full("failedOver", { faults: 2, ticks: 1, generations: 2 }),
  full("failedOver", { faults: 3, ticks: 1, generations: 2, kinds: FAIL_OVER }),
  full("clocksApart", { faults: 1, ticks: 4, generations: 2 }, NUMBERS_WITH_EPS),
  full("fresh", { ...ADVANCED_AGAIN, generations: 2 }, NUMBERS_WITH_VERSIONS),
  full("advanced", { ...ADVANCED_AGAIN, ticks: 3 }, NUMBERS_WITH_VERSIONS),
  full("advanced", { faults: 1, ticks: 3, generations: 3 }, NUMBERS_WITH_VERSIONS),
];

/** One thing of the full design is missing. */
export const VARIANTS: readonly Trial[] = [
  variant("no-wait", "without the quorum (WAIT)", { quorum: false }, "fresh", { ...SHORT, kinds: FAIL_OVER }),
  variant("no-epoch", "without the epoch", { epoch: false }, "fresh", { ...SHORT, kinds: FAIL_OVER }),
  variant("no-jump", "without the jump", { jump: "none" }, "fresh", { ...SHORT, kinds: FAIL_OVER }),
  variant("no-claim", "when the jump comes before the quorum has the claim", { claimFirst: false }, "split", {
    ...SHORT,
    ticks: 1,
    kinds: ["followUnseen"],
  }),
  variant("no-checksum", "without the checksum", { checksum: false }, "fresh", { ...SHORT, kinds: ["edit"] }),
  variant("no-line", "when a jump is the age of the record at full rate", { jump: "age" }, "fresh", {
    ...SHORT,
    faults: 2,
    kinds: ["restart"],
  }),
  variant("no-full-sync", "without sync_full in the epoch", { fullSyncInEpoch: false }, "failedOver", {
    ...SHORT,
    kinds: ["follow"],
  }),
  variant("no-partial-sync", "without sync_partial_ok in the epoch", FIRST_EPOCH, "failedOver", {
    ...SHORT,
    kinds: FAIL_OVER,
  }),
  variant("no-check", "without the check after the quorum", { check: false }, "failedOver", {
    ...SHORT,
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
    { ...SHORT, ticks: 3, kinds: ["follow"] },
    NUMBERS_WITH_EPS,
  ),
  variant(
    "advance-early",
    "when a version is left before its line has passed its last run",
    { leavesAtEnd: false },
    "advancedEarly",
    { ...ADVANCED_AGAIN, ticks: 1 },
    NUMBERS_WITH_VERSIONS,
  ),
  variant(
    "advance-dense",
    "when a store in doubt goes on at the first run of the next version",
    { advanceClaims: false },
    "advanced",
    ADVANCED_AGAIN,
    NUMBERS_WITH_VERSIONS,
  ),
];

/** More than one thing is missing. */
export const COMBINED_VARIANTS: readonly Trial[] = [
  variant(
    "no-claim-no-sync",
    "when the jump comes before the quorum has the claim, and sync_partial_ok is not in the epoch",
    { ...FIRST_EPOCH, claimFirst: false },
    "split",
    { ...SHORT, ticks: 1, kinds: ["restart"] },
  ),
  variant(
    "plain-counter",
    "with a plain INCR and WAIT",
    { epoch: false, check: false, checksum: false, gap: false, memory: false },
    "fresh",
    { ...SHORT, kinds: FAIL_OVER },
  ),
];

/** The full design, and what docs/guarantees.md says remains impossible. */
export const BEYOND_THE_PROMISES: readonly Trial[] = [
  variant(
    "one-remembers",
    "by the full design when a coordinator leases that doesn't remember what was rolled back (R3)",
    {},
    "fresh",
    {
      ...SHORT,
      kinds: ["rollBack"],
      everyoneRemembers: false,
    },
  ),
  variant("statistics-reset", "by the full design when a server's statistics are set back (R6)", {}, "failedOver", {
    ...SHORT,
    kinds: ["followUnseen"],
  }),
];

/** The bounds of the variants without the claim, with it: that the claim is what they lack. */
export const CONTROLS: readonly Trial[] = [
  control("claim-alone", "as no-claim, but claimed first", {}, { ...SHORT, ticks: 1, kinds: ["followUnseen"] }),
  control("claim-no-sync", "as no-claim-no-sync, but claimed first", FIRST_EPOCH, {
    ...SHORT,
    ticks: 1,
    kinds: ["restart"],
  }),
];

/**
 * Without the claim, the fail-overs of the full design: with the whole epoch, and statistics that nobody sets back, nothing is
 * found. The claim is a second lock on the door that the epoch closes.
 */
export const SECOND_LOCK: readonly Trial[] = FULL_TRIALS.filter(
  ({ start, limits }) => start === "split" || start === "failedOver" || limits.kinds === FAIL_OVER,
).map(jumpingFirst);

function jumpingFirst(trial: Trial): Trial {
  const name = trial.name.replace("full", "jump-first");
  return { ...trial, name, words: `without the claim, ${trial.words}`, design: { ...FULL_DESIGN, claimFirst: false } };
}

function full(start: StartName, extent: Extent, numbers = NUMBERS): Trial {
  const { faults, kinds } = extent;
  const name = `full/${start}/${faults}${kinds ? "-of-some" : ""}${extent.touches ? "-touching" : ""}`;
  return { ...trialOf(name, wordsOf(extent), FULL_DESIGN, start, extent, numbers), expected: "nothing" };
}

function control(name: string, words: string, without: Partial<Design>, extent: Extent): Trial {
  const design = { ...FULL_DESIGN, ...without };
  return { ...trialOf(name, `${words}; ${wordsOf(extent)}`, design, "split", extent, NUMBERS), expected: "nothing" };
}

function variant(
  name: string,
  words: string,
  without: Partial<Design>,
  start: StartName,
  extent: Extent,
  numbers = NUMBERS,
): Trial {
  const design = { ...FULL_DESIGN, ...without };
  return { ...trialOf(name, `${words}; ${wordsOf(extent)}`, design, start, extent, numbers), expected: "repeat" };
}

function trialOf(
  name: string,
  words: string,
  design: Design,
  start: StartName,
  { touches = false, everyoneRemembers = true, ...extent }: Extent,
  numbers: Numbers,
): Omit<Trial, "expected"> {
  return { name, words, design, numbers, touches, start, limits: { ...extent, everyoneRemembers } };
}

function wordsOf({ faults, kinds, ticks, generations, touches }: Extent): string {
  const counted = `${faults} ${faults === 1 ? "fault" : "faults"} of ${kinds ? kinds.join(", ") : "any kind"}`;
  return `${counted}, ${ticks} ticks, generations to ${generations}${touches ? ", with touches" : ""}`;
}
