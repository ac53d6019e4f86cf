/**
 * The HTTP API: routes, limits, closed lists, and the shapes that clients need; with the names of runs and what messages print. Imports no
 * library, so that a client and a page in a browser can have it. `schemas.ts` has the zod schemas and the shapes of all other responses.
 */
import type { ErrorCode } from "./error-codes.js";
import { SEQUENCE_MAX } from "./layout.js";
import type { NamedRun } from "./runs.js";

export * from "./call-number-in.js";
export * from "./corrections.js";
export * from "./error-codes.js";
export * from "./messages.js";
export { describe } from "./quoted.js";
export * from "./runs.js";

/** The paths of the routes; `pathOf` fills in their parameters. */
export const ROUTES = {
  leases: "/v1/namespaces/:namespace/leases",
  numbers: "/v1/namespaces/:namespace/numbers",
  report: "/v1/namespaces/:namespace/runs/:run/report",
  run: "/v1/namespaces/:namespace/runs/:run",
  runOfVersion: "/v1/namespaces/:namespace/runs/:version/:run",
  runs: "/v1/namespaces/:namespace/runs",
  callNumber: "/v1/namespaces/:namespace/call-numbers/:callNumber",
  publicCallNumber: "/v1/public/namespaces/:namespace/call-numbers/:callNumber",
  status: "/v1/namespaces/:namespace/status",
  capacity: "/v1/namespaces/:namespace/capacity",
  history: "/v1/namespaces/:namespace/history",
  export: "/v1/namespaces/:namespace/export",
  namespaces: "/v1/namespaces",
  events: "/v1/events",
  settings: "/v1/settings",
  metrics: "/metrics",
  console: "/console/",
  health: "/healthz",
  readiness: "/readyz",
  openApi: "/openapi.json",
} as const;

/**
 * Returns the path of a route with its parameters, escaped: a typed call number may contain anything. A parameter `.` or `..` would leave the
 * path, however it is escaped, so it becomes `%2E`, which names nothing.
 * @throws TypeError when a parameter is missing.
 */
export function pathOf(route: keyof typeof ROUTES, parameters: Readonly<Record<string, string | number>> = {}): string {
  const path = ROUTES[route];
  return path.replace(/:(\w+)/g, (_, name: string) => {
    const value = parameters[name];
    if (value === undefined) throw new TypeError(`the path ${path} needs "${name}"`);
    return encodeURIComponent(value).replace(/^\.\.?$/, "%252E");
  });
}

/** Returns the path of a run as it was named: `…/runs/99`, `…/runs/1/65556`. */
export function pathOfRun(namespace: string, { version, run }: NamedRun): string {
  return version === undefined
    ? pathOf("run", { namespace, run })
    : pathOf("runOfVersion", { namespace, version, run });
}

/** The most runs that one lease can hold: a million call numbers. */
export const LEASE_RUN_COUNT_MAX = 64;
/** The most call numbers of one request for numbers. */
export const NUMBER_COUNT_MAX = 10_000;
/** The holder in the ledger of runs whose numbers a coordinator makes for requests. */
export const COORDINATOR_HOLDER_NAME = "callnumber-coordinator";
/** The namespace where none is named. */
export const DEFAULT_NAMESPACE = "main";
/** Lower case and without braces, globs or slashes: a namespace becomes part of a key, a path and a metric's label. */
export const NAMESPACE_PATTERN = /^[a-z0-9][a-z0-9._-]{0,62}$/;
/** An HMAC-SHA256 in base64url. */
export const PROOF_PATTERN = /^[A-Za-z0-9_-]{43}$/;
/** A nonce of a lease request. */
export const NONCE_PATTERN = /^[A-Za-z0-9_-]{16,64}$/;
/** Text that people read in terminals and logs: no control, format, private or unpaired surrogate characters. */
export const PRINTABLE_PATTERN = /^[^\p{C}\p{Zl}\p{Zp}]+$/u;
/** The name of a label. */
export const LABEL_NAME_PATTERN = /^[a-z][a-z0-9_.-]{0,31}$/;
/** Characters of the name of a holder. */
export const HOLDER_NAME_LENGTH_MAX = 64;
/** Characters of the host of a holder. */
export const HOST_LENGTH_MAX = 253;
/** The greatest process id of a holder. */
export const PID_MAX = 2 ** 32 - 1;
/** Labels of one holder. */
export const LABEL_COUNT_MAX = 8;
/** Characters of the value of a label. */
export const LABEL_VALUE_LENGTH_MAX = 64;
/** The last instant of a JavaScript date. */
export const INSTANT_MAX_MS = 8.64e15;
/** The most leases of one page of the ledger. */
export const PAGE_LIMIT_MAX = 500;
/** Leases of a page where no limit is given. */
export const PAGE_LIMIT_DEFAULT = 50;

/** The importer process that leases. */
export interface Holder {
  /** A name for people: 1 to 64 printable characters. */
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  /** At most 8; operators filter by them. */
  readonly labels: Readonly<Record<string, string>>;
}

/** Splits `name=value`, the form of a label in a filter; a value may contain `=`. */
export function labelIn(text: string): readonly [name: string, value: string] {
  const [name = "", ...value] = text.split("=");
  return [name, value.join("=")];
}

/** The body of a lease request. */
export interface LeaseRequest {
  /** 1 to 64 contiguous runs; the lease may have fewer. */
  readonly runCount: number;
  /** New and random for each request; the response echoes it, so that a late or repeated response is never taken for this one. */
  readonly nonce: string;
  readonly holder: Holder;
  /** Ledger id of the last run that the holder leased in this namespace; null for none. */
  readonly lastRun: number | null;
  /**
   * The proof of the lease that `lastRun` came with; null when the holder has none. With it, `lastRun` is evidence: a store
   * that never leased that run is one of two copies, and all leasing ends.
   */
  readonly proof: string | null;
  /** The holder's clock at the request. If it is ahead of the coordinator's, one of the two is wrong. */
  readonly sentAtMs: number;
  /** How many leased runs the client has buffered; for operators, and not sent by older clients. */
  readonly spareRunCount?: number | undefined;
  /** What a report request would say of an earlier lease: recorded if it can be, whatever becomes of this request. */
  readonly report?: RunReport | undefined;
}

/** The body of a request for call numbers; it may be empty. */
export interface NumbersRequest {
  /** For which program the numbers are, for log and `inspect`. */
  readonly holder?: { readonly name: string; readonly host?: string | undefined } | undefined;
  /** The id of the store that is kept with the archive: numbers of another store are refused. */
  readonly expectedStoreId?: string | undefined;
}

/** Call numbers that the coordinator made for one request, in the order they were made. */
export interface NumbersResponse {
  readonly namespace: string;
  readonly storeId: string;
  readonly callNumbers: readonly string[];
}

/** One run or a contiguous range of runs, granted to one holder. */
export interface Lease {
  readonly namespace: string;
  /** Which store leased it. A client that pins the id never mixes the runs of two stores. */
  readonly storeId: string;
  readonly version: number;
  readonly firstRun: number;
  readonly runCount: number;
  readonly leasedAtMs: number;
  readonly nonce: string;
  /** Proof that this store leased these runs; goes with `lastRun` into the next request. */
  readonly proof: string;
}

/** `open`: in use · `exhausted`: used to the last sequence · `closed`: never used again. */
export type RunState = "open" | "exhausted" | "closed";

/** `discarded`: leased and never handed out, as a coordinator reports; a report of the holder replaces it. `skipped`: by a recovery, never leased. */
export type NotedState = RunState | "discarded" | "skipped";
/** `unreported`: leased, and not reported since. */
export type KnownRunState = NotedState | "unreported";

/** The body of a report. */
export interface ReportRequest {
  /** The nonce of the lease: only its holder knows it. */
  readonly nonce: string;
  /** The last sequence used in the run; null when none was. */
  readonly lastSequence: number | null;
  readonly state: RunState;
}

/** A report in a lease request. */
export interface RunReport extends ReportRequest {
  /** Ledger id of the run. */
  readonly run: number;
}

/** How far a holder got in a lease: all runs of the lease before `run` are used to the end, those after it untouched. */
export interface Progress {
  readonly run: number;
  readonly lastSequence: number | null;
  readonly state: NotedState;
  readonly reportedAtMs: number;
}

/**
 * Returns what the ledger entry of a lease shows of one of its runs. A holder uses the runs of a lease in their order: those before the
 * reported one are used up, those after it untouched. A lease is discarded as a whole.
 */
export function runStateIn(
  { progress }: { readonly progress: Progress | null },
  run: number,
): { readonly state: KnownRunState; readonly lastSequence: number | null } {
  if (progress === null) return { state: "unreported", lastSequence: null };
  if (progress.state === "discarded" || progress.state === "skipped")
    return { state: progress.state, lastSequence: null };
  if (run < progress.run) return { state: "exhausted", lastSequence: SEQUENCE_MAX };
  if (run === progress.run) return { state: progress.state, lastSequence: progress.lastSequence };
  return { state: progress.state === "closed" ? "closed" : "open", lastSequence: null };
}

/** The body of every error. The code is stable, the message is not. */
export interface ErrorResponse {
  readonly code: string;
  /** Of `store_recovering`: one of `RECOVERY_REASONS`. */
  readonly reason?: string | undefined;
  readonly message: string;
  /** For `later`: how long to wait at least. `Retry-After` has the same in whole seconds. */
  readonly retryAfterMs?: number | undefined;
}

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
