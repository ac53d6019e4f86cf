/**
 * The search takes worlds with one fingerprint for one world. That is right if whatever can come of the one can come of the other, up
 * to names: here worlds that the search took for the same are asked for all their next worlds, and these are compared.
 */
import { expect, test } from "vitest";
import { fingerprint } from "./fingerprint.js";
import { relevant } from "./relevance.js";
import { breaksPromise, visitNext } from "./search.js";
import { STARTS } from "./starts.js";
import { SHORT_FULL_TRIALS, type Trial } from "./trials.js";
import { at, NOBODY, type World } from "./world.js";

/** One pair in so many is compared. */
const COMPARED_ONE_IN = 7;
const WORLDS_MAX = 2_000;
const PAIRS_MIN = 20;

test.each(SHORT_FULL_TRIALS)("worlds taken for the same have the same future: $name, $words", (trial) => {
  const seen = new Map<string, World>();
  let pairs = 0;
  const waiting: World[] = [STARTS[trial.start].world];
  for (const world of waiting) {
    visitNext(world, trial, (next) => {
      const rest = relevant(next, trial, trial.limits);
      if (!rest) return;
      const key = nameOf(rest, trial);
      const known = seen.get(key);
      if (known === undefined) {
        seen.set(key, rest);
        if (waiting.length < WORLDS_MAX) waiting.push(rest);
      } else if (!isSame(known, rest) && !isEitherNext(rest) && pairs++ % COMPARED_ONE_IN === 0) {
        expect(futureOf(rest, trial)).toEqual(futureOf(known, trial));
      }
    });
  }
  expect(pairs).toBeGreaterThan(PAIRS_MIN);
});

/** Both coordinators hand out next, in either order: the search follows one, and another one in a world with other names. */
const isEitherNext = ({ coordinators }: World): boolean =>
  coordinators.every(({ phase, acknowledged }) => phase === "leased" && acknowledged);

const isSame = (one: World, other: World): boolean => JSON.stringify(one) === JSON.stringify(other);

/** All next worlds by their names, the least of all orders of the nodes; and whether one breaks the promise. */
function futureOf(world: World, trial: Trial): string[] {
  const names = new Set<string>();
  visitNext(world, trial, (next) => {
    const rest = relevant(next, trial, trial.limits);
    const orders = rest ? ORDERS.map((order) => nameOf(reordered(rest, order), trial)).sort() : ["nothing"];
    names.add(`${orders[0]}${breaksPromise(next) ? " breaks the promise" : ""}`);
  });
  return [...names].sort();
}

function nameOf(world: World, { limits }: Trial): string {
  const { high, low } = fingerprint(world, limits);
  return `${high} ${low}`;
}

const ORDERS = [
  [0, 1, 2],
  [0, 2, 1],
  [1, 0, 2],
  [1, 2, 0],
  [2, 0, 1],
  [2, 1, 0],
] as const;

/** The same world with its nodes under other names: `order` says for each new place who stands there. */
function reordered(world: World, order: readonly number[]): World {
  const placeOf = (index: number): number => (index === NOBODY ? NOBODY : order.indexOf(index));
  return {
    ...world,
    nodes: order.map((index) => {
      const node = at(world.nodes, index);
      return { ...node, follows: placeOf(node.follows) };
    }),
    coordinators: world.coordinators.map((coordinator) => ({ ...coordinator, at: placeOf(coordinator.at) })),
    backup: world.backup && { ...world.backup, node: placeOf(world.backup.node) },
    rolledBack: placeOf(world.rolledBack),
  };
}
