/**
 * For the `callnumber` command alone: may change in any release, and is documented by its sources only. Loads no HTTP server. Commands that
 * need no store import `text.ts` and `platform/` by entries of their own, because the rest here takes a schema library.
 */
export { remedyIn } from "./errors.js";
export { CALLER_EVENTS, EventSuppressor } from "./events/events.js";
export { CORRUPT, checkpointFields, NO_CHECKPOINT_FILE } from "./guard/checkpoint.js";
export { isRecoverable } from "./guard/guard-state.js";
export { NODE_COUNT_MAX, PHASES } from "./guard/record.js";
export { IF_NODES_ARE_GONE } from "./guard/refusals.js";
export {
  isDoneSeal,
  movedToIn,
  RATE_DEFAULT,
  RATE_MAX,
  storeIdFields,
  textOfMove,
  urlOfPlace,
} from "./guard/store-id.js";
export { ROLES, type Role } from "./http/auth.js";
export { CONCURRENT_LEASES_DEFAULT } from "./http/in-flight-limits.js";
export { canExist, inspectMalformed } from "./inspect/verdicts.js";
export { HOLDER_ALLOWANCE, TOKEN_ALLOWANCE } from "./limits/lease-limits.js";
export { ofTarget } from "./operator/move-refusals.js";
export { NO_NAMESPACE, recordFindings } from "./operator/record-findings.js";
export { RETENTION_DAYS_MAX, RETENTION_DAYS_MIN } from "./retention/ledger-trimmer.js";
export { commandUrlOf, isEmbedded, standsFor, withoutLogin } from "./stores/store-url.js";
export {
  lineOf,
  type MadeToken,
  makeToken,
  noteSchema,
  readTokensFile,
  readTokensFileIfThere,
  TOKEN_COUNT_MAX,
  type TokenRecord,
  TokensFileError,
} from "./tokens/tokens-file.js";
