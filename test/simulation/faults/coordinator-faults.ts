/** What happens to coordinators, to messages on the way, and to clocks. */
import { HOST_PLACE } from "../network.js";
import { MISHAPS } from "../simulated-store.js";
import type { World } from "../world.js";
import { kind } from "./kind.js";

const CHECKPOINTS = ["kept", "kept", "lost", "damaged"] as const;

export const HOST_FAULTS = {
  restartCoordinator: kind("hosts", 5, (world, a, b) => {
    const host = a.one(world.hosts);
    const fate = b.one(CHECKPOINTS);
    const forgets = fate !== "kept" || host.folderKnowsLess;
    const forgetsAll = fate === "lost" || host.folder === undefined;
    if (forgets && !world.limits.mayForget(host, forgetsAll)) return false;
    world.log(() => `coordinator ${host.index + 1} is killed and started again, its checkpoint ${fate}`);
    if (fate === "lost") host.loseCheckpoint();
    if (fate === "damaged") host.damageCheckpoint();
    host.restart();
    world.limits.noteStart(HOST_PLACE + host.index, forgetsAll);
  }),
  reroute: kind("routes", 5, (world, a, b) => {
    const host = a.one(world.hosts);
    const server = b.one(world.group.servers);
    if (host.route === server.index) return false;
    world.log(() => `coordinator ${host.index + 1} is pointed at server ${server.index + 1}`);
    host.route = server.index;
  }),
  stopCoordinator: kind("stops", 2, (world, a) => {
    const host = a.one(world.hosts);
    if (!world.network.stop(HOST_PLACE + host.index)) return false;
    world.log(() => `coordinator ${host.index + 1} is stopped (SIGSTOP)`);
  }),
  continueCoordinator: kind("stops", 3, (world) => {
    const stopped = world.hosts.find(({ index }) => world.network.isStopped(HOST_PLACE + index));
    if (stopped === undefined) return false;
    world.log(() => `coordinator ${stopped.index + 1} goes on (SIGCONT)`);
    world.network.goOn(HOST_PLACE + stopped.index);
  }),
};

/** How late answers to reads may be: until the heartbeat gap and beyond. */
const READ_LAGS_MS = [20_000, 60_000, 120_000, 240_000, 310_000];
const HEARTBEAT_EVERY_MS = 5_000;

/** One coordinator has an old state of the store, next to others that have a fresh one. */
export const STALE_FAULTS = {
  lagReads: kind("stale", 4, (world, a, b) => {
    const host = a.one(world.hosts);
    const lagMs = b.one([0, ...READ_LAGS_MS, 0]);
    if (!host.store.lagReads(lagMs)) return false;
    world.log(() => `answers to reads of coordinator ${host.index + 1} are ${lagMs} ms late from now on`);
  }),
  /** Minutes in which the others do nothing. */
  meanwhile: kind("stale", 2, async (world, a, b) => {
    const host = a.one(world.hosts);
    const importer = a.one(world.importers);
    const rounds = 2 + b.of(48);
    world.log(() => `for ${(rounds * HEARTBEAT_EVERY_MS) / 1_000} s only coordinator ${host.index + 1} works`);
    for (let round = 0; round < rounds; round++) {
      host.heartbeat();
      if (b.of(4) === 0) void importer.ask(host, 1);
      await world.settle();
      await world.pass(HEARTBEAT_EVERY_MS);
    }
  }),
};

export const NETWORK_FAULTS = {
  mishap: kind("messages", 10, (world, a, b) => {
    const host = a.one(world.hosts);
    const mishap = b.one(MISHAPS);
    world.log(() => `the next of coordinator ${host.index + 1}: ${mishap}`);
    host.store.befall(mishap);
  }),
  /** What an importer does whose coordinator says that the store's answer is lost: it asks again, under the same nonce. */
  retry: kind("messages", 3, async (world, a, b) => {
    const host = a.one(world.hosts);
    const importer = b.one(world.importers);
    world.log(() => `an answer to coordinator ${host.index + 1} is lost, and ${importer.name} asks again`);
    host.store.befall("answer lost");
    void importer.ask(host, 1);
    await world.settle();
    void importer.ask(host, 1);
  }),
  release: kind("messages", 3, (world) => {
    if (!world.network.release()) return false;
    world.log(() => "what was late arrives");
  }),
  /** Some servers and coordinators on one side, the others on the other. */
  cut: kind("cuts", 3, (world, a) => {
    const places = placesOf(world);
    const [one, other] = [places.filter(() => a.of(2) === 1), [] as number[]];
    other.push(...places.filter((place) => !one.includes(place)));
    if (one.length === 0 || other.length === 0) return false;
    world.log(() => `a cut: ${one.map(nameOf).join(", ")} on one side, ${other.map(nameOf).join(", ")} on the other`);
    for (const near of one) for (const far of other) world.network.cut(near, far);
  }),
  heal: kind("cuts", 3, (world) => {
    if (!world.network.heal()) return false;
    world.log(() => "all cuts heal");
  }),
  /** A replica lags: its link stands still, and goes on when the same comes again. */
  lag: kind("lag", 4, (world, a) => {
    const replica = a.one(world.group.servers);
    const { follows, index } = replica;
    if (follows === undefined) return false;
    if (world.network.isCut(index, follows)) {
      world.log(() => `server ${index + 1} hears of server ${follows + 1} again`);
      world.network.repair(index, follows);
    } else {
      world.log(() => `server ${index + 1} hears nothing of server ${follows + 1} any more`);
      world.network.cut(index, follows);
    }
  }),
  interrupt: kind("lag", 2, (world, a) => {
    const replica = a.one(world.group.servers);
    if (!world.group.interrupt(replica)) return false;
    world.log(() => `the link of server ${replica.index + 1} breaks, and comes again`);
  }),
};

function placesOf(world: World): readonly number[] {
  return [...world.group.servers.map(({ index }) => index), ...world.hosts.map(({ index }) => HOST_PLACE + index)];
}

function nameOf(place: number): string {
  return place < HOST_PLACE ? `server ${place + 1}` : `coordinator ${place - HOST_PLACE + 1}`;
}

const SECOND_MS = 1_000;
const STEPS_MS = [
  0,
  1 * SECOND_MS,
  2 * SECOND_MS,
  3 * SECOND_MS,
  4 * SECOND_MS,
  60 * SECOND_MS,
  3_600 * SECOND_MS,
  31_536_000 * SECOND_MS,
];
const SILENCES_MS = [60 * SECOND_MS, 299 * SECOND_MS, 301 * SECOND_MS, 3_600 * SECOND_MS, 31 * 24 * 3_600 * SECOND_MS];

export const CLOCK_FAULTS = {
  setServerClock: kind("clocks", 2, (world, a, b) => {
    const server = a.one(world.group.servers);
    const aheadMs = b.one(STEPS_MS) * (b.of(2) === 0 ? 1 : -1);
    world.log(() => `the clock of server ${server.index + 1} is set: now ${aheadMs} ms ahead`);
    server.clockAheadMs = aheadMs;
  }),
  setCoordinatorClock: kind("clocks", 2, (world, a, b) => {
    const host = a.one(world.hosts);
    const aheadMs = b.one(STEPS_MS) * (b.of(2) === 0 ? 1 : -1);
    world.log(() => `the clock of coordinator ${host.index + 1} is set: now ${aheadMs} ms ahead`);
    host.clockAheadMs = aheadMs;
  }),
  setClocksRight: kind("clocks", 4, (world) => {
    const clocks = [...world.group.servers, ...world.hosts];
    if (clocks.every(({ clockAheadMs }) => clockAheadMs === 0)) return false;
    world.log(() => "all clocks are set right");
    for (const clock of clocks) clock.clockAheadMs = 0;
  }),
  silence: kind("silences", 1, async (world, a) => {
    const durationMs = a.one(SILENCES_MS);
    world.log(() => `nothing happens for ${durationMs / SECOND_MS} s`);
    await world.pass(durationMs);
  }),
};
