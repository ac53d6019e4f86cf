/**
 * One simulated world: servers, hosts with coordinators, importers, an operator, and the time and network between them. Made from the
 * setting of a history, and nothing else: the same history is always the same world.
 */
import fc from "fast-check";
import { Calls } from "./calls.js";
import type { Setting } from "./history.js";
import { type CheckpointDirectory, Host } from "./host.js";
import { Importer, Tally } from "./importer.js";
import { type LimitName, Limits } from "./limits.js";
import { BEGIN_MS, HOST_PLACE, Network, OPERATOR_PLACE, Time } from "./network.js";
import { NewPlace, Operator } from "./operator.js";
import {
  ceilingAt,
  DEFAULT_BOUNDS,
  isRefusal,
  type ObservedFields,
  RUN_MAX,
  readRecord,
  storedFields,
} from "./product.js";
import { Group } from "./replication.js";
import type { Saved, Server } from "./server.js";
import { SimulatedStore } from "./simulated-store.js";
import type { Variant } from "./variants.js";

export const NAMESPACE = "main";
/** Time is free here: the bounds are those of the product. */
export const BOUNDS = DEFAULT_BOUNDS;

/** Far more than one step ever makes. */
const MESSAGES_MAX = 10_000;

export interface Rules {
  readonly variant: Variant;
  readonly lifted: ReadonlySet<LimitName>;
  /** Hears what happens, in words; undefined when nobody listens. */
  readonly hear?: (line: string) => void;
}

export class World {
  readonly time = new Time();
  readonly tally = new Tally();
  readonly network: Network;
  readonly group: Group;
  readonly calls: Calls;
  readonly limits: Limits;
  readonly hosts: readonly Host[];
  readonly importers: readonly Importer[];
  readonly newPlace: NewPlace;
  readonly operator: Operator;
  /** Snapshots that somebody took of a server's disk, with what they hold. */
  readonly backups: Saved[] = [];
  /** How often each kind of step was played. */
  readonly played = new Map<string, number>();
  /** How often each code of a refusal met an importer. */
  readonly refusals = new Map<string, number>();
  storeId = "";
  /** The faults are over. */
  isMended = false;
  readonly #rules: Rules;
  #chance: number;
  #hasWoken = false;

  constructor(
    readonly setting: Setting,
    rules: Rules,
  ) {
    this.#rules = rules;
    this.#chance = setting.order;
    const [scheduler] = fc.sample(fc.scheduler(), { seed: setting.order, numRuns: 1 });
    if (scheduler === undefined) throw new Error("broken invariant: fast-check gives as many samples as are asked");
    this.network = new Network(scheduler);
    this.group = new Group({
      serverCount: setting.serverCount,
      network: this.network,
      toldEpoch: rules.variant.epochOf ?? ((epoch) => epoch),
      acknowledged: (server) => this.calls.acknowledged(server),
      mayFollow: (replica, master) =>
        !rules.variant.sparesReturns || this.isMended || replica.generationHeard <= master.generation,
    });
    const { time } = this;
    this.limits = new Limits({
      time,
      bounds: BOUNDS,
      lifted: rules.lifted,
      hosts: () => this.hosts,
    });
    this.calls = new Calls({
      group: this.group,
      time,
      limits: this.limits,
      variant: rules.variant,
      namespace: NAMESPACE,
      bounds: BOUNDS,
    });
    const shared: CheckpointDirectory = { notes: new Map(), isDamaged: false };
    const folders: Record<Setting["checkpoint"], () => CheckpointDirectory | undefined> = {
      none: () => undefined,
      own: () => ({ notes: new Map(), isDamaged: false }),
      shared: () => shared,
    };
    const random = () => this.#random();
    const wakes = () => this.wake();
    this.hosts = Array.from({ length: setting.hostCount }, (_, index) => {
      const openStore = (host: Host) =>
        this.#openStore(
          HOST_PLACE + index,
          () => host.nowMs,
          () => host.route,
        );
      return new Host({ index, time, bounds: BOUNDS, folder: folders[setting.checkpoint](), openStore, random, wakes });
    });
    this.importers = Array.from({ length: setting.importerCount }, (_, index) => new Importer(index, this));
    this.newPlace = new NewPlace({
      time,
      index: setting.hostCount,
      random,
      wakes,
      seen: (store) => rules.variant.newPlaceOf?.(store, () => this.storeId) ?? store,
    });
    this.operator = new Operator({
      namespace: NAMESPACE,
      time,
      bounds: BOUNDS,
      openStore: () => {
        const route = this.operatorRoute;
        return this.#openStore(
          OPERATOR_PLACE,
          () => time.nowMs,
          () => route,
        );
      },
      newPlace: this.newPlace.store,
      storeId: () => this.storeId,
      nodeCount: setting.serverCount,
      random,
      wakes,
      refuses: (error) => this.tally.refuse("the operator", error),
      tell: (words) => this.tell(words),
    });
  }

  /** Index of the server that the operator's next verb goes to. */
  operatorRoute = 0;

  /** Makes the namespace, and lets it be as old as the setting says. */
  async begin(): Promise<void> {
    const { serverCount, ageMs, firstRun, rate, isOnLine } = this.setting;
    const [master, ...replicas] = this.group.servers as [Server, ...Server[]];
    for (const replica of replicas) this.group.follow(replica, master);
    await this.settle();
    this.time.nowMs = BEGIN_MS - ageMs;
    const [host] = this.hosts as [Host];
    const made = host.coordinator.initNamespace(NAMESPACE, { firstRun, rate, nodeCount: serverCount });
    await this.settle();
    this.storeId = (await made).storeId;
    this.time.nowMs = BEGIN_MS;
    // Touched all the while, without playing years of it.
    const record = readRecord(master.contents.record as ObservedFields, NAMESPACE);
    if (isRefusal(record)) throw new Error("broken invariant: init makes a sound record");
    const line = Math.min(ceilingAt(record.id, record.version, BEGIN_MS), RUN_MAX);
    const highWaterMark = isOnLine ? line : record.highWaterMark;
    master.write({ ...master.contents, record: storedFields({ ...record, changedAtMs: BEGIN_MS, highWaterMark }) });
    this.group.spread(master);
    await this.settle();
  }

  /** Lets up to `messageCount` messages arrive, in the scheduler's order. */
  async settle(messageCount = Number.POSITIVE_INFINITY): Promise<void> {
    await promisesRun();
    for (let count = 0; count < messageCount && this.network.waitingCount > 0; count++) {
      if (count >= MESSAGES_MAX)
        throw new Error("broken invariant: a simulated world comes to rest when nobody does anything");
      await this.network.deliverOne();
      this.time.nowMs++;
      if (!this.#hasWoken) continue;
      this.#hasWoken = false;
      await promisesRun();
    }
  }

  /** Time passes, and whoever waits for it goes on. */
  async pass(durationMs: number): Promise<void> {
    const untilMs = this.time.nowMs + durationMs;
    while (this.time.ring(untilMs)) await this.settle();
    this.time.moveTo(untilMs);
  }

  /** A promise of the real code is about to go on. */
  wake(): void {
    this.#hasWoken = true;
  }

  tell(words: () => string): void {
    this.#rules.hear?.(`${((this.time.nowMs - BEGIN_MS) / 1000).toFixed(3).padStart(10)} s  ${words()}`);
  }

  #openStore(place: number, clock: () => number, route: () => number): SimulatedStore {
    const { group, network, calls, time } = this;
    return new SimulatedStore({
      time,
      namespace: NAMESPACE,
      place,
      group,
      network,
      calls,
      clock,
      route,
      wakes: () => this.wake(),
      handsOutCounter: (counter, isAcknowledged) => this.tally.receiveCounter(counter, isAcknowledged),
    });
  }

  /** Only pauses depend on it (mulberry32). */
  #random(): number {
    this.#chance = (this.#chance + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#chance ^ (this.#chance >>> 15), 1 | this.#chance);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}

/** All that promises of the real code have to do is done. */
function promisesRun(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve);
  });
}
