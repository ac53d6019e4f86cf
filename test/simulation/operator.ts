/**
 * The operator: runs recover, advance-version and move, with the product's own verbs, from a machine with a right clock. Knows the store id,
 * which is kept with the archive, and how many data nodes there are.
 */

import { OPERATOR_PLACE, type Time } from "./network.js";
import {
  advanceVersion,
  type Checkpoint,
  type CheckpointFile,
  Coordinator,
  CoordinatorError,
  ledgerIdOf,
  MemoryStore,
  movedToIn,
  moveNamespace,
  planAdvance,
  planRecovery,
  recoverNamespace,
  type Store,
} from "./product.js";
import { SimulatedStore } from "./simulated-store.js";
import { BOUNDS, NAMESPACE, type World } from "./world.js";

/** No checkpoint directory. */
const BLANK: CheckpointFile = {
  read: () => undefined,
  readable: () => undefined,
  note: () => {},
  movesHere: () => [],
  movesOf: () => [],
  laterStoresOf: () => [],
  recoveredMin: () => 0,
  noteRecoveredMin: () => {},
  close: () => {},
};

export class Operator {
  /** Index of the server that the next command goes to. */
  route = 0;
  isBusy = false;
  /** The error of the last command; undefined when it succeeded. */
  refusedWith: CoordinatorError | undefined;
  readonly #world: World;
  #store: SimulatedStore | undefined;
  /** All that the operator's checkpoint directory keeps: without a move, the verbs must be safe without one. */
  #moved: Checkpoint | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  /**
   * `watchMs`: how long to check first whether a coordinator still leases. `version`: where it is known that this one was reached; the record
   * may be gone.
   */
  recover(watchMs: number, version = 0): void {
    void this.#type("recover", async () => {
      const options = {
        ...this.#common(),
        storeId: this.#world.storeId,
        floors: version === 0 ? [] : [{ from: "--min-run", ledgerId: ledgerIdOf(version, 0) }],
        nodeCount: this.#world.setting.serverCount,
        // The operator has checked: the machine's clock is right.
        isClockChecked: true,
        watchMs,
      };
      const { after } = await recoverNamespace(options, await planRecovery(options));
      return `mark ${after.highWaterMark}, generation ${after.generation}`;
    });
  }

  /** As `callnumber advance-version --force-early --apply` does: only the step itself refuses. */
  advance(): void {
    void this.#type("advance-version", async () => {
      const options = { ...this.#common(), isForcedEarly: true, isClockChecked: true };
      const { after } = await advanceVersion(options, await planAdvance(options));
      return `version ${after.version}, generation ${after.generation}`;
    });
  }

  /** To a new place, and again where it was cut short. */
  move({ name, store }: NewPlace, lostStoreId?: string): void {
    void this.#type("move", async () => {
      const { storeId, record } = await moveNamespace({
        isClockChecked: true,
        lostStoreId,
        ...this.#common(),
        random: () => this.#world.random(),
        nodeCount: 1,
        target: { store, place: name, checkpointFile: BLANK },
      });
      return `${name}, store id ${storeId}, mark ${record.highWaterMark} of version ${record.version}`;
    });
  }

  /** In an empty place, where every place that the store was moved to is lost: under the id that the last refusal named. */
  recoverAt({ name, store }: NewPlace): void {
    const { storeId = "" } = movedToIn(this.refusedWith?.movedTo ?? "") ?? {};
    void this.#type("recover", async () => {
      const common = { ...this.#common(), store, checkpointFile: BLANK, bounds: BOUNDS };
      const options = { ...common, storeId, floors: [], nodeCount: 1, isClockChecked: true, watchMs: 0 };
      const { after } = await recoverNamespace(options, await planRecovery(options));
      return `${name}, store id ${storeId}, mark ${after.highWaterMark} of version ${after.version}`;
    });
  }

  /** The verb's process is ended, at whatever await it stands. */
  giveUp(): void {
    this.#store?.kill();
    this.#store = undefined;
    this.isBusy = false;
  }

  async #type(verb: string, act: () => Promise<string>): Promise<void> {
    const { tally } = this.#world;
    this.isBusy = true;
    try {
      const done = await act();
      this.refusedWith = undefined;
      this.#world.log(() => `the operator's ${verb} is done: ${done}`);
    } catch (error) {
      tally.refuse("the operator", error);
      if (error instanceof CoordinatorError) this.refusedWith = error;
      this.#world.log(() => `the operator's ${verb} is refused: ${(error as CoordinatorError).code}`);
    }
    this.isBusy = false;
  }

  #checkpointFile(): CheckpointFile {
    const { forgetsMoves = false } = this.#world.rules.variant;
    const note = (checkpoint: Checkpoint) => {
      if ((checkpoint.movedTo ?? checkpoint.movesTo) !== undefined && !forgetsMoves) this.#moved = checkpoint;
    };
    const movesOf = (storeId: string) => {
      const { storeId: moved, movedTo } = this.#moved ?? {};
      return storeId === moved && movedTo !== undefined ? [movedTo] : [];
    };
    return { ...BLANK, read: () => this.#moved, readable: () => this.#moved, note, movesOf };
  }

  /** What every command is given: a store of its own, by the route of this moment. */
  #common() {
    const world = this.#world;
    const { time } = world;
    const { route } = this;
    const store = new SimulatedStore(world, { place: OPERATOR_PLACE, clock: () => time.nowMs, route: () => route });
    this.#store = store;
    return {
      store,
      namespace: NAMESPACE,
      checkpointFile: this.#checkpointFile(),
      now: () => time.nowMs,
      bounds: { ...BOUNDS, decide: store.decide },
      pause: (pauseMs: number) => world.pause(pauseMs, () => this.#store === store),
    };
  }
}

/** Within the silence after which only an operator may go on; more often would only take time. */
const HEARTBEAT_EVERY_MS = 10 * 24 * 3_600_000;

export class NewPlace {
  readonly name: string;
  readonly index: number;
  /** Never killed. */
  readonly life = 0;
  readonly store: Store;
  readonly coordinator: Coordinator;
  readonly #time: Time;

  constructor(world: World, at: number) {
    this.name = `new-place-${at + 1}`;
    this.index = world.setting.hostCount + at;
    this.#time = world.time;
    const now = () => world.time.nowMs;
    const store = new MemoryStore({ now });
    this.store = world.rules.variant.newPlaceOf?.(store, () => world.storeId) ?? store;
    this.coordinator = new Coordinator({
      store: this.store,
      name: `coordinator of ${this.name}`,
      now,
      bounds: BOUNDS,
      random: () => world.random(),
      pause: (pauseMs) => world.pause(pauseMs, () => true),
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
