/** What an operator's program needs: stores, plans that change one, checkpoints, tokens files. Loads no HTTP server. */
import type { SqliteBackup } from "./stores/sqlite-backup.js";

export { CoordinatorError } from "./errors.js";
export { DEFAULT_BOUNDS, TOUCH_EVERY_MS } from "./guard/bounds.js";
export { isMovedSeal } from "./guard/moved-seal.js";
export { NODE_COUNT_MAX, PHASES } from "./guard/record.js";
export { emptied } from "./guard/refusal-with-memory.js";
export { isDoubt } from "./guard/state.js";
export { DAMAGED, NO_WITNESS, type Remembrance, type Witness } from "./guard/witness.js";
export { makeWitnessFolder, openWitness, rememberedAt, rememberedNamespaces } from "./guard/witness-folder.js";
export { ROLES, type Role } from "./http/caller.js";
export { endInWords, nearEnd } from "./http/certificate-end.js";
export { newLabelsSchema } from "./http/names-without-tokens.js";
export { callNumberFieldsIn, canExist, inspectMalformed } from "./inspection.js";
export { lastLedgerIdOf } from "./lease-identity.js";
export { stateOf } from "./ledger-filter.js";
export { LEASES_AT_ONCE_DEFAULT, READS_AT_ONCE } from "./limits/concurrency-limits.js";
export { isLoopback } from "./loopback.js";
export {
  type AdvancePlan,
  advanceVersion,
  planAdvance,
  refusalOf as refusalOfAdvance,
} from "./operator/advance-version.js";
export { type Moved, moveNamespace } from "./operator/move.js";
export { type MovePlan, planMove } from "./operator/move-plan.js";
export { planRecovery, recoverNamespace } from "./operator/recover.js";
export type { Floor, RecoverPlan } from "./operator/recover-plan.js";
export { refusalOf as refusalOfRecovery } from "./operator/recover-refusals.js";
export { readPrivateFile } from "./private-file.js";
export { faultOfMode } from "./private-mode.js";
export { LinkLeadsNowhere, realPathOf } from "./real-path.js";
export { RETENTION_DAYS_MAX, RETENTION_DAYS_MIN } from "./retention/ledger-trimmer.js";
export { trimmedIn } from "./retention/trimmed-leases.js";
export type { Finding, NamespaceRecord, Retention, Store } from "./store.js";
export { parseStoreId, RATE_DEFAULT, RATE_MAX } from "./store-id.js";
export { type OpenStore, openStore } from "./stores/open-store.js";
export {
  areSamePlace,
  commandUrlOf,
  describeStore,
  hasNoLogin,
  parseStoreUrl,
  placeOf,
  type StoreAddress,
} from "./stores/store-url.js";
export { type MadeToken, makeToken } from "./tokens/made-token.js";
export { readIfThere, readKeptTokensFile, readTokensFile, type TokensFile } from "./tokens/read-tokens-file.js";
export { lineOf, noteSchema, TOKEN_COUNT_MAX, type TokenRecord } from "./tokens/token-record.js";
export { TokensFileError } from "./tokens/tokens-file-error.js";

/** As its own file describes it; loads SQLite only when it is called. */
export async function backupSqliteFile(storePath: string, to: string): Promise<SqliteBackup> {
  const backup = await import("./stores/sqlite-backup.js");
  return backup.backupSqliteFile(storePath, to);
}
