/** The HTTP API between client and coordinator. Loads no zod: the shapes that `schemas.ts` defines are types only. */
export * from "./http-api.js";
export type { CallNumberParts as CallNumberFields } from "./layout.js";
export type {
  CallNumberHint,
  GuardStatus,
  InspectResponse,
  KnownRunState,
  LastRecovery,
  LeaseNeighbors,
  LedgerEntry,
  NotedState,
  Progress,
  RunResponse,
  RunsResponse,
  StatusResponse,
  TrimmedLeases,
  UseRate,
} from "./schemas.js";
