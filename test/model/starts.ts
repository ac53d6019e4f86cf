/** Where a search can begin: a fresh store, or further on, so that a bound of few faults reaches what comes after a fail-over. */
import { FULL_DESIGN } from "./design.js";
import { attached, promoted } from "./replication.js";
import { firstWorld, type World } from "./world.js";

export interface Start {
  readonly words: string;
  readonly world: World;
}

const [A, B, C] = [0, 1, 2];

const fresh = firstWorld();
const split = promoted(fresh, B);
const failedOver = attached(split, FULL_DESIGN, C, B);

export const STARTS = {
  fresh: { words: "A is master, B and C follow it and hold all; the store is new", world: fresh },
  split: { words: "B was promoted and is alone; A lives on as a master, with C", world: split },
  failedOver: { words: "B was promoted and C follows it; A lives on as a master, alone", world: failedOver },
  clocksApart: {
    words:
      "B was promoted and is alone; A lives on with C; the clocks of A and K1 are ahead by eps, all others behind by eps",
    world: withClocksApart(split),
  },
} satisfies Record<string, Start>;

export type StartName = keyof typeof STARTS;

/** As wrong as the guard allows. */
function withClocksApart(world: World): World {
  return {
    ...world,
    nodes: world.nodes.map((node, index) => ({ ...node, clockAhead: index === A ? 1 : -1 })),
    coordinators: world.coordinators.map((coordinator, index) => ({
      ...coordinator,
      clockAhead: index === 0 ? 1 : -1,
    })),
  };
}
