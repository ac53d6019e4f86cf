/**
 * The end of a history: everything is repaired, an operator does what is asked for, and then a lease must succeed in a bounded time.
 * A guard that always refused would be safe and useless.
 */
import { asksForOperator } from "./faults/course.js";
import { HOST_PLACE } from "./network.js";
import { type CoordinatorError, ceilingAt, parseStoreId, RUN_MAX } from "./product.js";
import type { World } from "./world.js";

/**
 * How long it may take, ms: a skip with a clock that was ahead lands at most 4 · eps beyond the line (8 s, and 1 s for a run), and the operator looks
 * for 11 s before each verb, of which two may be refused with what is to be done first; a second claim, and pauses between, are small against these.
 * In production this is not a minute of waiting.
 */
const HEALED_WITHIN_MS = 60_000;
const TRY_EVERY_MS = 500;
const WATCH_MS = 11_000;

export async function heal(world: World): Promise<void> {
  await repairEverything(world);
  const untilMs = world.time.nowMs + HEALED_WITHIN_MS;
  world.log(() => "everything is repaired; from now on leases must succeed");
  let lastVerb: Verb | undefined;
  for (const [index, host] of world.hosts.entries()) {
    const importer = world.importers[index % world.importers.length] as World["importers"][number];
    const leasesBefore = world.tally.leases.length;
    importer.refusedWith = undefined;
    let place: Parameters<typeof importer.ask>[0] = host;
    while (world.tally.leases.length === leasesBefore) {
      // What was asked before, and is answered late, is late no more.
      world.network.release();
      const areStopped = world.operator.isBusy && lastVerb?.areCoordinatorsStopped === true;
      if (!areStopped) {
        for (const other of world.hosts) other.heartbeat();
        void importer.ask(place, 1);
      }
      await world.settle();
      await world.pass(TRY_EVERY_MS);
      await world.settle();
      const refusal = importer.refusedWith as CoordinatorError | undefined;
      if (world.tally.violation !== undefined) return;
      if (world.time.nowMs > untilMs) {
        // All that know a later state know that it was moved, too, and step no more: R3 is about the others.
        if (world.time.nowMs - world.limits.lostAtMs <= 2 * TRY_EVERY_MS) return;
        return world.tally.miss(
          `${importer.name} is still refused by coordinator ${host.index + 1}: ${refusal?.code ?? "no answer"}`,
        );
      }
      if (world.tally.leases.length > leasesBefore || world.operator.isBusy) continue;
      const verb = nextVerb(world, refusal?.code, lastVerb);
      if (verb === undefined) continue;
      const isAboutMove = verb.name === "move" || verb.name === "recover in an empty place";
      const [madePlace] = isAboutMove ? await world.madePlaces() : [];
      if (madePlace !== undefined) {
        world.log(() => `${importer.name} is pointed at ${madePlace.name}`);
        place = madePlace;
        continue;
      }
      lastVerb = verb;
      world.log(() => `the operator runs ${verb.name}${inWords(verb)}, because of ${refusal?.code}`);
      if (verb.name === "advance-version") {
        world.operator.advance();
      } else if (verb.name === "move") {
        world.operator.move(world.newPlaces[verb.to], verb.lostStoreId);
      } else if (verb.name === "recover in an empty place") {
        world.operator.recoverAt(world.newPlaces[0]);
      } else {
        importer.refusedWith = undefined;
        world.operator.recover(WATCH_MS, verb.version);
      }
    }
  }
}

type Verb = (
  | { readonly name: "advance-version" }
  | { readonly name: "move"; readonly to: 0 | 1; readonly lostStoreId?: string }
  | { readonly name: "recover in an empty place" }
  | { readonly name: "recover"; readonly version: number }
) & {
  readonly areCoordinatorsStopped?: true;
};

/** What an operator runs next: an importer reports `code`, and the command that was run before may have reported another one, which is more exact. */
function nextVerb(
  { operator, storeId, time }: World,
  code: string | undefined,
  lastVerb: Verb | undefined,
): Verb | undefined {
  const refused = operator.refusedWith?.code;
  // Whether the new store was made is not known, and it runs nowhere: the error names the option that says so.
  const [, lostStoreId] = /--confirm-loss (\S+)/.exec(operator.refusedWith?.message ?? "") ?? [];
  const confirmed = lastVerb?.name === "move" && lostStoreId !== undefined ? { ...lastVerb, lostStoreId } : undefined;
  if (confirmed !== undefined && refused !== "namespace_moved") return confirmed;
  if ([code, refused].includes("namespace_moved")) {
    // The record is gone or damaged, and its version has ended: the error names the new store, and `recover` where that is lost.
    if (lastVerb?.name === "recover" && refused === "namespace_moved" && asksForOperator(code))
      return { name: "recover in an empty place" };
    // The move was cut short, and the record is gone or damaged with its seal: the error names `recover`.
    const isLost = lastVerb?.name === "move" && refused !== "namespace_moved" && asksForOperator(refused);
    if (isLost) return { name: "recover", version: 0 };
    // And its version has ended: the error names a floor in the next one, since this operator knows of no move that was done.
    if (lastVerb?.name === "recover" && refused === "run_space_exhausted") return { name: "recover", version: 1 };
    const isElsewhere = refused === "namespace_moved" && lastVerb?.name === "move";
    // Begun for each place: for one in a seal that was put back, and for the other later. None was made: the error names the way.
    if (isElsewhere && lastVerb.to === 1) return confirmed ?? { name: "recover in an empty place" };
    // Begun for the other place.
    return { name: "move", to: isElsewhere ? 1 : 0 };
  }
  if (code === "run_space_exhausted") return { name: "advance-version" };
  if (!asksForOperator(code)) return undefined;
  const said = operator.refusedWith?.code;
  // A record that no coordinator believes, while one without a checkpoint sends heartbeats: the error says what is to be done first.
  if (said === "coordinator_still_running" && lastVerb !== undefined)
    return { ...lastVerb, areCoordinatorsStopped: true };
  // Refused for its end: the record is gone, and only its operator knows which version it had reached.
  if (said === "run_space_exhausted") return { name: "recover", version: 1 };
  // A holder may first get `run_above_high_water_mark`, where no skip lands above its run any more: `run_ceiling_ending` announces that end.
  const id = parseStoreId(storeId);
  const isEnded = code === "run_above_high_water_mark" && id !== undefined && ceilingAt(id, 0, time.nowMs) >= RUN_MAX;
  return isEnded && !asksForOperator(said) ? { name: "advance-version" } : { name: "recover", version: 0 };
}

function inWords(verb: Verb): string {
  const version = verb.name === "recover" && verb.version > 0 ? ` with the floor of version ${verb.version}` : "";
  return `${version}${verb.areCoordinatorsStopped ? ", all coordinators stopped" : ""}`;
}

async function repairEverything(world: World): Promise<void> {
  const { group, network, hosts, operator } = world;
  world.isRepaired = true;
  for (const { index } of group.servers) network.goOn(index);
  for (const { index } of hosts) network.goOn(HOST_PLACE + index);
  network.heal();
  network.release();
  for (const server of group.servers) server.clockAheadMs = 0;
  for (const host of hosts) {
    host.clockAheadMs = 0;
    host.store.befall(undefined);
    host.store.lagReads(0);
  }
  await world.settle();
  operator.giveUp();
  const master = group.at(world.setting.order);
  if (master.role === "slave") group.promote(master);
  await world.settle();
  for (const server of group.servers) {
    if (server === master || (server.follows === master.index && server.link === "up")) continue;
    world.calls.hangUp(server);
    group.follow(server, master);
  }
  for (const host of hosts) host.route = master.index;
  world.operator.route = master.index;
  await world.settle();
}
