/**
 * The HTTP API for operators: its routes, its closed lists and its event stream. Imports no library, so that a page in a browser can have it.
 * `operator-schemas.ts` has the zod schemas and the shapes of the responses.
 */
import type { ErrorCode } from "./error-codes.js";

/** The paths of the routes for operators; `filledPath` fills in their parameters. */
export const OPERATOR_ROUTES = {
  namespaces: "/v1/namespaces",
  capacity: "/v1/namespaces/:namespace/capacity",
  history: "/v1/namespaces/:namespace/history",
  export: "/v1/namespaces/:namespace/export",
  events: "/v1/events",
  publicCallNumber: "/v1/public/namespaces/:namespace/call-numbers/:callNumber",
  settings: "/v1/settings",
  metrics: "/metrics",
  console: "/console/",
} as const;

/** Every alarm that a coordinator can raise. */
export const ALARM_NAMES = [
  "runs_used_80",
  "runs_used_95",
  "run_space_exhausted",
  "clock_moved_backward",
  "holder_restarts",
  "headroom_low",
  "run_ceiling_ending",
  "connections_full",
  "tokens_file_unreadable",
] as const;
export type AlarmName = (typeof ALARM_NAMES)[number];

/** The gravest first. A notice is for a reader of the console; the others should reach an operator. */
export const ALARM_SEVERITIES = ["critical", "warning", "notice"] as const;
export type AlarmSeverity = (typeof ALARM_SEVERITIES)[number];

/** The windows of the history route. */
export const HISTORY_WINDOWS_MS = [3_600_000, 86_400_000, 604_800_000] as const;
/** Steps of a history, whichever its window. */
export const HISTORY_STEP_COUNT = 60;

/** Where the value of a setting is from. */
export const SETTING_ORIGINS = ["command line", "environment", "default"] as const;

/** One event of the coordinator, as in the event stream: the same name and fields as in its log. */
export interface OperatorEvent {
  /** Rises by one with each event of this coordinator process. */
  readonly id: number;
  readonly atMs: number;
  readonly level: "debug" | "info" | "warn" | "error";
  /** As in the log: `lease`, `request_rejected`, `recovered`, … */
  readonly event: string;
  /** Null when it concerns all. */
  readonly namespace: string | null;
  readonly code: ErrorCode | null;
  readonly fields: Readonly<Record<string, unknown>>;
}
