/** Describes the facts of a scheme in sentences, each with its figures, for one load. */
import {
  type Coordination,
  chanceOfRepeat,
  type Failure,
  type Load,
  type Order,
  type Reveals,
  type Scheme,
  SchemeError,
} from "../index.js";
import { formatChance, formatCount, formatDay, formatRate, formatSpan, type LabeledRows } from "./format.js";
import { sampleContext } from "./sample.js";

const ORDERS: Readonly<Record<Order, string>> = {
  strict: "each number is greater than the one made before it, by any process",
  "by time": "later numbers are greater, as far as the clocks of the nodes agree",
  "within a node": "each number is greater than the one that the same node made before",
  shuffled: "made in order, and written so that the eye sees none; anyone can compute it back",
  none: "numbers are in the order in which they were drawn",
};

const COORDINATIONS: Readonly<Record<Coordination, string>> = {
  nothing: "nothing: every process mints alone",
  "a number for each node": "a number for each node: an operator keeps the list",
  "one request for each run": "one request to the coordinator for each run; no other for the numbers in it",
  "one request for each number": "one request to the counter for each number",
};

const REVEALED: Readonly<Record<Reveals, string>> = {
  when: "when it was made",
  where: "where it was made",
  "how many": "how many were made before",
  nothing: "nothing",
};

export function factRows(scheme: Scheme, load: Load): LabeledRows {
  const { facts } = scheme;
  const { bits, characters, order, coordination, reveals, endsMs, failures } = facts;
  const [and, then] = endsMs === undefined ? ["", ""] : [" and the second", " then"];
  return [
    ["size", `${Number(bits.toFixed(2))} bits: ${formatCount(2 ** bits)} numbers, in ${characters} characters`],
    ["order", ORDERS[order]],
    ["asks for", COORDINATIONS[coordination]],
    ["speed", describeSpeed(scheme, load)],
    ["lasts", describeEnd(scheme, load)],
    ["a repeat", describeRepeat(scheme, load)],
    ["a reader", `learns ${reveals.map((what) => REVEALED[what]).join(", and ")}`],
    [
      "a guess",
      `by a person who knows the scheme${and}, but no number; that it was made${then}: ${formatChance(facts.guessed(load))}`,
    ],
    [
      "another",
      `named by a person who knows the scheme and one number; that it was made: ${formatChance(facts.neighbor(load))}`,
    ],
    ...failures.map((failure, index) => [index === 0 ? "fails by" : "", FAILURES[failure](scheme, load)] as const),
  ];
}

function describeSpeed({ facts: { perSecond, nodes } }: Scheme, load: Load): string {
  const most = Number.isFinite(perSecond) ? `at most ${formatCount(perSecond)} a second` : "no bound";
  const from = Number.isFinite(nodes) ? `, from ${formatCount(nodes)} ${nodes === 1 ? "node" : "nodes"} together` : "";
  if (perSecond < load.perSecond) return `${most}${from}: too few for ${formatRate(load.perSecond)}`;
  return `${most}${from}${nodes < load.nodes ? `: too few for ${formatCount(load.nodes)} nodes` : ""}`;
}

function describeEnd({ facts: { lastsSeconds, endsMs } }: Scheme, { perSecond }: Load): string {
  const span = formatSpan(lastsSeconds(perSecond));
  if (endsMs !== undefined) return `its clock ends on ${formatDay(endsMs)}, ${span} after its first moment`;
  return `at ${formatRate(perSecond)} its numbers are used up after ${span}`;
}

function describeRepeat({ facts }: Scheme, load: Load): string {
  const chance = facts.repeats(load);
  const among = `among ${formatCount(load.perSecond * load.seconds)} numbers`;
  return chance === 0 ? `none ${among}, if it is run as intended` : `${formatChance(chance)} ${among}`;
}

const FAILURES: Readonly<Record<Failure, (scheme: Scheme, load: Load) => string>> = {
  "clock goes back": (scheme) => `a clock that goes back: ${simulateClockStep(scheme)}`,
  "two nodes alike": describeNodesAlike,
  "space used up": ({ facts: { endsMs, lastsSeconds } }, { perSecond }) =>
    `its end, ${endsMs === undefined ? `after ${formatSpan(lastsSeconds(perSecond))}` : `on ${formatDay(endsMs)}`}`,
  birthday: (scheme, load) => `two draws alike: ${describeRepeat(scheme, load)}`,
  "counter set back": ({ facts }) =>
    facts.coordination === "one request for each run"
      ? "a counter that is restored or lost: the guard of the coordinator prevents it (docs/guarantees.md)"
      : "a counter that is restored or lost: it returns the same numbers again",
};

/** Nodes that derive their number may derive the same one; those that are assigned one may be assigned the same. */
function describeNodesAlike({ fields, facts }: Scheme, { nodes }: Load): string {
  const isDerived = fields.some(({ source }) => source.kind === "node" && source.from === "mac hash");
  const isRandom = fields.some(
    ({ source }) =>
      source.kind === "random" ||
      source.kind === "remainder" ||
      (source.kind === "sequence" && source.first === "random"),
  );
  const alike = `two nodes alike: ${isRandom ? "only chance keeps their numbers apart" : "they make the same numbers"}`;
  if (!isDerived) return `${alike}; there are ${formatCount(facts.nodes)} numbers to assign`;
  const chance = formatChance(chanceOfRepeat(facts.nodes, nodes));
  return `${alike}; of ${formatCount(nodes)} that derive one of ${formatCount(facts.nodes)} numbers, that two are: ${chance}`;
}

const STEP_BACK_MS = 60_000;

/** Mints one number, sets the clock back by a minute, and requests the next: the sentence is what happens then. */
function simulateClockStep(scheme: Scheme): string {
  let nowMs = sampleContext().clock.nowMs();
  const context = { ...sampleContext(), clock: { nowMs: () => nowMs } };
  scheme.mint(context);
  nowMs -= STEP_BACK_MS;
  const by = formatSpan(STEP_BACK_MS / 1_000);
  try {
    const next = scheme.mint(context);
    if (next.outcome === "wait") return `${by} back, it waits for ${formatSpan((next.untilMs - nowMs) / 1_000)}`;
    return `${by} back, it goes on, and makes numbers of a time that it was in before`;
  } catch (error) {
    if (!(error instanceof SchemeError)) throw error;
    return `${by} back, it refuses until the clock is where it was`;
  }
}
