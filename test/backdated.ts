/**
 * A namespace that was made long ago, for loads that would reach the run ceiling of a new one. For tests and benchmarks only: a
 * user has no way to date a store back.
 */
import { randomBytes } from "node:crypto";
import { CoordinatorError } from "../packages/coordinator/src/errors.js";
import { newStoreId } from "../packages/coordinator/src/guard/store-id.js";
import type { Store } from "../packages/coordinator/src/stores/store.js";
import { stepOn } from "../packages/coordinator/test/steps-for-test.js";

const DAY_MS = 24 * 3_600_000;

export interface BackdatedOptions {
  readonly nodeCount?: number;
  /** At 16 runs a second a day makes room for 1,382,400 runs. Default 100 days. */
  readonly ageDays?: number;
  readonly firstRun?: number;
}

/** Makes the namespace with the highest rate; resolves to its store id. */
export async function initBackdated(
  store: Store,
  namespace: string,
  { nodeCount = 1, ageDays = 100, firstRun = 1 }: BackdatedOptions = {},
): Promise<string> {
  const storeId = newStoreId({ firstRun, initializedAtMs: Date.now() - ageDays * DAY_MS, rate: 16 });
  const init = () =>
    stepOn(store, namespace, {
      step: "init",
      storeId,
      isSilenceAccepted: false,
      nodeCount,
      proofKey: randomBytes(32).toString("hex"),
    });
  await unlessLate(init);
  return storeId;
}

/** Clocks that are set wrong stay wrong: then the last error is the result. */
const TRIES_MAX = 100;

/**
 * Tries again what came late. On a busy machine a step can be on its way to Redis for longer than a suite lets clocks differ; it is rejected
 * then and has changed nothing.
 * @throws whatever `ask` throws; `clock_skew` when it was rejected with that each time.
 */
export async function unlessLate<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      const isLate = error instanceof CoordinatorError && error.code === "clock_skew";
      if (!isLate || tries === TRIES_MAX) throw error;
    }
  }
}
