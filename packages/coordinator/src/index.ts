export { Coordinator, type CoordinatorOptions } from "./coordinator.js";
export { CoordinatorError } from "./errors.js";
export { EventHub } from "./events.js";
export type { Door } from "./http/access.js";
export { createServer, type Server, type ServerOptions } from "./http/server.js";
export { readTlsMaterial, type TlsMaterial, type TlsPaths } from "./http/tls-files.js";
export { LedgerArchive } from "./ledger-archive/ledger-archive.js";
export { LedgerRotation, type LedgerRotationOptions } from "./ledger-archive/ledger-rotation.js";
export type { LedgerQuery } from "./ledger-page.js";
export type { Log } from "./log.js";
export type {
  ArchivedPart,
  CutAnswer,
  Finding,
  LedgerCut,
  NamespaceRecord,
  Outcome,
  ReportCommand,
  StepCommand,
  Store,
} from "./store.js";
export { type OpenStore, openStore, removeRestartMarker } from "./stores/open-store.js";
export { describeStore, parseStoreUrl, type StoreAddress } from "./stores/store-url.js";
export { readTokensFile } from "./tokens/read-tokens-file.js";
export { TokenDoor } from "./tokens/token-door.js";
