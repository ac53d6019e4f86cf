/** What an operator's program needs: stores, plans that change one, checkpoints, tokens files. Loads no HTTP server. */
import type { SqliteBackup } from "./stores/sqlite/backup.js";

export { type Checkpoints, checkpointsOf } from "./checkpoints.js";
export { Coordinator } from "./coordinator.js";
export { CoordinatorError } from "./errors.js";
export { HEARTBEAT_EVERY_MS } from "./guard/bounds.js";
export { CORRUPT, checkpointFields, NO_CHECKPOINT_FILE } from "./guard/checkpoint.js";
export { NODE_COUNT_MAX, PHASES } from "./guard/record.js";
export { RATE_DEFAULT, RATE_MAX } from "./guard/store-id.js";
export { ROLES, type Role } from "./http/auth.js";
export { CONCURRENT_LEASES_DEFAULT } from "./http/in-flight-limits.js";
export { canExist, inspectMalformed } from "./inspect/verdicts.js";
export { HOLDER_ALLOWANCE, TOKEN_ALLOWANCE } from "./limits/lease-limits.js";
export {
  type AdvancePlan,
  advanceVersion,
  planAdvance,
  refusalOf as refusalOfAdvance,
} from "./operator/advance-version.js";
export { type Moved, type MovePlan, moveNamespace, planMove } from "./operator/move.js";
export { NO_NAMESPACE, recordFindings, remedyIn } from "./operator/record-findings.js";
export type { Floor, RecoverPlan } from "./operator/recover.js";
export { planRecovery, recoverNamespace, refusalOf as refusalOfRecovery } from "./operator/recover.js";
export { RETENTION_DAYS_MAX, RETENTION_DAYS_MIN } from "./retention/ledger-trimmer.js";
export { type OpenStore, openStore } from "./stores/open-store.js";
export type { Finding, NamespaceRecord, Retention, Store } from "./stores/store.js";
export {
  areSamePlace,
  commandUrlOf,
  describeStore,
  hasNoLogin,
  parseStoreUrl,
  placeOf,
  type StoreAddress,
} from "./stores/store-url.js";
export {
  lineOf,
  type MadeToken,
  makeToken,
  noteSchema,
  TOKEN_COUNT_MAX,
  type TokenRecord,
  TokensFileError,
} from "./tokens/token.js";
export { readTokensFile, readTokensFileIfThere } from "./tokens/tokens-file.js";

/** Writes a backup of an embedded store into a new file, as `stores/sqlite/backup.ts` does. Loads SQLite when it is called. */
export async function backupSqliteFile(storePath: string, to: string): Promise<SqliteBackup> {
  const backup = await import("./stores/sqlite/backup.js");
  return backup.backupSqliteFile(storePath, to);
}
