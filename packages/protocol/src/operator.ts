/** What operators request from a coordinator, and the commands that messages print. Loads no zod: the shapes are types only. */
export * from "./command-line.js";
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
  Setting,
  SettingsResponse,
} from "./operator-schemas.js";
