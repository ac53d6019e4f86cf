/** The course of things: clients ask, time passes, coordinators send heartbeats; and what an operator runs, rightly or not. */
import { ERROR_RULES } from "@callnumber/protocol/api";
import type { NewPlace } from "../operator.js";
import type { World } from "../world.js";
import { type Choices, kind } from "./kind.js";

const RUN_COUNTS = [1, 2, 8, 64];

export const COURSE = {
  lease: kind("course", 36, askForLease),
  moment: kind("course", 10, (world, a) => pass(world, 10 + a.of(400))),
  wait: kind("course", 5, (world, a) => pass(world, 500 + a.of(8_000))),
  heartbeat: kind("course", 5, (world, a) => {
    const host = a.one(world.hosts);
    world.log(() => `coordinator ${host.index + 1} touches the record`);
    host.heartbeat();
  }),
  repair: kind("course", 6, (world, a) => {
    const stopped = world.importers.find(({ refusedWith }) => asksForOperator(refusedWith?.code));
    if (stopped === undefined || world.operator.isBusy) return false;
    world.operator.route = a.one(world.hosts).route;
    world.log(
      () => `the operator runs recover at server ${world.operator.route + 1}, because of ${stopped.refusedWith?.code}`,
    );
    world.operator.recover(0);
  }),
  /** At the end of a version. */
  goOn: kind("course", 3, (world, a) => {
    const isEnded = world.importers.some(({ refusedWith }) => refusedWith?.code === "run_space_exhausted");
    if (!isEnded || world.operator.isBusy) return false;
    world.operator.route = a.one(world.hosts).route;
    world.log(() => `the operator runs advance-version at server ${world.operator.route + 1}`);
    world.operator.advance();
  }),
  /** As Sentinel directs: a coordinator that is not at a master goes to one. */
  findMaster: kind("course", 5, (world, a, b) => {
    const { group, hosts } = world;
    const astray = hosts.filter(({ route }) => !group.masters.includes(group.at(route)));
    const host = a.one(astray);
    const master = b.one(group.masters);
    if (host === undefined || master === undefined) return false;
    world.log(() => `coordinator ${host.index + 1} is pointed at server ${master.index + 1}, a master`);
    host.route = master.index;
  }),
};

export function askForLease(world: World, a: Choices, b: Choices): void {
  const importer = a.one(world.importers);
  const host = b.one(world.hosts);
  void importer.ask(host, b.one(RUN_COUNTS));
}

export function asksForOperator(code: string | undefined): boolean {
  if (code === undefined || code === "run_space_exhausted") return false;
  return ERROR_RULES[code as keyof typeof ERROR_RULES].retry === "never";
}

async function pass(world: World, durationMs: number): Promise<void> {
  world.log(() => `${durationMs} ms pass`);
  await world.pass(durationMs);
}

/** As the command waits, and without waiting. */
const WATCHES_MS = [0, 11_000];

export const OPERATOR_DEEDS = {
  recover: kind("operator", 2, (world, a) => {
    if (world.operator.isBusy) return false;
    world.operator.route = a.one(world.group.servers).index;
    world.log(() => `the operator runs recover at server ${world.operator.route + 1}`);
    world.operator.recover(a.one(WATCHES_MS));
  }),
  advance: kind("operator", 2, (world, a) => {
    if (world.operator.isBusy) return false;
    world.operator.route = a.one(world.group.servers).index;
    world.log(() => `the operator runs advance-version at server ${world.operator.route + 1}`);
    world.operator.advance();
  }),
  move: kind("moves", 2, (world, a) => move(world, a, world.newPlaces[0])),
  moveElsewhere: kind("moves", 1, (world, a) => move(world, a, world.newPlaces[1])),
  leaseAtNewPlace: kind("moves", 12, async (world, a, b) => {
    const place = a.one(await world.madePlaces());
    if (place === undefined) return false;
    void b.one(world.importers).ask(place, b.one(RUN_COUNTS));
  }),
  giveUp: kind("operator", 1, (world) => {
    if (!world.operator.isBusy) return false;
    world.log(() => "the operator's command is killed");
    world.operator.giveUp();
  }),
};

function move(world: World, a: Choices, place: NewPlace): false | void {
  if (world.operator.isBusy) return false;
  world.operator.route = a.one(world.hosts).route;
  world.log(() => `the operator runs move to ${place.name} at server ${world.operator.route + 1}`);
  world.operator.move(place);
}
