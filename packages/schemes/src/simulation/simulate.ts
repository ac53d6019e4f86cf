/** Simulates schemes in scenarios and counts repeats: every number is kept and compared, and nothing is sampled. */
import { nodeSourcesOf } from "../fields.js";
import { type GenerateContext, type Scheme, SchemeError, type SchemeErrorCode } from "../scheme.js";
import { createNodes, pidGenerator, SimulatedCounters, type SimulatedNode } from "./nodes.js";
import { seededRandom } from "./random.js";
import { distinctMacs, type Scenario } from "./scenarios.js";
import { type Expectation, isPlausible, repeatTheory } from "./theory.js";

export { SCENARIOS, type Scenario } from "./scenarios.js";

/** Each node must have a MAC address with a hash of its own. */
export const NODES_MAX = 1_000;
const DAY_S = 86_400;
/** With a longer span a clock that is set back could be before the epoch of a scheme. */
const SPAN_MAX_S = 365 * DAY_S;

/** What is simulated. */
export interface Simulation {
  readonly schemes: readonly Scheme[];
  readonly scenarios: readonly Scenario[];
  /** 2 to `NODES_MAX`. */
  readonly nodes: number;
  /** How many numbers are requested in all, of each scheme in each scenario; 1 or more. All are in memory: a million may take half a gigabyte. */
  readonly numbers: number;
  /** Of all nodes together, above 0; requests come at random moments. */
  readonly perSecond: number;
  /** The same seed gives the same result, whichever other schemes and scenarios are simulated. */
  readonly seed: number;
  /** Called before each scheme of each scenario. */
  readonly onScheme?: (scenario: Scenario, scheme: Scheme) => void;
}

interface ScenarioOutcomes {
  readonly scenario: Scenario;
  /** One for each scheme. */
  readonly outcomes: readonly Outcome[];
}

/** What one scheme did in one scenario. */
export interface Outcome {
  readonly scheme: Scheme;
  readonly generated: number;
  /** Numbers that had been made before: generated less different ones. */
  readonly repeats: number;
  /** Numbers that came after a wait. */
  readonly waited: number;
  /** Numbers that were requested and never made, by the reason. */
  readonly rejected: Readonly<Record<SchemeErrorCode, number>>;
  readonly theory: Expectation;
  /** False where count and theory disagree by more than chance can: a bug in the scheme, the theory or the simulation. */
  readonly plausible: boolean;
}

/**
 * Returns the outcomes scenario after scenario; each is simulated when it is requested.
 * @throws RangeError where it would take longer than a year.
 */
export function simulate(simulation: Simulation): Iterable<ScenarioOutcomes> {
  const { numbers, perSecond } = simulation;
  if (numbers / perSecond <= SPAN_MAX_S) return simulated(simulation);
  throw new RangeError(`${numbers} numbers at ${perSecond} a second do not fit ${SPAN_MAX_S / DAY_S} days`);
}

function* simulated(simulation: Simulation): Generator<ScenarioOutcomes, void> {
  const { schemes, scenarios, nodes, seed } = simulation;
  for (const scenario of scenarios) {
    const macs = distinctMacs(nodes, seededRandom(`${seed} ${scenario.name}`), scenario.macs);
    const outcomes = schemes.map((scheme) => {
      simulation.onScheme?.(scenario, scheme);
      return outcomeOf(scheme, scenario, macs, simulation);
    });
    yield { scenario, outcomes };
  }
}

function outcomeOf(scheme: Scheme, scenario: Scenario, macs: readonly string[], simulation: Simulation): Outcome {
  const numbers = simulation.numbers * scenario.times.asMany;
  const perSecond = simulation.perSecond * scenario.times.asFast;
  const random = seededRandom(`${simulation.seed} ${scenario.name} ${scheme.name}`);
  const newPid = pidGenerator();
  const nodes = createNodes(scheme.fields, macs, newPid);
  const counters = new SimulatedCounters();
  const stage = { nodes, counters, spanMs: (numbers / perSecond) * 1_000, newPid };
  const perServer = nodeSourcesOf(scheme.fields).includes("server");
  const gapMs = stage.spanMs / (numbers / nodes.length);

  const made = new Set<string>();
  const theory = repeatTheory(scheme.fields);
  const rejected = { clock_moved_backward: 0, number_space_exhausted: 0 };
  let generated = 0;
  let waited = 0;
  /** Waits as long as the scheme requests, by a clock that may be wrong, and tries again. */
  const requestOne = (node: SimulatedNode, context: GenerateContext): void => {
    node.trueMs += random.gap(gapMs);
    try {
      let step = scheme.generate(context);
      if (step.outcome === "wait") waited++;
      while (step.outcome === "wait") {
        node.trueMs += Math.max(step.untilMs - node.readMs, 1);
        step = scheme.generate(context);
      }
      generated++;
      made.add(step.text);
      theory.add(node);
    } catch (error) {
      if (!(error instanceof SchemeError)) throw error;
      rejected[error.code]++;
    }
  };

  let doneShare = 0;
  const requestUntil = (share: number): void => {
    // Nodes share nothing but the counter, so between two events one may be simulated after the other.
    for (const node of nodes) {
      const { clock, identity, memory, disk } = node;
      const context = { clock, random, node: identity, memory, disk, counter: counters.counterFor(node, perServer) };
      const all = Math.floor(numbers / nodes.length) + (node.index < numbers % nodes.length ? 1 : 0);
      const count = Math.floor(all * share) - Math.floor(all * doneShare);
      for (let number = 0; number < count; number++) requestOne(node, context);
    }
    doneShare = share;
  };

  for (const [share, happen] of [
    [0, scenario.atBegin],
    [1 / 4, scenario.atQuarter],
    [1 / 2, scenario.atHalf],
  ] as const) {
    if (happen === undefined) continue;
    requestUntil(share);
    happen(stage);
  }
  requestUntil(1);

  const expectation = theory.expectation();
  const repeats = generated - made.size;
  const plausible = isPlausible(repeats, expectation);
  return { scheme, generated, repeats, waited, rejected, theory: expectation, plausible };
}
