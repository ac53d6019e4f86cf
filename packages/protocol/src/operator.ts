/** What operators request from a coordinator, and the commands that messages print. Loads no zod: the shapes are types only. */
export {
  type CommandContext,
  type CommandOptions,
  commandLine,
  filledCommands,
  STORE_URL,
  shellWord,
} from "./command-line.js";
export * from "./operator-api.js";
export type {
  Alarm,
  CapacityResponse,
  ExportEnd,
  Finding,
  HistoryResponse,
  HolderUse,
  NamespaceDescription,
  NamespacesResponse,
  PublicCallNumberResponse,
  Setting,
  SettingsResponse,
} from "./operator-schemas.js";
