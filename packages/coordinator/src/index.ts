/** What a program needs that embeds a coordinator: README.md names each. */
export { Coordinator, type CoordinatorOptions } from "./coordinator.js";
export { CoordinatorError } from "./errors.js";
export { EventHub } from "./events/events.js";
export { RecentEvents } from "./events/recent-events.js";
export type { NamespaceRecord } from "./guard/record.js";
export type { Finding } from "./guard/step-store.js";
export { type Authenticator, NO_AUTH } from "./http/auth.js";
export { createServer, type Server, type ServerOptions } from "./http/server.js";
export { readTlsMaterial, type TlsMaterial, type TlsPaths } from "./http/tls.js";
export { type Allowance, LeaseLimits } from "./limits/lease-limits.js";
export { type Log, SILENT_LOG } from "./log.js";
export { LedgerFiles, LedgerTrimmer } from "./retention/ledger-trimmer.js";
export { ProcessAlarms } from "./status/alarms.js";
export { type OpenStore, openStore, removeRestartMarker } from "./stores/open-store.js";
export type { Store } from "./stores/store.js";
export { describeStore, parseStoreUrl, type StoreAddress } from "./stores/store-url.js";
export { TokenAuthenticator } from "./tokens/token-auth.js";
export { readTokensFile, type TokenRecord } from "./tokens/tokens-file.js";
