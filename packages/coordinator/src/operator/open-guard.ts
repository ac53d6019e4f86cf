/** The guard of a namespace for a verb that an operator types: the same judgement as in a coordinator, without its timers. */
import { setTimeout as delay } from "node:timers/promises";
import { type Bounds, DEFAULT_BOUNDS } from "../guard/bounds.js";
import { NamespaceGuard } from "../guard/namespace-guard.js";
import type { Witness } from "../guard/witness.js";
import { type Log, SILENT_LOG } from "../log.js";
import type { Store } from "../store.js";

export interface VerbOptions {
  readonly store: Store;
  readonly namespace: string;
  readonly witness: Witness;
  readonly log?: Log;
  readonly now?: () => number;
  /** Others than the default are for tests. */
  readonly bounds?: Bounds;
}

/** @throws CoordinatorError as `NamespaceGuard.open`. */
export function openGuard({
  store,
  namespace,
  witness,
  log = SILENT_LOG,
  now = Date.now,
  bounds = DEFAULT_BOUNDS,
}: VerbOptions): Promise<NamespaceGuard> {
  const pause = async (pauseMs: number) => void (await delay(pauseMs));
  return NamespaceGuard.open({ store, namespace, witness, log, now, bounds, pause, random: Math.random });
}
