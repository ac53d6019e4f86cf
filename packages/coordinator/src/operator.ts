/** What a program needs that acts on a store: plans that change one, checkpoints, backups. README.md names each. Loads no HTTP server. */
import type { SqliteBackup } from "./stores/sqlite/backup.js";

export { type Checkpoints, checkpointsOf } from "./checkpoints.js";
export { Coordinator } from "./coordinator.js";
export { CoordinatorError } from "./errors.js";
export { HEARTBEAT_EVERY_MS } from "./guard/clocks.js";
export { unaccepted } from "./guard/preflight.js";
export type { NamespaceRecord } from "./guard/record.js";
export type { Finding } from "./guard/step-store.js";
export {
  type AdvancePlan,
  advanceVersion,
  planAdvance,
  refusalOf as refusalOfAdvance,
} from "./operator/advance-version.js";
export type { Floor } from "./operator/floors.js";
export { type Moved, type MovePlan, moveNamespace, planMove } from "./operator/move.js";
export {
  planRecovery,
  type RecoverPlan,
  recoverNamespace,
  refusalOf as refusalOfRecovery,
  wayOfMoved,
} from "./operator/recover.js";
export { type OpenStore, openStore } from "./stores/open-store.js";
export type { Retention, Store } from "./stores/store.js";
export { describeStore, parseStoreUrl, placeOf, type StoreAddress } from "./stores/store-url.js";

/** Writes a backup of an embedded store into a new file, as `stores/sqlite/backup.ts` does. Loads SQLite when it is called. */
export async function backupSqliteFile(storePath: string, to: string): Promise<SqliteBackup> {
  const backup = await import("./stores/sqlite/backup.js");
  return backup.backupSqliteFile(storePath, to);
}
