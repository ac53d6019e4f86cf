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
import { BEGIN_MS, Network, Time } from "./network.js";
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
import type { Variant } from "./variant.js";

export const NAMESPACE = "main";
/** Time is free here: the bounds are those of the product. */
export const BOUNDS = DEFAULT_BOUNDS;

/** Far more than one step ever makes. */
const MESSAGES_MAX = 10_000;

export interface Rules {
  readonly variant: Variant;
  readonly lifted: ReadonlySet<LimitName>;
  /** Gets what happens, line by line, for people. */
  readonly onLine?: (line: string) => void;
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
  /** Where a namespace may be moved to: the first, and another one. */
  readonly newPlaces: readonly [NewPlace, NewPlace];
  readonly operator: Operator;
  /** Snapshots of a server's disk, with what they hold. */
  readonly backups: Saved[] = [];
  /** How often each kind of step was played. */
  readonly played = new Map<string, number>();
  /** How often each code of a refusal met an importer. */
  readonly refusals = new Map<string, number>();
  /** Recoveries, by their reason. */
  readonly recoveries = new Map<string, number>();
  storeId = "";
  /** The faults are over. */
  isRepaired = false;
  #chance: number;
  #hasWoken = false;

  constructor(
    readonly setting: Setting,
    readonly rules: Rules,
  ) {
    this.#chance = setting.order;
    const [scheduler] = fc.sample(fc.scheduler(), { seed: setting.order, numRuns: 1 });
    if (scheduler === undefined)
      throw new Error("broken invariant: fast-check returns as many samples as are requested");
    this.network = new Network(scheduler);
    this.group = new Group(this);
    this.limits = new Limits(this);
    this.calls = new Calls(this);
    const shared: CheckpointDirectory = { notes: new Map(), isDamaged: false, recoveredMin: 0 };
    const folders: Record<Setting["checkpoint"], () => CheckpointDirectory | undefined> = {
      none: () => undefined,
      own: () => ({ notes: new Map(), isDamaged: false, recoveredMin: 0 }),
      shared: () => shared,
    };
    const newHost = (_: unknown, index: number) => new Host(this, index, folders[setting.checkpoint]());
    this.hosts = Array.from({ length: setting.hostCount }, newHost);
    this.importers = Array.from({ length: setting.importerCount }, (_, index) => new Importer(index, this));
    this.newPlaces = [new NewPlace(this, 0), new NewPlace(this, 1)];
    this.operator = new Operator(this);
  }

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

  /** The places that have the namespace. */
  async madePlaces(): Promise<readonly NewPlace[]> {
    const areMade = await Promise.all(this.newPlaces.map((place) => place.isMade()));
    return this.newPlaces.filter((_, at) => areMade[at]);
  }

  /** Lets up to `messageCount` messages arrive, in the scheduler's order. */
  async settle(messageCount = Number.POSITIVE_INFINITY): Promise<void> {
    await promisesRun();
    for (let count = 0; count < messageCount && this.network.waitingCount > 0; count++) {
      if (count >= MESSAGES_MAX)
        throw new Error("broken invariant: a simulated world comes to rest when no step is played");
      await this.network.deliverOne();
      this.time.nowMs++;
      if (!this.#hasWoken) continue;
      this.#hasWoken = false;
      await promisesRun();
    }
  }

  /** Time passes, and what waits for it goes on. */
  async pass(durationMs: number): Promise<void> {
    const untilMs = this.time.nowMs + durationMs;
    while (this.time.ring(untilMs)) await this.settle();
    this.time.moveTo(untilMs);
  }

  /** A promise of the real code is about to go on. */
  wake(): void {
    this.#hasWoken = true;
  }

  /** `words` makes one line for people. */
  log(words: () => string): void {
    this.rules.onLine?.(`${((this.time.nowMs - BEGIN_MS) / 1000).toFixed(3).padStart(10)} s  ${words()}`);
  }

  /** For the real code: resolves when so much time has passed; never when its process is gone by then. */
  pause(pauseMs: number, isAlive: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.time.after(pauseMs, () => {
        if (!isAlive()) return;
        this.wake();
        resolve();
      });
    });
  }

  /** Only pauses depend on it (mulberry32). */
  random(): number {
    this.#chance = (this.#chance + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#chance ^ (this.#chance >>> 15), 1 | this.#chance);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}

/** All that promises of the real code have to do is done: they wait for the end of a turn here and there, to share a change. */
async function promisesRun(): Promise<void> {
  await new Promise((resolve) => {
    process.nextTick(resolve);
  });
  while (process.getActiveResourcesInfo().includes("Immediate")) {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}
