/** What operators request from a coordinator, and what messages print: commands and numbers. Loads no zod: the shapes are types only. */
export * from "./command-line.js";
export * from "./message-numbers.js";
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
