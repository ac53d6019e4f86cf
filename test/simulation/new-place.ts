/**
 * Where `move` takes the namespace: a store of the product's own, which never fails, and a coordinator on it. What is simulated is
 * what the old store forgets meanwhile.
 */
import { Coordinator, DEFAULT_BOUNDS, MemoryStore, type Store } from "./product.js";
import type { Time } from "./time.js";

/** Within the silence after which only an operator may go on; more often would only take time. */
const TOUCH_EVERY_MS = 10 * 24 * 3_600_000;

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
    this.#keepTouched();
  }

  get nowMs(): number {
    return this.#time.nowMs;
  }

  /** Whether the namespace is there. */
  async isMade(): Promise<boolean> {
    return (await this.store.listNamespaces()).length > 0;
  }

  #keepTouched(): void {
    this.#time.after(TOUCH_EVERY_MS, () => {
      this.coordinator.startHeartbeat();
      void this.coordinator.stopHeartbeat();
      this.#keepTouched();
    });
  }
}
