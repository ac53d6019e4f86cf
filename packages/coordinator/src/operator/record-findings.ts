/** What prevents leasing according to the records of a store, for `doctor`. A record can be at fault on a healthy server. */
import { commandLine, DEFAULT_NAMESPACE } from "@callnumber/protocol/api";
import type { Checkpoints } from "../checkpoints.js";
import { CoordinatorError } from "../errors.js";
import { assertLatest, type Checkpoint, CORRUPT } from "../guard/checkpoint.js";
import { EPS_MS } from "../guard/clocks.js";
import { asNamespaceLost, moveUnfinished, namespaceLost } from "../guard/guard-state.js";
import { PHASES } from "../guard/record.js";
import { initUnlessLost, refused } from "../guard/refusals.js";
import type { Finding } from "../guard/step-store.js";
import { isMovedSeal } from "../guard/store-id.js";
import type { Store } from "../stores/store.js";

export const NO_NAMESPACE: Finding = {
  code: "namespace_not_found",
  what: "the store holds no namespace",
  remedy: initUnlessLost(DEFAULT_NAMESPACE),
};

/** Examines the records, and the namespaces that only checkpoints know. Changes nothing. */
export async function recordFindings(
  store: Store,
  checkpoints: Pick<Checkpoints, "checkpointFileOf" | "remembered" | "namespaces">,
): Promise<readonly Finding[]> {
  const remembered = checkpoints.remembered();
  const namespaces = await store.listNamespaces();
  const findings = await Promise.all(
    namespaces.map((namespace) => findingsOf(store, namespace, remembered.get(namespace), checkpoints)),
  );
  const lost = [...remembered].filter(([namespace]) => !namespaces.includes(namespace));
  const ofLost = lost.map(([namespace, checkpoint]) => findingOfError(namespaceLost(namespace, checkpoint), namespace));
  const ofMoves = [...checkpoints.namespaces()].flatMap((namespace) => {
    if (namespaces.includes(namespace) || remembered.has(namespace)) return [];
    const unfinished = moveUnfinished(namespace, checkpoints.checkpointFileOf(namespace));
    return unfinished === undefined ? [] : [findingOfError(unfinished, namespace)];
  });
  const all = [...findings.flat(), ...ofLost, ...ofMoves];
  return namespaces.length + lost.length + ofMoves.length > 0 ? all : [NO_NAMESPACE];
}

async function findingsOf(
  store: Store,
  namespace: string,
  checkpoint: Checkpoint | typeof CORRUPT | undefined,
  { checkpointFileOf }: Pick<Checkpoints, "checkpointFileOf">,
): Promise<readonly Finding[]> {
  try {
    const { storeId, version, phase, seal, changedAtMs } = await store.readNamespace(namespace);
    const finding = (code: Finding["code"], what: string, remedy: string) => [
      { code, what: `namespace ${namespace}: ${what}`, remedy, namespaces: [namespace] },
    ];
    if (checkpoint !== undefined && checkpoint !== CORRUPT && checkpoint.storeId !== storeId) {
      const remedy = "restore the right store, or point the coordinator at it";
      return finding(
        "store_id_mismatch",
        `its store id is ${storeId}, but the checkpoint has ${checkpoint.storeId}`,
        remedy,
      );
    }
    if (isMovedSeal(seal) || checkpointFileOf(namespace).movesOf(storeId).length > 0) {
      return finding("namespace_moved", "it was moved to another store", "point the coordinator at the new store");
    }
    assertLatest(namespace, { storeId, version }, checkpointFileOf(namespace));
    const aheadMs = changedAtMs - Date.now();
    if (phase !== PHASES.sealed && aheadMs > EPS_MS) {
      return [findingOfError(refused("CLOCKBACK", String(aheadMs - EPS_MS), namespace), namespace)];
    }
    if (phase === PHASES.open) return [];
    if (phase === PHASES.claimed) {
      const remedy = "start a coordinator: it completes the recovery";
      return finding("store_recovering", "a recovery began, by `recover` or by a coordinator that stopped", remedy);
    }
    const remedy = `stop one of them permanently, then recover the other: \`${commandLine("recover", namespace)}\``;
    return finding("store_forked", "two copies of the store were met", remedy);
  } catch (error) {
    if (!(error instanceof CoordinatorError)) throw error;
    const cause = checkpoint === undefined ? error : asNamespaceLost(error, namespace, checkpoint);
    return [findingOfError(cause, namespace)];
  }
}

function findingOfError({ code, message }: CoordinatorError, namespace: string): Finding {
  return {
    code,
    what: message,
    remedy:
      remedyIn(message) ??
      (code === "clock_moved_backward" ? "set the clocks right" : `\`${commandLine("recover", namespace)}\``),
    namespaces: [namespace],
  };
}

/** Returns the command that a message names, with the options that it needs. */
export function remedyIn(message: string): string | undefined {
  return /`callnumber .*?`/.exec(message)?.[0];
}
