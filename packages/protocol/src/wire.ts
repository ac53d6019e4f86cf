/** The HTTP API between client and coordinator. Loads no zod: the shapes that `schemas.ts` defines are types only. */
export * from "./http-api.js";
export type { CallNumberParts as CallNumberFields } from "./layout.js";
export type {
  CallNumberHint,
  GuardAnswer,
  InspectAnswer,
  KnownRunState,
  LeaseNeighbours,
  LedgerEntry,
  NotedState,
  Progress,
  RecoveryAnswer,
  RunAnswer,
  RunsAnswer,
  StatusAnswer,
  TrimmedLeases,
  UseRate,
} from "./schemas.js";
