/**
 * A namespace that was made long ago, for loads that would reach the clock line of a new one. For tests and benchmarks only: a
 * user has no way to date a store back.
 */
import { randomBytes } from "node:crypto";
import { newStoreId } from "../packages/coordinator/src/guard/store-id.js";
import type { Store } from "../packages/coordinator/src/stores/store.js";
import { unlessLate } from "./unless-late.js";

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
    store.step(namespace, {
      step: "init",
      storeId,
      nonce: randomBytes(12).toString("base64url"),
      isSilenceAccepted: false,
      nodeCount,
      receiptKey: randomBytes(32).toString("hex"),
    });
  await unlessLate(init);
  return storeId;
}
