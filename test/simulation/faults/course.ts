/** The course of things: clients ask, time passes, coordinators send heartbeats; and what an operator runs, rightly or not. */
import { ERROR_RULES } from "@callnumber/protocol/wire";
import type { World } from "../world.js";
import type { Choices, Kind } from "./kinds.js";

const RUN_COUNTS = [1, 2, 8, 64];

export const COURSE = {
  lease: {
    group: "course",
    weight: 36,
    play: (world, a, b) => askForLease(world, a, b),
  },
  moment: {
    group: "course",
    weight: 10,
    play: (world, a) => pass(world, 10 + a.of(400)),
  },
  wait: {
    group: "course",
    weight: 5,
    play: (world, a) => pass(world, 500 + a.of(8_000)),
  },
  heartbeat: {
    group: "course",
    weight: 5,
    play: (world, a) => {
      const host = a.one(world.hosts);
      world.tell(() => `coordinator ${host.index + 1} touches the record`);
      host.heartbeat();
      return true;
    },
  },
  mend: {
    group: "course",
    weight: 6,
    play: (world, a) => {
      const stopped = world.importers.find(({ refusedWith }) => asksForOperator(refusedWith?.code));
      if (stopped === undefined || world.operator.isBusy) return false;
      world.operatorRoute = a.one(world.hosts).route;
      world.tell(
        () =>
          `the operator types recover at server ${world.operatorRoute + 1}, because of ${stopped.refusedWith?.code}`,
      );
      world.operator.recover(0);
      return true;
    },
  },
  /** At the end of a version. */
  goOn: {
    group: "course",
    weight: 3,
    play: async (world, a) => {
      const isEnded = world.importers.some(({ refusedWith }) => refusedWith?.code === "run_space_exhausted");
      if (!isEnded || world.operator.isBusy || (await world.newPlace.isMade())) return false;
      world.operatorRoute = a.one(world.hosts).route;
      world.tell(() => `the operator types advance-version at server ${world.operatorRoute + 1}`);
      world.operator.advance();
      return true;
    },
  },
  /** As Sentinel tells it: who is not at a master goes to one. */
  findMaster: {
    group: "course",
    weight: 5,
    play: (world, a, b) => {
      const { group, hosts } = world;
      const astray = hosts.filter(({ route }) => !group.masters.includes(group.at(route)));
      const host = a.one(astray);
      const master = b.one(group.masters);
      if (host === undefined || master === undefined) return false;
      world.tell(() => `coordinator ${host.index + 1} is pointed at server ${master.index + 1}, a master`);
      host.route = master.index;
      return true;
    },
  },
} satisfies Record<string, Kind>;

export function askForLease(world: World, a: Choices, b: Choices): boolean {
  const importer = a.one(world.importers);
  const host = b.one(world.hosts);
  void importer.ask(host, b.one(RUN_COUNTS));
  return true;
}

export function asksForOperator(code: string | undefined): boolean {
  if (code === undefined || code === "run_space_exhausted") return false;
  return ERROR_RULES[code as keyof typeof ERROR_RULES].retry === "never";
}

async function pass(world: World, durationMs: number): Promise<boolean> {
  world.tell(() => `${durationMs} ms pass`);
  await world.pass(durationMs);
  return true;
}

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
