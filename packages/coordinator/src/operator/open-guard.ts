/** The guard of a namespace for a verb that an operator types: the same judgement as in a coordinator, without its timers. */
import { setTimeout as delay } from "node:timers/promises";
import { type Bounds, DEFAULT_BOUNDS } from "../guard/bounds.js";
import { NamespaceGuard } from "../guard/namespace-guard.js";
import type { Witness } from "../guard/checkpoint.js";
import { type Log, SILENT_LOG } from "../log.js";
import type { Store } from "../store.js";

export interface VerbOptions {
  readonly store: Store;
  readonly namespace: string;
  readonly witness: Witness;
  readonly log?: Log;
  readonly now?: () => number;
  /** Others than the defaults are for tests, as are the two below. */
  readonly bounds?: Bounds;
  readonly pause?: (pauseMs: number) => Promise<void>;
  readonly random?: () => number;
}

/** @throws CoordinatorError as `NamespaceGuard.open`. */
export function openGuard({
  store,
  namespace,
  witness,
  log = SILENT_LOG,
  now = Date.now,
  bounds = DEFAULT_BOUNDS,
  pause = async (pauseMs) => void (await delay(pauseMs)),
  random = Math.random,
}: VerbOptions): Promise<NamespaceGuard> {
  return NamespaceGuard.open({ store, namespace, witness, log, now, bounds, pause, random });
}
