/**
 * What one fault happens to, whatever the store: coordinator processes over HTTP, importers that never rest, and the control. All of
 * it is this fault's own: store, directory, namespace, checkpoint.
 */
import { mkdtempSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Bounds } from "../../packages/coordinator/src/guard/clocks.js";
import { openStore } from "../../packages/coordinator/src/stores/open-store.js";
import type { Store } from "../../packages/coordinator/src/stores/store.js";
import { parseStoreUrl } from "../../packages/coordinator/src/stores/store-url.js";
import { asOperator } from "../redis/shipped-users.js";
import type { Control } from "./control.js";
import { CoordinatorProcess, type CoordinatorSettings, type SpawnProgram } from "./coordinator-process.js";
import { type Load, UsualLoad } from "./load.js";
import { Received } from "./received.js";
import { Counts } from "./refusal-codes.js";

/**
 * Shorter than the defaults, so that recoveries are fast. On a busy machine a request takes some hundred milliseconds, and a start many seconds: a
 * store that is to begin without a recovery counts as attended for as long as without a gap.
 */
export const BOUNDS: Bounds = { epsMs: 500, gapMs: 30_000, attendedMs: 30_000, heartbeatEveryMs: 100 };
export const NAMESPACE = "main";
const PREFLIGHT_EVERY_MS = 250;
/** A safety net: a fault that never heals would otherwise hang the run. Ten times the longest wait with eight processes to a core. */
const LIMIT_MS = 300_000;
/** As many as a lease can hold: before the first recovery there is headroom for it. */
const RUNS_REQUESTED = 64;

export interface WorldOptions {
  /** Whether coordinators keep a checkpoint. Default: true. */
  readonly hasCheckpoint?: boolean;
  readonly random: () => number;
  /** The importers. Default: the usual importers, in this process. */
  readonly load?: Load;
}

export abstract class World {
  /** How often each code was met, by an importer or in a coordinator's log. */
  readonly codes = new Counts();
  readonly coordinators: CoordinatorProcess[] = [];
  readonly folder = mkdtempSync(join(tmpdir(), "callnumber-fault-"));
  readonly checkpointDir = join(this.folder, "checkpoint");
  readonly received: Received;
  readonly random: () => number;
  storeId = "";
  readonly #hasCheckpoint: boolean;
  readonly #load: Load;
  readonly #bounds: Bounds;
  readonly #ends: (() => Promise<unknown>)[] = [() => rm(this.folder, { recursive: true, force: true })];
  readonly #problems: string[] = [];
  #control: Control | undefined;
  #codesBefore = new Counts();

  constructor({ hasCheckpoint = true, random, load = new UsualLoad() }: WorldOptions, bounds = BOUNDS) {
    this.random = random;
    this.#hasCheckpoint = hasCheckpoint;
    this.#load = load;
    this.#bounds = bounds;
    this.received = new Received(bounds.epsMs);
  }

  /** Starts everything; resolves when every importer has got its first runs. What has begun ends with `dispose`, also when this fails. */
  abstract begin(): Promise<void>;

  /** Where the store is, for a command. */
  abstract get storeUrl(): string;

  /** Uses the store as an operator's command does. */
  async onStore<T>(act: (store: Store) => Promise<T>, storeUrl = this.storeUrl): Promise<T> {
    const { store } = await openStore(parseStoreUrl(asOperator(storeUrl)), { create: false });
    try {
      return await act(store);
    } finally {
      await store.close();
    }
  }

  get control(): Control {
    return this.#control as Control;
  }

  get callNumberCount(): number {
    return this.#load.callNumberCount;
  }

  /** All that came twice, or should not have come. */
  get problems(): readonly string[] {
    return [
      ...this.#problems,
      ...this.received.problems,
      ...this.#load.problems,
      ...(this.codes.has("internal_error") ? ["a request was rejected without a reason (internal_error)"] : []),
    ];
  }

  noteProblem(problem: string): void {
    this.#problems.push(problem);
  }

  /** What was started last is ended first. */
  defer(end: () => Promise<unknown>): void {
    this.#ends.unshift(end);
  }

  protected async startLoad(storeId: string, control: Control): Promise<void> {
    this.storeId = storeId;
    this.#control = control;
    const coordinators = () => this.coordinators.map(({ url }) => url);
    const { received, codes } = this;
    this.#load.start({ namespace: NAMESPACE, coordinators, received, codes, runCount: RUNS_REQUESTED }, storeId);
    control.start((number) => this.#load.noteControl(number));
    await this.untilLeasing();
  }

  async addCoordinator(
    settings: Pick<CoordinatorSettings, "storeUrl"> & Partial<CoordinatorSettings>,
    spawn?: SpawnProgram,
  ): Promise<CoordinatorProcess> {
    const all: CoordinatorSettings = {
      name: `coordinator ${this.coordinators.length}`,
      bounds: this.#bounds,
      preflightEveryMs: PREFLIGHT_EVERY_MS,
      checkpointDir: this.#hasCheckpoint ? this.checkpointDir : null,
      markerFolder: null,
      ...settings,
    };
    const coordinator = await CoordinatorProcess.start(all, this.codes, spawn);
    this.coordinators.push(coordinator);
    return coordinator;
  }

  /** Ends a coordinator permanently. */
  async removeCoordinator(coordinator: CoordinatorProcess): Promise<void> {
    this.coordinators.splice(this.coordinators.indexOf(coordinator), 1);
    await coordinator.kill();
  }

  async killCoordinators(): Promise<void> {
    for (const coordinator of this.coordinators) await coordinator.kill();
  }

  async startCoordinators(): Promise<void> {
    for (const coordinator of this.coordinators) await coordinator.start();
  }

  /** Does something while no coordinator runs. */
  async withoutCoordinators(act: () => Promise<unknown>): Promise<void> {
    await this.killCoordinators();
    await act();
    await this.startCoordinators();
  }

  /** What `untilSeen` waits for counts from here on. */
  beginInjection(): void {
    this.#codesBefore = new Counts(this.codes);
  }

  /** Lets importers work for a while, so that there is something to lose. */
  async work(leaseCount = 6): Promise<void> {
    const wanted = this.received.leaseCount + leaseCount;
    await this.until(`${leaseCount} leases`, () => this.received.leaseCount >= wanted);
  }

  /** Resolves to the milliseconds until every importer got runs that it requested after this call. */
  async untilLeasing(): Promise<number> {
    const begin = performance.now();
    const before = this.#load.leaseCounts;
    // The lease in flight may have been granted before: only the second one was surely requested after this call.
    const isLeasing = () => this.#load.leaseCounts.every((count, index) => count >= (before[index] as number) + 2);
    await this.until("every importer leases", isLeasing);
    return performance.now() - begin;
  }

  /** Resolves when so many rejections with that code were seen since the injection began. */
  async untilSeen(code: string, count = 1): Promise<void> {
    await this.#untilCounted(code, this.#codesBefore.of(code) + count);
  }

  /** Resolves when one of these codes was seen since the injection began. */
  async untilOneSeen(...codes: readonly string[]): Promise<void> {
    const isSeen = (code: string) => this.codes.of(code) > this.#codesBefore.of(code);
    await this.until(`a rejection with ${codes.join(" or ")}`, () => codes.some(isSeen));
  }

  /** As often as the code was seen until now, and so many times more. */
  async untilSeenAgain(code: string, count = 1): Promise<void> {
    await this.#untilCounted(code, this.codes.of(code) + count);
  }

  async #untilCounted(code: string, wanted: number): Promise<void> {
    await this.until(`${wanted} rejections with ${code}`, () => this.codes.of(code) >= wanted);
  }

  /** @throws Error that shows what was seen instead, when it does not come about or an importer ended. */
  async until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    const givenUpAt = Date.now() + LIMIT_MS;
    while (!(await isSo())) {
      const [problem] = [...this.#load.problems, ...this.#problems];
      if (problem !== undefined) throw new Error(problem);
      if (Date.now() > givenUpAt) {
        const seen = [...this.codes].map(([code, count]) => `${code} ${count - this.#codesBefore.of(code)}`);
        throw new Error(`not in ${LIMIT_MS} ms: ${what}; rejected since the injection began: ${seen.join(", ")}`);
      }
      await delay(5);
    }
  }

  /** Ends the load; what was received can be read afterwards. */
  async rest(): Promise<void> {
    await Promise.all([this.#load, this.#control].map((one) => one?.stop()));
  }

  async dispose(): Promise<void> {
    // Those that are frozen would not answer those that are to end.
    for (const coordinator of this.coordinators) coordinator.thaw();
    await this.rest();
    await this.killCoordinators();
    for (const end of this.#ends) await end();
  }
}

const COPY_TRIES_MAX = 100;

/** Copies a directory in which others go on writing. A file that vanishes during the copy starts it again. Default: all names. */
export async function copyFolder(
  from: string,
  to: string,
  isMeant: (name: string) => boolean = () => true,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await cp(from, to, { recursive: true, filter: isMeant });
      return;
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ENOENT" || tries === COPY_TRIES_MAX) throw error;
      await rm(to, { recursive: true, force: true });
    }
  }
}
