/**
 * Mints number after number: waits where the scheme says so, and keeps what must be kept before a number is out. What was minted
 * before a refusal is still handed over.
 */
import { setTimeout as delay, setImmediate as turn } from "node:timers/promises";
import type { MintContext, Minted, Scheme } from "@callnumber/schemes";

export type MintedNumber = Extract<Minted, { readonly outcome: "minted" }>;

export interface Minting {
  readonly scheme: Scheme;
  readonly context: MintContext;
  readonly count: number;
  /** Puts on the disk what the numbers since the last call have changed. */
  readonly keep: () => void;
  readonly handOver: (numbers: readonly MintedNumber[]) => Promise<void>;
  /** Told when a wait is long enough to be wondered at. */
  readonly onLongWait: (waitMs: number) => void;
}

/** As many are kept by one writing. */
const BATCH = 1_000;
const LONG_WAIT_MS = 3_000;
/** A clock that is set during a wait is seen after so long. */
const DELAY_MS_MAX = 1_000;

/** @throws SchemeError `clock_went_back` or `space_used_up`, when all that was minted before is handed over. */
export async function mintNumbers({ scheme, context, count, keep, handOver, onLongWait }: Minting): Promise<void> {
  let batch: MintedNumber[] = [];
  const finishBatch = async (): Promise<void> => {
    if (batch.length === 0) return;
    keep();
    const kept = batch;
    batch = [];
    await handOver(kept);
  };
  let isWaiting = false;
  for (let left = count; left > 0; ) {
    const step = await orFinish(() => scheme.mint(context), finishBatch);
    if (step.outcome === "minted") {
      isWaiting = false;
      left--;
      batch.push(step);
      if (batch.length < BATCH) continue;
      await finishBatch();
      // Signals and readers that leave are heard between batches.
      await turn();
      continue;
    }
    await finishBatch();
    const waitMs = Math.max(step.untilMs - context.clock.nowMs(), 1);
    if (!isWaiting && waitMs >= LONG_WAIT_MS) onLongWait(waitMs);
    isWaiting = true;
    await delay(Math.min(waitMs, DELAY_MS_MAX));
  }
  await finishBatch();
}

async function orFinish<T>(act: () => T, finish: () => Promise<void>): Promise<T> {
  try {
    return act();
  } catch (error) {
    await finish();
    throw error;
  }
}
