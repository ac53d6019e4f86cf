/** What prevents leasing according to the records of a store, for `doctor`. A record can be at fault on a healthy server. */
import { commandLine, DEFAULT_NAMESPACE, type ErrorCode } from "@callnumber/protocol/api";
import type { Checkpoints } from "../checkpoints.js";
import { CoordinatorError } from "../errors.js";
import { assertLatest, type CheckpointFile } from "../guard/checkpoint.js";
import { EPS_MS } from "../guard/clocks.js";
import { strayStore, whyMissing } from "../guard/guard-state.js";
import { PHASES } from "../guard/record.js";
import { initUnlessLost, refused } from "../guard/refusals.js";
import type { Finding } from "../guard/step-store.js";
import { isMovedSeal, textOfMove } from "../guard/store-id.js";
import type { Store } from "../stores/store.js";

export const NO_NAMESPACE: Finding = {
  code: "namespace_not_found",
  what: "the store holds no namespace",
  remedy: initUnlessLost(DEFAULT_NAMESPACE),
};

/** Examines the records, and the namespaces that only checkpoints know. Changes nothing. */
export async function recordFindings(
  store: Store,
  checkpoints: Pick<Checkpoints, "checkpointFileOf" | "namespaces">,
): Promise<readonly Finding[]> {
  const namespaces = await store.listNamespaces();
  const findings = await Promise.all(
    namespaces.map((namespace) => findingsOf(store, namespace, checkpoints.checkpointFileOf(namespace))),
  );
  const missing = [...checkpoints.namespaces()].flatMap((namespace) => {
    const error = namespaces.includes(namespace)
      ? undefined
      : whyMissing(namespace, checkpoints.checkpointFileOf(namespace));
    return error === undefined ? [] : [findingOfError(error, namespace)];
  });
  return namespaces.length + missing.length > 0 ? [...findings.flat(), ...missing] : [NO_NAMESPACE];
}

async function findingsOf(
  store: Store,
  namespace: string,
  checkpointFile: CheckpointFile,
): Promise<readonly Finding[]> {
  const known = checkpointFile.readable();
  try {
    const { storeId, version, phase, seal, changedAtMs } = await store.readNamespace(namespace);
    const finding = (code: Finding["code"], what: string, remedy: string) => [
      { code, what: `namespace ${namespace}: ${what}`, remedy, namespaces: [namespace] },
    ];
    if (known !== undefined && known.storeId !== storeId) {
      const remedy = "restore the right store, or point the coordinator at it";
      return finding(
        "store_id_mismatch",
        `its store id is ${storeId}, but the checkpoint has ${known.storeId}`,
        remedy,
      );
    }
    const [movedTo = isMovedSeal(seal) ? textOfMove(seal) : undefined] = checkpointFile.movesOf(storeId);
    if (movedTo !== undefined) throw refused("MOVED", movedTo, namespace);
    assertLatest(namespace, { storeId, version }, checkpointFile);
    const stray = known === undefined ? strayStore(namespace, storeId, checkpointFile) : undefined;
    if (stray !== undefined) throw stray;
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
    const missing = error.code === "namespace_not_found" ? whyMissing(namespace, checkpointFile) : undefined;
    return [findingOfError(missing ?? error, namespace)];
  }
}

function findingOfError(error: CoordinatorError, namespace: string): Finding {
  const { code, message } = error;
  return { code, what: message, remedy: remedyOf(error, namespace), namespaces: [namespace] };
}

const MOVED = "point the coordinator at that store";

/** Where a message names no command. */
const REMEDIES: Partial<Record<ErrorCode, string>> = {
  clock_moved_backward: "set the clocks right",
  namespace_moved: MOVED,
};

function remedyOf({ code, message, movedTo }: CoordinatorError, namespace: string): string {
  // The store may not be there yet.
  const finishing = movedTo === undefined ? undefined : remedyIn(message);
  if (finishing !== undefined) return `${MOVED}; if the namespace is missing there, finish the move: ${finishing}`;
  return remedyIn(message) ?? REMEDIES[code] ?? `\`${commandLine("recover", namespace)}\``;
}

/** Returns the command that a message names, with the options that it needs. */
export function remedyIn(message: string): string | undefined {
  return /`callnumber .*?`/.exec(message)?.[0];
}
