/** Whether a coordinator can be expected to lease, in one namespace at least: one that is in doubt or fenced stops no other. */
import { commandLine } from "@callnumber/protocol/operator";
import { DEFAULT_NAMESPACE } from "@callnumber/protocol/wire";
import { CoordinatorError } from "./errors.js";
import type { NamespaceGuards } from "./guard/namespace-guards.js";
import type { PreflightWatch } from "./guard/preflight.js";

type Guards = Pick<NamespaceGuards, "names" | "ifMade">;
type Preflight = Pick<PreflightWatch, "mustPass">;

export interface Readiness {
  /** Those that lease, as far as is known. */
  readonly namespaces: readonly string[];
  readonly unavailable: readonly UnavailableNamespace[];
}

interface UnavailableNamespace {
  readonly namespace: string;
  /** Why it does not lease. */
  readonly error: CoordinatorError;
}

/** @throws CoordinatorError why the first one does not lease, when none does; `namespace_not_initialised` when there is none. */
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
    "namespace_not_initialised",
    `the store holds no namespace yet. Make one: \`${commandLine("init", DEFAULT_NAMESPACE)}\``,
  );
}

/** False for a name without a record. @throws CoordinatorError why it does not lease. */
async function isServed(namespace: string, guards: Guards, preflight: Preflight): Promise<boolean> {
  const guard = await guards.ifMade(namespace);
  if (guard === undefined) return false;
  const { state, code, explanation } = guard.state;
  if (state !== "open" && code !== null) throw new CoordinatorError(code, `namespace "${namespace}": ${explanation}`);
  await preflight.mustPass(namespace);
  await guard.readRecord();
  return true;
}
