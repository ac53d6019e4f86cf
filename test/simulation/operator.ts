/**
 * The operator: runs recover, advance-version and move, with the product's own verbs, from a machine with a right clock. Knows the store id,
 * which is kept beside the archive, and how many data nodes there are.
 */

import type { Time } from "./network.js";
import {
  advanceVersion,
  type CheckpointFile,
  Coordinator,
  CoordinatorError,
  DEFAULT_BOUNDS,
  ledgerIdOf,
  MemoryStore,
  moveNamespace,
  planAdvance,
  planRecovery,
  recoverNamespace,
  type Store,
} from "./product.js";
import type { SimulatedStore } from "./simulated-store.js";

export interface OperatorOptions {
  readonly namespace: string;
  readonly time: Time;
  readonly bounds: { readonly epsMs: number; readonly gapMs: number; readonly heartbeatEveryMs: number };
  readonly openStore: () => SimulatedStore;
  readonly newPlace: Store;
  readonly storeId: () => string;
  readonly nodeCount: number;
  readonly random: () => number;
  readonly wakes: () => void;
  readonly refuses: (error: unknown) => void;
  readonly tell: (words: () => string) => void;
}

/** The operator's checkpoint directory is empty: the verbs must be safe without one. */
const BLANK: CheckpointFile = { read: () => undefined, note: () => {}, close: () => {} };

export class Operator {
  readonly #options: OperatorOptions;
  #store: SimulatedStore | undefined;
  #isBusy = false;
  /** The refusal of the last verb; undefined when it succeeded. */
  #refusedWith: CoordinatorError | undefined;

  constructor(options: OperatorOptions) {
    this.#options = options;
  }

  get isBusy(): boolean {
    return this.#isBusy;
  }

  get refusedWith(): CoordinatorError | undefined {
    return this.#refusedWith;
  }

  /**
   * `watchMs`: how long to look first whether somebody still leases. `version`: where it is known that this one was reached; the record
   * may be gone.
   */
  recover(watchMs: number, version = 0): void {
    const { namespace, bounds, storeId, nodeCount } = this.#options;
    void this.#type("recover", async () => {
      const options = {
        store: this.#openStore(),
        namespace,
        checkpointFile: BLANK,
        now: () => this.#options.time.nowMs,
        bounds,
        storeId: storeId(),
        floors: version === 0 ? [] : [{ from: "--min-run", ledgerId: ledgerIdOf(version, 0) }],
        nodeCount,
        // The operator has looked: the machine's clock is right.
        isClockChecked: true,
        watchMs,
        pause: (pauseMs: number) => this.#pause(pauseMs),
      };
      const { after } = await recoverNamespace(options, await planRecovery(options));
      return `mark ${after.highWaterMark}, generation ${after.generation}`;
    });
  }

  /** As `callnumber advance-version --force-early --yes` does: only the step itself refuses. */
  advance(): void {
    const { namespace, bounds, time } = this.#options;
    void this.#type("advance-version", async () => {
      const common = { store: this.#openStore(), namespace, checkpointFile: BLANK, now: () => time.nowMs, bounds };
      const options = { ...common, isForcedEarly: true, isClockChecked: true };
      const { after } = await advanceVersion(options, await planAdvance(options));
      return `version ${after.version}, generation ${after.generation}`;
    });
  }

  /** To the new place, and again where it was cut short. */
  move(): void {
    const { namespace, bounds, time, random, newPlace } = this.#options;
    void this.#type("move", async () => {
      const { storeId, record } = await moveNamespace({
        store: this.#openStore(),
        namespace,
        checkpointFile: BLANK,
        bounds,
        now: () => time.nowMs,
        pause: (pauseMs) => this.#pause(pauseMs),
        random,
        nodeCount: 1,
        target: { store: newPlace, place: "new-place", checkpointFile: BLANK },
      });
      return `store id ${storeId}, mark ${record.highWaterMark} of version ${record.version}`;
    });
  }

  /** The verb's process is ended, at whatever await it stands. */
  giveUp(): void {
    this.#store?.kill();
    this.#store = undefined;
    this.#isBusy = false;
  }

  async #type(verb: string, act: () => Promise<string>): Promise<void> {
    const { tell, refuses } = this.#options;
    this.#isBusy = true;
    try {
      const done = await act();
      this.#refusedWith = undefined;
      tell(() => `the operator's ${verb} is done: ${done}`);
    } catch (error) {
      refuses(error);
      if (error instanceof CoordinatorError) this.#refusedWith = error;
      tell(() => `the operator's ${verb} is refused: ${(error as CoordinatorError).code}`);
    }
    this.#isBusy = false;
  }

  #openStore(): SimulatedStore {
    this.#store = this.#options.openStore();
    return this.#store;
  }

  #pause(pauseMs: number): Promise<void> {
    const store = this.#store;
    return new Promise((resolve) => {
      this.#options.time.after(pauseMs, () => {
        if (this.#store !== store) return;
        this.#options.wakes();
        resolve();
      });
    });
  }
}

/** Within the silence after which only an operator may go on; more often would only take time. */
const HEARTBEAT_EVERY_MS = 10 * 24 * 3_600_000;

export interface NewPlaceOptions {
  readonly time: Time;
  /** Counted on from the hosts'. */
  readonly index: number;
  readonly random: () => number;
  readonly wakes: () => void;
  /** As a variant sees it. */
  readonly seen: (store: Store) => Store;
}

export class NewPlace {
  readonly index: number;
  /** Never killed. */
  readonly life = 0;
  readonly store: Store;
  readonly coordinator: Coordinator;
  readonly #time: Time;

  constructor({ time, index, random, wakes, seen }: NewPlaceOptions) {
    this.index = index;
    this.#time = time;
    const now = () => time.nowMs;
    this.store = seen(new MemoryStore({ now, bounds: DEFAULT_BOUNDS }));
    this.coordinator = new Coordinator({
      store: this.store,
      name: "coordinator of the new place",
      now,
      bounds: DEFAULT_BOUNDS,
      random,
      pause: (pauseMs) =>
        new Promise((resolve) => {
          time.after(pauseMs, () => {
            wakes();
            resolve();
          });
        }),
    });
    this.#keepHeartbeat();
  }

  get nowMs(): number {
    return this.#time.nowMs;
  }

  /** Whether the namespace is there. */
  async isMade(): Promise<boolean> {
    return (await this.store.listNamespaces()).length > 0;
  }

  #keepHeartbeat(): void {
    this.#time.after(HEARTBEAT_EVERY_MS, () => {
      this.coordinator.startHeartbeat();
      void this.coordinator.stopHeartbeat();
      this.#keepHeartbeat();
    });
  }
}
