/** What a program needs that embeds a coordinator: README.md names each. */
export { Coordinator, type CoordinatorOptions } from "./coordinator.js";
export { CoordinatorError } from "./errors.js";
export { EventHub } from "./events/events.js";
export { RecentEvents } from "./events/recent-events.js";
export { type Authenticator, NO_AUTH } from "./http/auth.js";
export { createServer, type Server, type ServerOptions } from "./http/server.js";
export { readTlsMaterial, type TlsMaterial, type TlsPaths } from "./http/tls.js";
export { LeaseLimits } from "./limits/lease-limits.js";
export type { Allowance } from "./limits/token-buckets.js";
export { type Log, SILENT_LOG } from "./log.js";
export { LedgerFiles, LedgerTrimmer } from "./retention/ledger-trimmer.js";
export { ProcessAlarms } from "./status/process-alarms.js";
export { type OpenStore, openStore, removeRestartMarker } from "./stores/open-store.js";
export type {
  Finding,
  NamespaceRecord,
  Outcome,
  ReportCommand,
  StepCommand,
  Store,
} from "./stores/store.js";
export { describeStore, parseStoreUrl, type StoreAddress } from "./stores/store-url.js";
export type { TokenRecord } from "./tokens/token.js";
export { TokenAuthenticator } from "./tokens/token-auth.js";
export { readTokensFile } from "./tokens/tokens-file.js";
