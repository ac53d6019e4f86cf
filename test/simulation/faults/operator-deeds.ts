/** What an operator types, rightly or not: recover and advance-version at any time and on any server, and giving up half-way. */
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
    play: (world, a) => {
      if (world.operator.isBusy) return false;
      world.operatorRoute = a.one(world.group.servers).index;
      world.tell(() => `the operator types advance-version at server ${world.operatorRoute + 1}`);
      world.operator.advance();
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
