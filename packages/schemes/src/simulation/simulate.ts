/** Simulates schemes in scenarios and counts repeats: every number is kept and compared, and nothing is sampled. */
import { type MintContext, type Scheme, SchemeError, type SchemeErrorCode } from "../scheme.js";
import { createNodes, pidGenerator, SimulatedCounters, type SimulatedNode } from "./nodes.js";
import { type SeededRandom, seededRandom } from "./random.js";
import type { Scenario, Stage } from "./scenarios.js";
import { type Expectation, isPlausible, RepeatTheory } from "./theory.js";

export { SCENARIOS, type Scenario } from "./scenarios.js";

/** Each node must have a MAC address with a hash of its own. */
export const NODES_MAX = 1_000;
const DAY_S = 86_400;
/** With a longer span a clock that is set back could be before the epoch of a scheme. */
const SPAN_MAX_S = 365 * DAY_S;

export interface Simulation {
  readonly schemes: readonly Scheme[];
  readonly scenarios: readonly Scenario[];
  /** 2 to `NODES_MAX`. */
  readonly nodes: number;
  /** How many numbers are requested in all, of each scheme in each scenario. All are in memory: a million may take half a gigabyte. */
  readonly numbers: number;
  /** Of all nodes together; requests come at random moments. */
  readonly perSecond: number;
  /** The same seed gives the same result, whichever other schemes and scenarios are simulated. */
  readonly seed: number;
}

export interface Outcome {
  readonly scenario: Scenario;
  readonly scheme: Scheme;
  readonly minted: number;
  /** Numbers that had been made before: minted less different ones. */
  readonly repeats: number;
  /** Numbers that came after a wait. */
  readonly waited: number;
  /** Numbers that were requested and never made, by the reason. */
  readonly refused: Readonly<Record<SchemeErrorCode, number>>;
  readonly theory: Expectation;
  /** False where count and theory disagree by more than chance can: a bug in the scheme, the theory or the simulation. */
  readonly plausible: boolean;
}

/**
 * Returns the outcomes, scenario after scenario, and in each scheme after scheme; each is simulated when it is requested.
 * @throws RangeError where a count is none, there are too few or too many nodes, or it would take longer than a year.
 */
export function simulate(simulation: Simulation): Iterable<Outcome> {
  const { nodes, numbers, perSecond } = simulation;
  assertInteger("nodes", nodes, 2, NODES_MAX);
  assertInteger("numbers", numbers, 1, Number.MAX_SAFE_INTEGER);
  if (!(perSecond > 0 && perSecond < Number.POSITIVE_INFINITY && numbers / perSecond <= SPAN_MAX_S)) {
    throw new RangeError(`${numbers} numbers at ${perSecond} a second do not fit ${SPAN_MAX_S / DAY_S} days`);
  }
  return outcomes(simulation);
}

function* outcomes({ schemes, scenarios, nodes, numbers, perSecond, seed }: Simulation): Generator<Outcome, void> {
  for (const scenario of scenarios) {
    const macs = scenario.macs(nodes, seededRandom(`${seed} ${scenario.name}`));
    const { asFast, asMany } = scenario.times;
    for (const scheme of schemes) {
      const random = seededRandom(`${seed} ${scenario.name} ${scheme.name}`);
      yield outcomeOf({ scenario, scheme, macs, numbers: numbers * asMany, perSecond: perSecond * asFast, random });
    }
  }
}

interface OneRun {
  readonly scenario: Scenario;
  readonly scheme: Scheme;
  readonly macs: readonly string[];
  readonly numbers: number;
  readonly perSecond: number;
  readonly random: SeededRandom;
}

function outcomeOf({ scenario, scheme, macs, numbers, perSecond, random }: OneRun): Outcome {
  const newPid = pidGenerator();
  const nodes = createNodes(scheme.fields, macs, newPid);
  const stage: Stage = { nodes, counters: new SimulatedCounters(), spanMs: (numbers / perSecond) * 1_000, newPid };
  scenario.begin(stage);

  const made = new Set<string>();
  const theory = new RepeatTheory(scheme);
  const refused = { clock_moved_backward: 0, number_space_exhausted: 0 };
  let minted = 0;
  let waited = 0;
  const gapMs = stage.spanMs / (numbers / nodes.length);
  const requestOne = (node: SimulatedNode, context: MintContext): void => {
    node.trueMs += random.gap(gapMs);
    const result = mintWaiting(scheme, node, context);
    if (result.hasWaited) waited++;
    if ("refusal" in result) {
      refused[result.refusal]++;
      return;
    }
    minted++;
    made.add(result.text);
    theory.add(node);
  };

  let doneShare = 0;
  for (const { afterShare, happen } of [...scenario.events, { afterShare: 1, happen: () => {} }]) {
    // Nodes share nothing but the counter, so between two events one may be simulated after the other.
    for (const node of nodes) {
      const all = Math.floor(numbers / nodes.length) + (node.index < numbers % nodes.length ? 1 : 0);
      const context = contextOf(scheme, node, stage, random);
      const count = Math.floor(all * afterShare) - Math.floor(all * doneShare);
      for (let number = 0; number < count; number++) requestOne(node, context);
    }
    happen(stage);
    doneShare = afterShare;
  }

  const expectation = theory.expectation();
  const repeats = minted - made.size;
  const plausible = isPlausible(repeats, expectation);
  return { scenario, scheme, minted, repeats, waited, refused, theory: expectation, plausible };
}

function contextOf(scheme: Scheme, node: SimulatedNode, { counters }: Stage, random: SeededRandom): MintContext {
  const perServer = scheme.fields.some(({ source }) => source.kind === "node" && source.from === "server");
  const { clock, identity, memory, disk } = node;
  return { clock, random, node: identity, memory, disk, counter: counters.counterFor(node, perServer) };
}

type MintResult = { readonly hasWaited: boolean } & ({ readonly text: string } | { readonly refusal: SchemeErrorCode });

/** Waits as long as the scheme requests, by a clock that may be wrong, and tries again. */
function mintWaiting(scheme: Scheme, node: SimulatedNode, context: MintContext): MintResult {
  for (let hasWaited = false; ; hasWaited = true) {
    try {
      const step = scheme.mint(context);
      if (step.outcome === "minted") return { text: step.text, hasWaited };
      node.trueMs += Math.max(step.untilMs - node.readMs, 1);
    } catch (error) {
      if (!(error instanceof SchemeError)) throw error;
      return { refusal: error.code, hasWaited };
    }
  }
}

function assertInteger(name: string, value: number, min: number, max: number): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return;
  throw new RangeError(`${name} must be a whole number from ${min} to ${max}, not ${value}`);
}
