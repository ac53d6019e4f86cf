export { Coordinator, type CoordinatorOptions } from "./coordinator.js";
export { CoordinatorError } from "./errors.js";
export { CALLER_EVENTS, EventSuppressor } from "./event-suppressor.js";
export { EventHub } from "./events.js";
export { filledLine } from "./filled-json.js";
export { isDoubt } from "./guard/state.js";
export { type Authenticator, NO_AUTH } from "./http/auth.js";
export type { HostNames } from "./http/browser-requests.js";
export { createServer, type Server, type ServerOptions } from "./http/server.js";
export { readTlsMaterial, type TlsMaterial, type TlsPaths } from "./http/tls-files.js";
export { endInWords, nearEnd, TlsReload } from "./http/tls-reload.js";
export type { LedgerQuery } from "./ledger-page.js";
export type { Allowance } from "./limits/token-buckets.js";
export { HOLDER_ALLOWANCE, LeaseLimits, TOKEN_ALLOWANCE } from "./limits/lease-limits.js";
export { type Log, SILENT_LOG } from "./log.js";
export { RecentEvents } from "./recent-events.js";
export { LedgerFiles } from "./retention/ledger-files.js";
export { LedgerTrimmer, type LedgerTrimmerOptions } from "./retention/ledger-trimmer.js";
export { type OpenStore, openStore, removeRestartMarker } from "./stores/open-store.js";
export type {
  Finding,
  LedgerTrim,
  NamespaceRecord,
  Outcome,
  ReportCommand,
  Retention,
  StepCommand,
  Store,
} from "./stores/store.js";
export { describeStore, parseStoreUrl, type StoreAddress } from "./stores/store-url.js";
export type { TokenRecord } from "./tokens/token.js";
export { TokenDoor } from "./tokens/token-door.js";
export { readTokensFile } from "./tokens/tokens-file.js";
