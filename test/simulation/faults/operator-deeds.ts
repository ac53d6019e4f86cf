/** What an operator types, rightly or not: recover and advance-version at any time and on any server, move, and giving up half-way. */
import { RUN_COUNTS } from "./course.js";
import type { Kind } from "./kind.js";

/** As the command waits, and as somebody who calls the verb without waiting. */
const WATCHES_MS = [0, 11_000];

export const OPERATOR_DEEDS = {
  recover: {
    group: "operator",
    weight: 2,
    play: (world, a) => {
      if (world.operator.isBusy) return false;
      world.operatorRoute = a.one(world.group.servers).index;
      world.tell(() => `the operator types recover at server ${world.operatorRoute + 1}`);
      world.operator.recover(a.one(WATCHES_MS));
      return true;
    },
  },
  advance: {
    group: "operator",
    weight: 2,
    play: async (world, a) => {
      if (world.operator.isBusy || (await world.newPlace.isMade())) return false;
      world.operatorRoute = a.one(world.group.servers).index;
      world.tell(() => `the operator types advance-version at server ${world.operatorRoute + 1}`);
      world.operator.advance();
      return true;
    },
  },
  move: {
    group: "moves",
    weight: 2,
    play: (world, a) => {
      if (world.operator.isBusy) return false;
      world.operatorRoute = a.one(world.hosts).route;
      world.tell(() => `the operator runs move at server ${world.operatorRoute + 1}`);
      world.operator.move();
      return true;
    },
  },
  leaseAtNewPlace: {
    group: "moves",
    weight: 12,
    play: async (world, a, b) => {
      if (!(await world.newPlace.isMade())) return false;
      void a.one(world.importers).ask(world.newPlace, b.one(RUN_COUNTS));
      return true;
    },
  },
  giveUp: {
    group: "operator",
    weight: 1,
    play: (world) => {
      if (!world.operator.isBusy) return false;
      world.tell(() => "the operator's command is killed");
      world.operator.giveUp();
      return true;
    },
  },
} satisfies Record<string, Kind>;
