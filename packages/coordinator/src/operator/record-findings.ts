/** What prevents leasing according to the records of a store, for `doctor`. A record can be at fault on a healthy server. */
import { commandLine, DEFAULT_NAMESPACE, type ErrorCode } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { Checkpoints } from "../checkpoints.js";
import { CoordinatorError, commandIn, remedyIn } from "../errors.js";
import { CeilingMonitor } from "../guard/ceiling.js";
import { assertLatest, type Checkpoint, type CheckpointFile } from "../guard/checkpoint.js";
import { DEFAULT_BOUNDS } from "../guard/clocks.js";
import type { StepCommand } from "../guard/commands.js";
import { isRecoverable, isStopping, strayStore, whyMissing } from "../guard/guard-state.js";
import { refusalOfStep, type StepOptions } from "../guard/namespace-steps.js";
import { type NamespaceRecord, PHASES } from "../guard/record.js";
import { initUnlessLost, refused } from "../guard/refusals.js";
import type { Finding } from "../guard/step-store.js";
import { isMovedSeal, textOfMove } from "../guard/store-id.js";
import type { Store } from "../stores/store.js";

export const NO_NAMESPACE: Finding = {
  code: "namespace_not_found",
  what: "the store holds no namespace",
  remedy: initUnlessLost(DEFAULT_NAMESPACE),
};

const NOTHING_KNOWN = { ledgerId: 0, generation: 0 };

/** Examines the records, and the namespaces that only checkpoints know. Changes nothing. */
export async function recordFindings(
  store: Store,
  checkpoints: Pick<Checkpoints, "checkpointFileOf" | "namespaces">,
  clock: StepOptions = {},
): Promise<readonly Finding[]> {
  const namespaces = await store.listNamespaces();
  const findings = await Promise.all(
    namespaces.map((namespace) => findingsOf(store, namespace, checkpoints.checkpointFileOf(namespace), clock)),
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
  clock: StepOptions,
): Promise<readonly Finding[]> {
  const known = checkpointFile.readable();
  try {
    const record = await store.readNamespace(namespace);
    const { storeId, version, phase, seal } = record;
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
    if (phase !== PHASES.sealed) {
      const stop = await whyStopped(
        store,
        record,
        { ...NOTHING_KNOWN, ...known, recoveredMin: checkpointFile.recoveredMin(storeId) },
        clock,
      );
      if (stop !== undefined) throw stop;
      if (phase === PHASES.open) return [];
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

/**
 * Returns why no coordinator would lease before an operator acts, or the clocks are right; undefined where one would, perhaps after a recovery,
 * which it does by itself.
 */
async function whyStopped(
  store: Store,
  record: NamespaceRecord,
  known: Pick<Checkpoint, "ledgerId" | "generation"> & Pick<StepCommand, "recoveredMin">,
  { now = Date.now, bounds = DEFAULT_BOUNDS }: StepOptions,
): Promise<CoordinatorError | undefined> {
  const { namespace, storeId, version, highWaterMark, nodeCount, proofKey } = record;
  const { ledgerId: floor, generation: generationMin, recoveredMin } = known;
  const base = { storeId, isSilenceAccepted: false, floor, generationMin, recoveredMin };
  const refusalOf = (step: StepCommand) => refusalOfStep(store, namespace, step, { now, bounds });
  const refusal = await refusalOf({ ...base, step: "heartbeat" });
  if (refusal === undefined) {
    new CeilingMonitor({ namespace, bounds, now }).assertNear(record);
    return highWaterMark >= RUN_MAX ? refused("EXHAUSTED", String(version), namespace) : undefined;
  }
  // By the rules of `recover`, to the run ceiling, a coordinator recovers, too.
  const stop = isRecoverable(refusal) ? await refusalOf({ ...base, step: "recover", nodeCount, proofKey }) : refusal;
  return stop !== undefined && (isStopping(stop) || stop.code in CLOCKS) ? stop : undefined;
}

function findingOfError(error: CoordinatorError, namespace: string): Finding {
  const { code, message } = error;
  const what = message.includes(`"${namespace}"`) ? message : `namespace ${namespace}: ${message}`;
  return { code, what, remedy: remedyOf(error, namespace), namespaces: [namespace] };
}

const MOVED = "point the coordinator at that store";

const CLOCKS: Partial<Record<ErrorCode, string>> = {
  clock_moved_backward: "set the clocks right",
  clock_skew: "set the clocks right",
};

/** Where a message names no command. */
const REMEDIES: Partial<Record<ErrorCode, string>> = {
  ...CLOCKS,
  namespace_moved: MOVED,
  run_space_exhausted: "use another namespace",
};

function remedyOf({ code, message, movedTo }: CoordinatorError, namespace: string): string {
  // The store may not be there yet.
  const finishing = movedTo === undefined ? undefined : commandIn(message);
  if (finishing !== undefined) return `${MOVED}; if the namespace is missing there, finish the move: ${finishing}`;
  return commandIn(message) ?? REMEDIES[code] ?? remedyIn(message) ?? `\`${commandLine("recover", namespace)}\``;
}
