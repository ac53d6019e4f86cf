/**
 * What operators ask a coordinator, beside what importers need: paths and the shapes of the answers.
 * Has no dependency. Apart from wire.ts, so that the client carries nothing of it.
 */
import type { CommandContext } from "./command-line.js";
import type { ErrorCode } from "./error-codes.js";
import type { GuardAnswer, UseRate } from "./wire.js";

export {
  type CommandContext,
  type CommandOptions,
  commandLine,
  filledCommands,
  STORE_URL,
  shellWord,
} from "./command-line.js";

export const OPERATOR_ROUTES = {
  namespaces: "/v1/namespaces",
  labels: "/v1/namespaces/:namespace/labels",
  capacity: "/v1/namespaces/:namespace/capacity",
  history: "/v1/namespaces/:namespace/history",
  export: "/v1/namespaces/:namespace/export",
  events: "/v1/events",
  publicCallNumber: "/v1/public/namespaces/:namespace/call-numbers/:callNumber",
  settings: "/v1/settings",
  metrics: "/metrics",
  console: "/console/",
} as const;

/** One namespace in the list of all: enough to see which one needs somebody. */
export interface NamespaceDescription {
  readonly namespace: string;
  /** What its operators call it by: at most 8, as for holders. */
  readonly labels: Readonly<Record<string, string>>;
  /** Null when its record can't be read: `guard` says why. */
  readonly record: {
    readonly storeId: string;
    readonly version: number;
    readonly firstRun: number;
    readonly highWaterMark: number;
    readonly runsUsed: number;
    readonly runsLeft: number;
    /** By how many runs a second the clock line rises. */
    readonly lineRunsPerSecond: number;
  } | null;
  readonly guard: Pick<GuardAnswer, "state" | "code" | "sinceMs" | "explanation">;
}

export interface NamespacesAnswer {
  readonly store: string;
  readonly coordinator: string;
  readonly release: string;
  /** By name. */
  readonly namespaces: readonly NamespaceDescription[];
}

export const ALARM_NAMES = [
  "runs_used_50",
  "runs_used_80",
  "runs_used_95",
  "run_space_exhausted",
  "holder_share",
  "holder_restarts",
  "room_scarce",
  "line_ending",
] as const;
export type AlarmName = (typeof ALARM_NAMES)[number];

/** The gravest first. A notice is for whoever looks; the others should reach somebody. */
export const ALARM_SEVERITIES = ["critical", "warning", "notice"] as const;
export type AlarmSeverity = (typeof ALARM_SEVERITIES)[number];

/** Something that an operator should do before it hurts. */
export interface Alarm {
  readonly name: AlarmName;
  readonly severity: AlarmSeverity;
  /** What is so, with the figures, and what to do: for people. */
  readonly explanation: string;
}

/** What one holder took, over the leases that were looked at. Processes of one name count together. */
export interface HolderUse {
  readonly name: string;
  /** Sorted; at most 8 of them. */
  readonly hosts: readonly string[];
  /** How many processes asked. */
  readonly processCount: number;
  readonly leaseCount: number;
  readonly runCount: number;
  /** 0 to 1: of all runs looked at. */
  readonly share: number;
  /**
   * Runs that made fewer than 100 numbers, of those that are ended: closed by their holder, or left by a process that was followed by
   * another one of the same name on the same host and was not heard of for ten minutes.
   */
  readonly wastedRunCount: number;
  /** Runs that were leased and never left the coordinator. */
  readonly burntRunCount: number;
  readonly lastLeaseAtMs: number;
  /** Asked for or reported on a run within the last ten minutes. */
  readonly isLive: boolean;
}

export interface CapacityAnswer {
  readonly namespace: string;
  readonly version: number;
  readonly highWaterMark: number;
  readonly runsUsed: number;
  readonly runsLeft: number;
  /** 0 to 1. */
  readonly usedShare: number;
  readonly callNumbersLeft: number;
  /** Runs that may be leased right now before the clock line is reached. */
  readonly roomRuns: number;
  /** By how many runs a second the clock line rises. */
  readonly lineRunsPerSecond: number;
  /** When the clock line reaches the end of the run space: before that nothing can use it up. */
  readonly lineEndsAtMs: number;
  readonly rates: readonly UseRate[];
  /** What `holders` is computed from: the newest leases, at most 10,000 and at most a week. */
  readonly lookedAt: { readonly leaseCount: number; readonly fromMs: number | null };
  /** Those that took most first. */
  readonly holders: readonly HolderUse[];
  readonly alarms: readonly Alarm[];
}

/**
 * Runs leased over time, counted lease by lease for the newest 10,000 leases; before those, runs that were passed over count too.
 * `runs[i]` between `fromMs + i · stepMs` and `fromMs + (i + 1) · stepMs`; the last step is not over yet.
 */
export interface HistoryAnswer {
  readonly namespace: string;
  readonly fromMs: number;
  readonly stepMs: number;
  readonly runs: readonly number[];
}

/** The query of the history route; `windowMs` is one of these. */
export const HISTORY_WINDOWS_MS = [3_600_000, 86_400_000, 604_800_000] as const;
export const HISTORY_STEP_COUNT = 60;

export const EXPORT_FORMATS = ["ndjson", "csv"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** The last line of an export as NDJSON: without it the export was broken off. */
export interface ExportEnd {
  readonly end: true;
  readonly leaseCount: number;
  /** Ledger id up to which the ledger was looked through; null when nothing was there to look at. Go on with `fromRun` above it. */
  readonly upToRun: number | null;
}

/** A namespace's labels, all of them: those that are not named are gone. */
export interface LabelsRequest {
  readonly labels: Readonly<Record<string, string>>;
}

/** What an archive's page for missing messages may know about a call number. */
export interface PublicCallNumberAnswer {
  readonly callNumber: string;
  /** False only when no message can have it. */
  readonly canExist: boolean;
}

/** One event of the coordinator, as the event stream tells it: the same name and fields as in its log. */
export interface OperatorEvent {
  /** Rises by one with each event of this coordinator process. */
  readonly id: number;
  readonly atMs: number;
  readonly level: "debug" | "info" | "warn" | "error";
  /** As in the log: `lease`, `refusal`, `jump`, … */
  readonly event: string;
  /** Null when it concerns all. */
  readonly namespace: string | null;
  readonly code: ErrorCode | null;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Where a setting comes from. */
export const SETTING_ORIGINS = ["command line", "environment", "default"] as const;

/** One option of `serve`, as it is in force. */
export interface Setting {
  /** As on the command line, without its dashes. */
  readonly name: string;
  /** In words, without secrets; null when it is not set. */
  readonly value: string | null;
  readonly from: (typeof SETTING_ORIGINS)[number];
}

/** Something about the servers of a store that ends leasing, or is unwise. */
export interface Finding {
  /** What leases are refused with; undefined for a warning. */
  readonly code?: ErrorCode | undefined;
  /** The same text as long as it is the same finding. */
  readonly what: string;
  /** The line of configuration that ends it, or the command to run. */
  readonly remedy: string;
  /** The name by which an operator accepts it; undefined where the steps refuse in any case. */
  readonly override?: string | undefined;
  /** Those that it concerns; undefined for all. */
  readonly namespaces?: readonly string[] | undefined;
}

/** How a coordinator was started, without secrets: the store by its place and user. */
export interface SettingsAnswer {
  readonly release: string;
  readonly store: string;
  readonly startedAtMs: number;
  readonly settings: readonly Setting[];
  /** What its commands are filled in with. */
  readonly commands: CommandContext;
  /** When the TLS certificate in use ends; null where plain HTTP is spoken. */
  readonly certificateEndsAtMs: number | null;
  /** About the store's servers, as far as the coordinator's user may see them. */
  readonly findings: readonly Finding[];
}
