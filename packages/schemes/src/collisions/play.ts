/** Plays schemes in worlds, and counts the numbers that were made before: every number is kept, and nothing is sampled. */
import type { MintContext } from "../mint-context.js";
import type { Scheme } from "../scheme.js";
import { SchemeError, type SchemeErrorCode } from "../scheme-error.js";
import { type Chance, chanceOf } from "./chance.js";
import { crewOf, freshPids } from "./crew.js";
import { makingsOf } from "./makings.js";
import { isPlausible } from "./plausible.js";
import { SimulatedCounters } from "./simulated-counters.js";
import type { SimulatedNode } from "./simulated-node.js";
import { type Theory, theoryOf } from "./theory.js";
import type { Stage, World } from "./worlds.js";

/** Each node must have a MAC address whose hash is told apart. */
export const NODES_MAX = 1_000;
const DAY_S = 86_400;
/** Else a clock that is set back could come to stand before the epoch of a scheme. */
const SPAN_MAX_S = 365 * DAY_S;

export interface Play {
  readonly schemes: readonly Scheme[];
  readonly worlds: readonly World[];
  /** 2 to `NODES_MAX`. */
  readonly nodes: number;
  /** How many numbers are asked for in all, of each scheme in each world. All of them are in memory at once: of the greediest scheme a million takes half a gigabyte. */
  readonly numbers: number;
  /** Of all nodes together; they ask at random moments. */
  readonly perSecond: number;
  /** The same seed, the same result; whichever other schemes and worlds are played. */
  readonly seed: number;
}

export interface Outcome {
  readonly world: World;
  readonly scheme: Scheme;
  readonly minted: number;
  /** Numbers that had been made before: minted less different ones. */
  readonly repeats: number;
  /** Numbers that came after a wait. */
  readonly waited: number;
  /** Numbers that were asked for and never made, by the reason. */
  readonly refused: Readonly<Record<SchemeErrorCode, number>>;
  readonly theory: Theory;
  /** False where what was seen and the theory disagree by more than chance can do: a fault of the scheme, of the theory or of the simulation. */
  readonly plausible: boolean;
}

/**
 * World after world, and in each scheme after scheme, each played when it is asked for.
 * @throws RangeError where a count is none, there are too few or too many nodes, or it would take longer than a year.
 */
export function outcomesOf(play: Play): Iterable<Outcome> {
  const { nodes, numbers, perSecond } = play;
  mustBeWhole("nodes", nodes, 2, NODES_MAX);
  mustBeWhole("numbers", numbers, 1, Number.MAX_SAFE_INTEGER);
  if (!(perSecond > 0 && perSecond < Number.POSITIVE_INFINITY && numbers / perSecond <= SPAN_MAX_S))
    throw new RangeError(`${numbers} numbers at ${perSecond} a second are no play of up to ${SPAN_MAX_S / DAY_S} days`);
  return played(play);
}

const MS = 1_000;

function* played({ schemes, worlds, nodes, numbers, perSecond, seed }: Play): Generator<Outcome, void> {
  for (const world of worlds) {
    const macs = world.macs(nodes, chanceOf(`${seed} ${world.name}`));
    for (const scheme of schemes) {
      const chance = chanceOf(`${seed} ${world.name} ${scheme.name}`);
      const { asFast, asMany } = world.times;
      yield outcomeOf({ world, scheme, macs, numbers: numbers * asMany, perSecond: perSecond * asFast, chance });
    }
  }
}

interface Scene {
  readonly world: World;
  readonly scheme: Scheme;
  readonly macs: readonly string[];
  readonly numbers: number;
  readonly perSecond: number;
  readonly chance: Chance;
}

function outcomeOf({ world, scheme, macs, numbers, perSecond, chance }: Scene): Outcome {
  const freshPid = freshPids();
  const nodes = crewOf(scheme, macs, freshPid);
  const stage: Stage = { nodes, counters: new SimulatedCounters(), spanMs: (numbers / perSecond) * MS, freshPid };
  world.begin(stage);

  const made = new Set<string>();
  const makings = makingsOf(scheme);
  const refused = { clock_went_back: 0, space_used_up: 0 };
  let minted = 0;
  let waited = 0;
  const gapMs = stage.spanMs / (numbers / nodes.length);
  const ask = (node: SimulatedNode, context: MintContext): void => {
    node.trueMs += chance.gap(gapMs);
    const asked = asking(scheme, node, context);
    if (asked.hasWaited) waited++;
    if ("refusal" in asked) {
      refused[asked.refusal]++;
      return;
    }
    minted++;
    made.add(asked.text);
    makings.add(node);
  };

  let share = 0;
  for (const { afterShare, happen } of [...world.happenings, { afterShare: 1, happen: () => {} }]) {
    for (const node of nodes) {
      const all = Math.floor(numbers / nodes.length) + (node.index < numbers % nodes.length ? 1 : 0);
      const context = contextOf(scheme, node, stage, chance);
      for (let left = Math.floor(all * afterShare) - Math.floor(all * share); left > 0; left--) ask(node, context);
    }
    happen(stage);
    share = afterShare;
  }

  const theory = theoryOf(scheme, makings);
  const repeats = minted - made.size;
  return { world, scheme, minted, repeats, waited, refused, theory, plausible: isPlausible(repeats, theory) };
}

/** Nodes ask nobody but the counter, so within a part of the play one may be played after the other. */
function contextOf(scheme: Scheme, node: SimulatedNode, { counters }: Stage, random: Chance): MintContext {
  const perServer = scheme.fields.some(({ source }) => source.kind === "node" && source.from === "server");
  const { clock, identity, memory, disk } = node;
  return { clock, random, node: identity, memory, disk, counter: counters.counterFor(node, perServer) };
}

type Asked = { readonly hasWaited: boolean } & ({ readonly text: string } | { readonly refusal: SchemeErrorCode });

/** Waits as long as the scheme says, by a clock that may be wrong, and asks again. */
function asking(scheme: Scheme, node: SimulatedNode, context: MintContext): Asked {
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

function mustBeWhole(name: string, value: number, min: number, max: number): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return;
  throw new RangeError(`${name} must be a whole number from ${min} to ${max}, not ${value}`);
}
