/** Where a search can begin: a fresh store, or further on, so that a bound of few faults reaches what comes after a fail-over. */
import { FULL_DESIGN } from "./design.js";
import { attached, caughtUp, promoted, written } from "./replication.js";
import { FIRST_RECORD, firstWorld, type World } from "./world.js";

export interface Start {
  readonly words: string;
  readonly world: World;
}

const [A, B, C] = [0, 1, 2];

/** Runs of a version, where versions end. */
export const SMALL_SPACE = 5;

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
  advanced: {
    words:
      "it is tick 2; the version was advanced at A, K1 has handed out run 1 of the next one, and all nodes hold that",
    world: afterAdvance(fresh, 2),
  },
  advancedEarly: {
    words:
      "it is tick 1; the version was advanced at A, K1 has handed out run 1 of the next one, and all nodes hold that",
    world: afterAdvance(fresh, 1),
  },
} satisfies Record<string, Start>;

export type StartName = keyof typeof STARTS;

function afterAdvance(world: World, now: number): World {
  const run = SMALL_SPACE + 1;
  const advanced = written({ ...world, now }, A, { ...FIRST_RECORD, c: run, t: now, g: FIRST_RECORD.g + 1 });
  const held = caughtUp(caughtUp(advanced, B), C);
  const coordinators = held.coordinators.map((coordinator, index) =>
    index === 0 ? { ...coordinator, floor: run, gmin: FIRST_RECORD.g + 1 } : coordinator,
  );
  return { ...held, coordinators, handedOut: 2 ** run };
}

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
