/**
 * Whether namespaces can be expected to lease, for health checks; and their state as the guards saw it last, for metrics every few seconds, for
 * which only one short request tests whether the store responds.
 */
import { commandLine } from "@callnumber/protocol/operator";
import { DEFAULT_NAMESPACE, runOfLedgerId } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { headroomAt } from "../guard/ceiling.js";
import type { GuardState } from "../guard/guard-state.js";
import type { NamespaceGuard } from "../guard/namespace-guard.js";
import type { NamespaceGuards, RefusedNamespace } from "../guard/namespace-guards.js";
import type { PreflightWatch } from "../guard/preflight.js";
import { parseStoreId } from "../guard/store-id.js";
import type { Store } from "../stores/store.js";
import { runUseOf } from "./status.js";

export interface ObservedNamespace {
  readonly namespace: string;
  readonly version: number;
  /** The greatest run that this coordinator knows to be leased or skipped. */
  readonly highWaterMark: number;
  readonly runsUsed: number;
  readonly runsLeft: number;
  readonly headroomRuns: number;
  readonly ceilingRunsPerSecond: number;
  readonly generation: number;
  readonly nodeCount: number;
  readonly guard: GuardState;
}

export interface Observation {
  readonly isStoreUp: boolean;
  readonly namespaces: readonly ObservedNamespace[];
  /** Namespaces of which only the refusal is known. */
  readonly refused: readonly RefusedNamespace[];
}

export interface Observed {
  readonly guards: Pick<NamespaceGuards, "opened" | "refused">;
  readonly preflight: Pick<PreflightWatch, "effectiveState">;
  readonly probe: StoreProbe;
  readonly nowMs: number;
}

/** A slower store is down, as far as leases are concerned. */
const PROBE_TIMEOUT_MS = 1_000;

/** Tests whether a store responds: one request at a time. */
export class StoreProbe {
  readonly #store: Pick<Store, "listNamespaces">;
  #request: Promise<boolean> | undefined;

  constructor(store: Pick<Store, "listNamespaces">) {
    this.#store = store;
  }

  /** Never rejects, and resolves within a second. */
  async responds(): Promise<boolean> {
    this.#request ??= this.#send();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tooLate = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), PROBE_TIMEOUT_MS);
    });
    const hasResponded = await Promise.race([this.#request, tooLate]);
    clearTimeout(timer);
    return hasResponded;
  }

  async #send(): Promise<boolean> {
    try {
      await this.#store.listNamespaces();
      return true;
    } catch {
      return false;
    } finally {
      this.#request = undefined;
    }
  }
}

/** Never rejects. A namespace that has had no heartbeat yet is left out. */
export async function observe({ guards, preflight, probe, nowMs }: Observed): Promise<Observation> {
  const isStoreUp = await probe.responds();
  const opened = await guards.opened();
  const namespaces = opened.map((guard) => observedNamespace(guard, preflight, nowMs));
  return { isStoreUp, namespaces, refused: guards.refused() };
}

function observedNamespace(
  { namespace, checkpoint, state }: NamespaceGuard,
  preflight: Pick<PreflightWatch, "effectiveState">,
  nowMs: number,
): ObservedNamespace {
  const { storeId, ledgerId, generation, nodeCount } = checkpoint;
  const { version, run: highWaterMark } = runOfLedgerId(ledgerId);
  const id = parseStoreId(storeId);
  if (id === undefined) throw new Error(`broken invariant: "${storeId}" is no store id`);
  return {
    namespace,
    version,
    highWaterMark,
    ...runUseOf({ ...id, version, highWaterMark }),
    headroomRuns: headroomAt(id, version, highWaterMark, nowMs),
    ceilingRunsPerSecond: id.rate,
    generation,
    nodeCount,
    guard: preflight.effectiveState(namespace, state),
  };
}

type Guards = Pick<NamespaceGuards, "names" | "ifInitialized">;
type Preflight = Pick<PreflightWatch, "assertPassed">;

export interface Readiness {
  /** Namespaces that lease, as far as is known. */
  readonly namespaces: readonly string[];
  readonly unavailable: readonly UnavailableNamespace[];
}

interface UnavailableNamespace {
  readonly namespace: string;
  /** Why it does not lease. */
  readonly error: CoordinatorError;
}

/** @throws CoordinatorError why the first one does not lease, when none does; `namespace_not_found` when there is none. */
export async function readinessOf(guards: Guards, preflight: Preflight): Promise<Readiness> {
  const namespaces: string[] = [];
  const unavailable: UnavailableNamespace[] = [];
  for (const namespace of await guards.names()) {
    try {
      if (await isServed(namespace, guards, preflight)) namespaces.push(namespace);
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      unavailable.push({ namespace, error });
    }
  }
  if (namespaces.length > 0) return { namespaces, unavailable };
  if (unavailable[0] !== undefined) throw unavailable[0].error;
  throw new CoordinatorError(
    "namespace_not_found",
    `the store holds no namespace yet. Make one: \`${commandLine("init", DEFAULT_NAMESPACE)}\``,
  );
}

/** False for a name without a record. @throws CoordinatorError why it does not lease. */
async function isServed(namespace: string, guards: Guards, preflight: Preflight): Promise<boolean> {
  const guard = await guards.ifInitialized(namespace);
  if (guard === undefined) return false;
  const { state, code, reason, explanation } = guard.state;
  if (state !== "active" && code !== null) {
    throw new CoordinatorError(code, `namespace "${namespace}": ${explanation}`, { reason: reason ?? undefined });
  }
  await preflight.assertPassed(namespace);
  await guard.readRecord();
  return true;
}
