export { Coordinator, type CoordinatorOptions } from "./coordinator.js";
export { CoordinatorError } from "./errors.js";
export { EventHub } from "./events/events.js";
export type { Door } from "./http/access.js";
export { createServer, type Server, type ServerOptions } from "./http/server.js";
export { readTlsMaterial, type TlsMaterial, type TlsPaths } from "./http/tls-files.js";
export type { LedgerQuery } from "./ledger/read-ledger.js";
export type { Log } from "./log.js";
export { LedgerFiles, LedgerTrimmer, type LedgerTrimmerOptions } from "./retention/ledger-trimmer.js";
export type {
  Finding,
  LedgerTrim,
  NamespaceRecord,
  Outcome,
  ReportCommand,
  Retention,
  StepCommand,
  Store,
} from "./store.js";
export { type OpenStore, openStore, removeRestartMarker } from "./stores/open-store.js";
export { describeStore, parseStoreUrl, type StoreAddress } from "./stores/store-url.js";
export { readTokensFile } from "./tokens/read-tokens-file.js";
export { TokenDoor } from "./tokens/token-door.js";
