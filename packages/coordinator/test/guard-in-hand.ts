/** Guards on a settable store, and the few things that their tests do with them. */
import { randomUUID } from "node:crypto";
import { ceilingAt } from "../src/guard/ceiling.js";
import { type CheckpointFile, NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import { type GuardedLease, NamespaceGuard } from "../src/guard/namespace-guard.js";
import { parseStoreId } from "../src/guard/store-id.js";
import type { Log } from "../src/log.js";
import { SILENT_LOG } from "../src/log.js";
import { commandsFor, holder, NAMESPACE, SHORT_BOUNDS, storeIdFrom } from "./commands-for-test.js";
import { Clock, SettableStore } from "./settable-store.js";
import { stepOn } from "./steps-for-test.js";

export interface Request {
  readonly runCount?: number;
  readonly lastRun?: number;
  readonly proof?: string;
}

export interface World {
  readonly clock: Clock;
  readonly store: SettableStore;
  readonly storeId: string;
}

export interface GuardOptions {
  readonly checkpointFile?: CheckpointFile;
  readonly log?: Log;
  readonly attendedMs?: number;
  /** Default: the clock goes on. */
  readonly pause?: (pauseMs: number) => Promise<void>;
}

/** A store with a namespace that began just now, and rises as fast as can be. */
export async function newWorld({ nodeCount = 1, firstRun = 1 } = {}): Promise<World> {
  const clock = new Clock();
  const store = new SettableStore(clock);
  store.acknowledgedCount = nodeCount - 1;
  Object.assign(store.server, { connectedReplicas: nodeCount - 1 });
  const storeId = storeIdFrom(firstRun, { initializedAtMs: clock.timeMs, rate: 16 });
  await stepOn(store, NAMESPACE, commandsFor(storeId).init({ nodeCount }));
  store.steps.length = 0;
  return { clock, store, storeId };
}

export async function guardOn(
  { clock, store }: World,
  {
    checkpointFile = NO_CHECKPOINT_FILE,
    log = SILENT_LOG,
    attendedMs = SHORT_BOUNDS.attendedMs,
    pause = clock.pause,
  }: GuardOptions = {},
): Promise<NamespaceGuard> {
  const now = () => clock.now() - store.behindMs;
  const common = {
    store,
    namespace: NAMESPACE,
    bounds: store.boundsOf({ ...SHORT_BOUNDS, attendedMs }),
    now,
    pause,
    random: () => 0.75,
  };
  return await NamespaceGuard.open({ ...common, log, checkpointFile });
}

export async function leaseOf(
  guard: NamespaceGuard,
  { runCount = 1, lastRun, proof }: Request = {},
): Promise<GuardedLease> {
  const evidence = { lastRun: lastRun ?? null, proof: proof ?? null };
  return await guard.lease({
    runCount,
    holder,
    coordinator: "test",
    tokenId: undefined,
    leaseNonce: randomUUID(),
    ...evidence,
  });
}

/** Lets the clock run until the line has risen above a skip, and leases. */
export async function leaseAfterSkip(
  { clock }: World,
  guard: NamespaceGuard,
  request?: Request,
): Promise<GuardedLease> {
  for (;;) {
    try {
      return await leaseOf(guard, request);
    } catch (error) {
      const { code, retryAfterMs } = error as { code?: string; retryAfterMs?: number };
      if (code !== "run_ceiling_reached" || retryAfterMs === undefined) throw error;
      clock.timeMs += retryAfterMs;
    }
  }
}

export function lineOf({ clock, storeId }: World, aheadMs = 0, version = 0): number {
  const id = parseStoreId(storeId);
  if (id === undefined) throw new Error(`${storeId} is not a store id`);
  return ceilingAt(id, version, clock.timeMs + aheadMs);
}

export function lastRunOf({ firstRun, runCount }: GuardedLease): number {
  return firstRun + runCount - 1;
}
