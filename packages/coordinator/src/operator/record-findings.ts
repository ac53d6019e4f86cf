/** What prevents leasing according to the records of a store, for `doctor`. A record can be at fault on a healthy server. */
import { commandLine } from "@callnumber/protocol/operator";
import { DEFAULT_NAMESPACE } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import type { Checkpoint, CORRUPT } from "../guard/checkpoint.js";
import { namespaceLost } from "../guard/guard-state.js";
import { PHASES } from "../guard/record.js";
import { isMovedSeal } from "../guard/seals.js";
import type { Finding, Store } from "../stores/store.js";

export const NO_NAMESPACE: Finding = {
  code: "namespace_not_found",
  what: "the store holds no namespace",
  remedy: `find the right store; if this is a new one: \`${commandLine("init", DEFAULT_NAMESPACE)}\``,
};

const NOT_OPEN = {
  store_recovering: {
    what: "a coordinator began a recovery and did not complete it",
    remedy: () => "start a coordinator: it completes the recovery",
  },
  namespace_moved: { what: "it was moved to another store", remedy: () => "point the coordinator at the new store" },
  store_forked: {
    what: "two copies of the store were met",
    remedy: (namespace: string) =>
      `stop one of them permanently, then recover the other: \`${commandLine("recover", namespace)}\``,
  },
} as const;

/** Examines the records, and the namespaces that only checkpoints know. Changes nothing. */
export async function recordFindings(
  store: Store,
  remembered: ReadonlyMap<string, Checkpoint | typeof CORRUPT>,
): Promise<readonly Finding[]> {
  const namespaces = await store.listNamespaces();
  const findings = await Promise.all(namespaces.map((namespace) => findingsOf(store, namespace)));
  const lost = [...remembered].filter(([namespace]) => !namespaces.includes(namespace));
  const ofLost = lost.map(([namespace, checkpoint]) => findingOfError(namespaceLost(namespace, checkpoint), namespace));
  return namespaces.length + lost.length > 0 ? [...findings.flat(), ...ofLost] : [NO_NAMESPACE];
}

async function findingsOf(store: Store, namespace: string): Promise<readonly Finding[]> {
  try {
    const { phase, seal } = await store.readNamespace(namespace);
    if (phase === PHASES.open) return [];
    const code = phase === PHASES.claimed ? "store_recovering" : isMovedSeal(seal) ? "namespace_moved" : "store_forked";
    const { what, remedy } = NOT_OPEN[code];
    return [{ code, what: `namespace ${namespace}: ${what}`, remedy: remedy(namespace), namespaces: [namespace] }];
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    return [findingOfError(error, namespace)];
  }
}

function findingOfError({ code, message }: CoordinatorError, namespace: string): Finding {
  return { code, what: message, remedy: `\`${commandLine("recover", namespace)}\``, namespaces: [namespace] };
}
