/** The facts of a scheme as sentences, each with its figures, for one load. */
import {
  type Coordination,
  chanceOfRepeat,
  type Facts,
  type Failure,
  type Order,
  type Reveals,
  type Scheme,
  SchemeError,
} from "../index.js";
import { chanceInWords, countInWords, dayOf, spanInWords } from "./figures.js";
import { type Load, rateInWords } from "./load.js";
import { sampleContext } from "./sample.js";

const ORDERS: Readonly<Record<Order, string>> = {
  strict: "each number is greater than the one made before it, whoever made that",
  "by time": "later numbers are greater, as far as the clocks of the nodes agree",
  "within a node": "each number is greater than the one that the same node made before",
  shuffled: "made in order, and written so that the eye sees none; anyone can compute it back",
  none: "numbers lie beside each other as they were drawn",
};

const COORDINATIONS: Readonly<Record<Coordination, string>> = {
  nothing: "nothing: every process mints by itself",
  "a number for each node": "a number for each node: somebody keeps the list",
  "one request for each run": "one request to the coordinator for each run; no other for the numbers in it",
  "one request for each number": "one request to the counter for each number",
};

const REVEALED: Readonly<Record<Reveals, string>> = {
  when: "when it was made",
  where: "where it was made",
  "how many": "how many were made before",
  nothing: "nothing",
};

export function factSentences(scheme: Scheme, load: Load): readonly (readonly [label: string, text: string])[] {
  const { facts } = scheme;
  return [
    ["size", `${bitsInWords(facts.bits)}, in ${facts.characters} characters`],
    ["order", ORDERS[facts.order]],
    ["asks for", COORDINATIONS[facts.coordination]],
    ["speed", speed(scheme, load)],
    ["lasts", lasts(scheme, load)],
    ["a repeat", repeat(scheme, load)],
    ["a reader", `learns ${facts.reveals.map((what) => REVEALED[what]).join(", and ")}`],
    [
      "a guess",
      `who knows the scheme${facts.endsMs === undefined ? "" : " and the second"}, but no number, names one; that it was made${facts.endsMs === undefined ? "" : " then"}: ${chanceInWords(facts.guessed(load))}`,
    ],
    [
      "another",
      `who knows the scheme and one number names another; that it was made: ${chanceInWords(facts.neighbour(load))}`,
    ],
    ...facts.failures.map(
      (failure, index) => [index === 0 ? "fails by" : "", FAILURES[failure](scheme, load)] as const,
    ),
  ];
}

/** Complete by its type. */
const FAILURES: Readonly<Record<Failure, (scheme: Scheme, load: Load) => string>> = {
  "clock goes back": (scheme) => `a clock that goes back: ${afterClockStep(scheme)}`,
  "two nodes alike": nodesAlike,
  "space used up": ({ facts: { endsMs, lastsSeconds } }, { perSecond }) =>
    endsMs === undefined ? `its end, after ${spanInWords(lastsSeconds(perSecond))}` : `its end, on ${dayOf(endsMs)}`,
  birthday: (scheme, load) => `two draws alike: ${repeat(scheme, load)}`,
  "counter set back": ({ facts }) =>
    facts.coordination === "one request for each run"
      ? "a counter that is restored or forgotten: against that the coordinator has its guard (docs/guarantees.md)"
      : "a counter that is restored or forgotten: it gives the same numbers once more",
};

/** Those that take their number by themselves may take the same one; those that are given one may be given the same. */
function nodesAlike({ fields, facts }: Scheme, { nodes }: Load): string {
  const isTaken = fields.some(({ source }) => source.kind === "node" && source.from === "mac hash");
  const isLucky = fields.some(
    ({ source }) =>
      source.kind === "random" ||
      source.kind === "remainder" ||
      (source.kind === "sequence" && source.first === "random"),
  );
  const alike = `two nodes alike: ${isLucky ? "only luck keeps their numbers apart" : "they make the same numbers"}`;
  if (!isTaken) return `${alike}; there are ${countInWords(facts.nodes)} numbers to give them`;
  const chance = chanceInWords(chanceOfRepeat(facts.nodes, nodes));
  return `${alike}; of ${countInWords(nodes)} that take one of ${countInWords(facts.nodes)} numbers by themselves, that two are: ${chance}`;
}

const STEP_BACK_MS = 60_000;

/** Played, not told: one number is minted, the clock goes back a minute, and the next is asked for. */
function afterClockStep(scheme: Scheme): string {
  let nowMs = sampleContext().clock.nowMs();
  const context = { ...sampleContext(), clock: { nowMs: () => nowMs } };
  scheme.mint(context);
  nowMs -= STEP_BACK_MS;
  const by = spanInWords(STEP_BACK_MS / 1_000);
  try {
    const next = scheme.mint(context);
    if (next.outcome === "wait") return `${by} back, it waits for ${spanInWords((next.untilMs - nowMs) / 1_000)}`;
    return `${by} back, it goes on, and makes numbers of a time that it was in before`;
  } catch (error) {
    if (!(error instanceof SchemeError)) throw error;
    return `${by} back, it refuses until the clock is where it was`;
  }
}

function bitsInWords(bits: number): string {
  return `${Number(bits.toFixed(2))} bits: ${countInWords(2 ** bits)} numbers`;
}

function speed({ facts: { perSecond, nodes } }: Scheme, load: Load): string {
  const most = Number.isFinite(perSecond)
    ? `at most ${countInWords(perSecond)} a second`
    : "as many a second as one likes";
  const from = Number.isFinite(nodes) ? `, from ${countInWords(nodes)} ${nodes === 1 ? "node" : "nodes"} together` : "";
  const enough = perSecond < load.perSecond ? `: too few for ${rateInWords(load.perSecond)}` : "";
  const crowded = nodes < load.nodes ? `: too few for ${countInWords(load.nodes)} nodes` : "";
  return `${most}${from}${enough || crowded}`;
}

function lasts({ facts: { lastsSeconds, endsMs } }: Scheme, { perSecond }: Load): string {
  const span = spanInWords(lastsSeconds(perSecond));
  if (endsMs !== undefined) return `its clock ends on ${dayOf(endsMs)}, ${span} after its first moment`;
  return `at ${rateInWords(perSecond)} its numbers are used up after ${span}`;
}

function repeat({ facts }: Scheme, load: Load): string {
  const chance = facts.repeats(load);
  const among = `among ${countInWords(load.perSecond * load.seconds)} numbers`;
  if (chance === 0) return `none ${among}, if it is run as it is meant to be`;
  const evenAfter = evenChanceAfter(facts, load);
  const even = evenAfter === undefined ? "" : `; as likely as not after ${spanInWords(evenAfter)}`;
  return `${chanceInWords(chance)} ${among}${even}`;
}

const EVEN = 0.5;
/** From a microsecond to more than there is of any time, in powers of e. */
const FROM_LOG_S = Math.log(1e-6);
const TO_LOG_S = Math.log(1e30);
/** Of the logarithm: three digits of the time. */
const PRECISION = 1e-4;

/** When a repeat has become as likely as none: in seconds, at this rate and from so many nodes; undefined where it never is. */
export function evenChanceAfter({ repeats }: Facts, { perSecond, nodes }: Omit<Load, "seconds">): number | undefined {
  const isLikely = (log: number) => repeats({ perSecond, nodes, seconds: Math.exp(log) }) >= EVEN;
  if (!isLikely(TO_LOG_S)) return undefined;
  let [before, after] = [FROM_LOG_S, TO_LOG_S];
  while (after - before > PRECISION) {
    const middle = (before + after) / 2;
    if (isLikely(middle)) after = middle;
    else before = middle;
  }
  return Math.exp(after);
}
