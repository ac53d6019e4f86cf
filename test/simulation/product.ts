/**
 * What of the product the simulation plays with: the real rules, guard, decisions and verbs. Nothing here is a copy,
 * so a change of the guard is a change of what is simulated.
 */

export { ledgerIdOf } from "@callnumber/protocol/api";
export { RUN_MAX } from "@callnumber/protocol/codec";
export { Coordinator } from "../../packages/coordinator/src/coordinator.js";
export { CoordinatorError } from "../../packages/coordinator/src/errors.js";
export { BURST_RUNS, ceilingAt } from "../../packages/coordinator/src/guard/ceiling.js";
export {
  type Checkpoint,
  type CheckpointFile,
  CORRUPT,
  mergeCheckpoints,
} from "../../packages/coordinator/src/guard/checkpoint.js";
export {
  markIdOf,
  namespaceRecordIn,
  type ObservedKeys,
  type StepContext,
} from "../../packages/coordinator/src/guard/checks.js";
export { type Bounds, DEFAULT_BOUNDS } from "../../packages/coordinator/src/guard/clocks.js";
export type { ConfirmStep, StepCommand } from "../../packages/coordinator/src/guard/commands.js";
export { type Decide, decide } from "../../packages/coordinator/src/guard/decide.js";
export type { ReplaceableBounds } from "../../packages/coordinator/src/guard/namespace-steps.js";
export {
  checksumOf,
  type NamespaceRecord,
  type NamespaceState,
  type ObservedFields,
  PHASES,
  quorumOf,
  readRecord,
  storedFields,
} from "../../packages/coordinator/src/guard/record.js";
export { isRefusal, type Refusal } from "../../packages/coordinator/src/guard/refusals.js";
export {
  type Applied,
  type Change,
  type Expected,
  type Observed,
  recordToWrite,
} from "../../packages/coordinator/src/guard/step-store.js";
export { movedToIn, parseStoreId } from "../../packages/coordinator/src/guard/store-id.js";
export { SILENT_LOG } from "../../packages/coordinator/src/log.js";
export { advanceVersion, planAdvance } from "../../packages/coordinator/src/operator/advance-version.js";
export { moveNamespace } from "../../packages/coordinator/src/operator/move.js";
export { planRecovery, recoverNamespace } from "../../packages/coordinator/src/operator/recover.js";
export { MemoryStore } from "../../packages/coordinator/src/stores/memory.js";
export type { Retention, Store } from "../../packages/coordinator/src/stores/store.js";
