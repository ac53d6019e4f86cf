/**
 * A host where a coordinator runs: its clock, what it remembers on disk, and the process itself, which may be killed and started again
 * at any await. The coordinator is the product's own.
 */
import { HOST_PLACE } from "./network.js";
import {
  type Checkpoint,
  type CheckpointFile,
  CORRUPT,
  Coordinator,
  mergeCheckpoints,
  type ReplaceableBounds,
  SILENT_LOG,
} from "./product.js";
import { SimulatedStore } from "./simulated-store.js";
import { BOUNDS, type World } from "./world.js";

/** The checkpoint directory of one machine; its files outlive the processes. */
export interface CheckpointDirectory {
  readonly notes: Map<number, Checkpoint>;
  isDamaged: boolean;
  /** What is noted of a node that the record does not count. */
  recoveredMin: number;
}

export class Host {
  clockAheadMs = 0;
  /** Index of the server that it is pointed at. */
  route = 0;
  /** Counts the processes: a request to an earlier one gets no response. */
  life = 0;
  readonly #world: World;
  #store: SimulatedStore | undefined;
  #coordinator: Coordinator | undefined;
  /** What the running process remembers; undefined before it has seen the store. */
  #memory: Checkpoint | undefined;

  constructor(
    world: World,
    readonly index: number,
    /** Undefined: this coordinator has no checkpoint directory. */
    readonly folder: CheckpointDirectory | undefined,
  ) {
    this.#world = world;
    this.restart();
  }

  get coordinator(): Coordinator {
    if (this.#coordinator === undefined) throw new Error("broken invariant: a host always runs a coordinator");
    return this.#coordinator;
  }

  get store(): SimulatedStore {
    if (this.#store === undefined) throw new Error("broken invariant: a coordinator always has a store");
    return this.#store;
  }

  get nowMs(): number {
    return this.#world.time.nowMs + this.clockAheadMs;
  }

  /** What this coordinator is certain to hold against the store at its next step; undefined for nothing. */
  get memory(): Checkpoint | undefined {
    return this.#memory ?? this.#readFolder();
  }

  /** Without what lies on its disk only. */
  get memoryOfProcess(): Checkpoint | undefined {
    return this.#memory;
  }

  /** Whether the process would start again with less than it knows now: there is no folder, or another one's files went with ours. */
  get folderKnowsLess(): boolean {
    const [known, kept] = [this.#memory, this.#readFolder()];
    if (known === undefined) return false;
    return kept === undefined || kept.ledgerId < known.ledgerId || kept.generation < known.generation;
  }

  /** Kills the process and starts it again. */
  restart(): void {
    this.life++;
    this.#memory = undefined;
    this.#store?.kill();
    const store = new SimulatedStore(this.#world, {
      place: HOST_PLACE + this.index,
      clock: () => this.nowMs,
      route: () => this.route,
    });
    this.#store = store;
    const { life } = this;
    const bounds: ReplaceableBounds = { ...BOUNDS, ...this.#world.rules.variant.bounds, decide: store.decide };
    this.#coordinator = new Coordinator({
      store,
      name: `coordinator-${this.index}`,
      now: () => this.nowMs,
      log: { ...SILENT_LOG, warn: (fields, event) => event === "recovered" && this.#noteRecovery(fields) },
      bounds,
      random: () => this.#world.random(),
      checkpointFileOf: () => this.#checkpoint(),
      // A killed process does not go on.
      pause: (pauseMs) => this.#world.pause(pauseMs, () => this.life === life),
    });
  }

  #noteRecovery(fields: object): void {
    const { reason } = fields as { readonly reason: string };
    const { recoveries } = this.#world;
    recoveries.set(reason, (recoveries.get(reason) ?? 0) + 1);
  }

  /** The machine's checkpoint files are lost. */
  loseCheckpoint(): void {
    if (this.folder === undefined) return;
    this.folder.notes.clear();
    this.folder.recoveredMin = 0;
    this.folder.isDamaged = false;
  }

  /** A checkpoint file can't be read any more, until it is removed. */
  damageCheckpoint(): void {
    if (this.folder !== undefined) this.folder.isDamaged = true;
  }

  /** One round of heartbeats, as the timer of `startHeartbeat` makes it; real time plays no part. */
  heartbeat(): void {
    this.coordinator.startHeartbeat();
    void this.coordinator.stopHeartbeat();
  }

  #checkpoint(): CheckpointFile {
    const life = this.life;
    return {
      read: () => (this.folder?.isDamaged ? CORRUPT : this.#readFolder()),
      readable: () => (this.folder?.isDamaged ? undefined : this.#readFolder()),
      note: (checkpoint) => {
        if (this.life !== life) return;
        this.#memory = checkpoint;
        if (this.folder === undefined) return;
        this.folder.notes.set(this.index, checkpoint);
      },
      movesHere: () => [],
      movesOf: () => [],
      laterStoresOf: () => [],
      recoveredMin: () => this.folder?.recoveredMin ?? 0,
      noteRecoveredMin: (_, recoveredMin) => {
        if (this.life === life && this.folder !== undefined) this.folder.recoveredMin = recoveredMin;
      },
      close: () => {},
    };
  }

  #readFolder(): Checkpoint | undefined {
    const notes = [...(this.folder?.notes.values() ?? [])];
    return notes.length === 0 ? undefined : notes.reduce(mergeCheckpoints);
  }
}
