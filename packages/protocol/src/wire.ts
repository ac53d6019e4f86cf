/**
 * The wire between client and coordinator: paths, limits, the shapes of requests and answers, and the error codes.
 * Has no dependency, so that the client stays small; the same shapes as zod schemas stand in schemas.ts.
 */
import type { ErrorCode } from "./error-codes.js";
import { RUN_COUNT } from "./layout.js";

export type { ClientErrorCode, ErrorCode, RetryRule } from "./error-codes.js";
export { ERROR_RULES, isErrorCode } from "./error-codes.js";
export { describe } from "./quoted.js";

export const ROUTES = {
  leases: "/v1/namespaces/:namespace/leases",
  report: "/v1/namespaces/:namespace/runs/:run/report",
  run: "/v1/namespaces/:namespace/runs/:run",
  runs: "/v1/namespaces/:namespace/runs",
  callNumber: "/v1/namespaces/:namespace/call-numbers/:callNumber",
  status: "/v1/namespaces/:namespace/status",
  health: "/healthz",
  readiness: "/readyz",
  openApi: "/openapi.json",
} as const;

/** A route with its parameters filled in and escaped: a typed call number may hold anything. */
export function pathOf(route: keyof typeof ROUTES, parameters?: PathParameters): string {
  return filledPath(ROUTES[route], parameters);
}

export type PathParameters = Readonly<Record<string, string | number>>;

/** The same for a route of another table. @throws TypeError when a parameter is missing. */
export function filledPath(path: string, parameters: PathParameters = {}): string {
  return path.replace(/:(\w+)/g, (_, name: string) => {
    const value = parameters[name];
    if (value === undefined) throw new TypeError(`the path ${path} needs "${name}"`);
    return encodeURIComponent(value);
  });
}

/** The most runs that one lease can hold: a million call numbers. */
export const LEASE_RUN_COUNT_MAX = 64;
export const DEFAULT_NAMESPACE = "main";
/** Lower case and without braces, globs or slashes: a namespace becomes part of a key, a path and a metric's label. */
export const NAMESPACE_PATTERN = /^[a-z0-9][a-z0-9._-]{0,62}$/;
/** An HMAC-SHA256 in base64url. */
export const RECEIPT_PATTERN = /^[A-Za-z0-9_-]{43}$/;
export const NONCE_PATTERN = /^[A-Za-z0-9_-]{16,64}$/;
/** Text that people read in terminals and logs: no control, format, private or unpaired surrogate characters. */
export const PRINTABLE_PATTERN = /^[^\p{C}\p{Zl}\p{Zp}]+$/u;
export const LABEL_NAME_PATTERN = /^[a-z][a-z0-9_.-]{0,31}$/;
export const HOLDER_NAME_LENGTH_MAX = 64;
export const HOST_LENGTH_MAX = 253;
export const PID_MAX = 2 ** 32 - 1;
export const LABEL_COUNT_MAX = 8;
export const LABEL_VALUE_LENGTH_MAX = 64;
/** The last instant that a JavaScript date can name. */
export const INSTANT_MAX_MS = 8.64e15;
export const PAGE_LIMIT_MAX = 500;
export const PAGE_LIMIT_DEFAULT = 50;

/**
 * One rising number for a run of any version: `version · 2^30 + run`. The ledger is ordered by it and URLs name runs by it;
 * for version 0 it is the run itself.
 */
export function ledgerIdOf(version: number, run: number): number {
  return version * RUN_COUNT + run;
}

/** The version and run of a ledger id. */
export function runOfLedgerId(ledgerId: number): { version: number; run: number } {
  const run = ledgerId % RUN_COUNT;
  return { version: (ledgerId - run) / RUN_COUNT, run };
}

/** The importer process that asked. */
export interface Holder {
  /** What the process calls itself, for people: 1 to 64 printable characters. */
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  /** At most 8; what an operator filters by later. */
  readonly labels: Readonly<Record<string, string>>;
}

/** Name and value of `name=value`, as filters ask for a label; a value may hold `=`. */
export function labelIn(text: string): readonly [name: string, value: string] {
  const [name = "", ...value] = text.split("=");
  return [name, value.join("=")];
}

export interface LeaseRequest {
  /** 1 to 64 contiguous runs; the answer may hold fewer. */
  readonly runCount: number;
  /** New and random for each request; the answer echoes it, so that a late or doubled answer is never taken for this one. */
  readonly nonce: string;
  readonly holder: Holder;
  /** Ledger id of the last run that the holder got in this namespace; null for none. */
  readonly lastRun: number | null;
  /**
   * The receipt of the lease that `lastRun` came with; null when the holder has none. With it, `lastRun` is evidence: a store
   * that never leased that run is one of two copies, and all leasing ends.
   */
  readonly receipt: string | null;
  /** The holder's clock when it asked. A clock ahead of the coordinator's tells that one of the two is wrong. */
  readonly sentAtMs: number;
  /** How many leased runs wait in the client, 0 …; for operators, and not sent by older clients. */
  readonly spareRunCount?: number | undefined;
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
  readonly receipt: string;
}

/** `open`: goes on minting · `exhausted`: used to the last sequence · `closed`: will never be minted from again. */
export type RunState = "open" | "exhausted" | "closed";

/** `burnt`: leased in the store, and never handed out: only a coordinator notes it, and a word of the holder stands above it. */
export type NotedState = RunState | "burnt";

export interface ReportRequest {
  /** The nonce of the lease: only its holder knows it. */
  readonly nonce: string;
  /** The last sequence used in the run; null when none was. */
  readonly lastSequence: number | null;
  readonly state: RunState;
}

/** How far a holder got in a lease: all runs of the lease before `run` are used to the end, those after it untouched. */
export interface Progress {
  readonly run: number;
  readonly lastSequence: number | null;
  readonly state: NotedState;
  readonly reportedAtMs: number;
}

/** The ledger's record of one lease. */
export interface LedgerEntry {
  readonly version: number;
  readonly firstRun: number;
  readonly runCount: number;
  readonly leasedAtMs: number;
  readonly holder: Holder;
  /** Name of the coordinator that granted it. */
  readonly coordinator: string;
  /** Of the token that the holder's request bore: eight hex digits; missing where nobody was asked for one. */
  readonly tokenId?: string | undefined;
  /** Of the holder's request, as in the coordinator's log. Who knows it may report in the holder's name. */
  readonly nonce: string;
  /** What the holder reported last; null when it has not reported. */
  readonly progress: Progress | null;
}

/** `unreported`: leased, and nothing was heard of it since. */
export type KnownRunState = NotedState | "unreported";

/** One run, as far as the coordinator knows it. */
export interface RunAnswer {
  readonly namespace: string;
  readonly version: number;
  readonly run: number;
  readonly state: KnownRunState;
  /** The last sequence that the holder reported for this run; null when none. */
  readonly lastSequence: number | null;
  readonly lease: LedgerEntry;
}

/** Leases that a coordinator trimmed from the store: they are in the files of its `--ledger-dir`. */
export interface TrimmedLeases {
  /** Ledger id up to which the store holds no lease any more. */
  readonly upToRun: number;
  /** When the newest of them was leased. */
  readonly lastLeasedAtMs: number;
}

export interface RunsAnswer {
  readonly namespace: string;
  /** Newest first. A page may be short, even empty, although more follow. */
  readonly leases: readonly LedgerEntry[];
  /** Give it back as `cursor` for the next page; null at the end. */
  readonly nextCursor: string | null;
  /** At the end, what was trimmed of the leases asked for; null before the end, and when nothing was. */
  readonly trimmed: TrimmedLeases | null;
}

export interface CallNumberFields {
  readonly version: number;
  readonly run: number;
  readonly sequence: number;
}

/**
 * What a text may have been before a slip: another number that can exist, of a run that is leased. It is a guess, and the
 * verdict on the text as typed stands beside it.
 */
export interface CallNumberHint {
  readonly callNumber: string;
  /**
   * `surrounding`: only what stands around or between the characters is too much · `look_alike`: characters that look like others
   * stand in their places · `case`: upper for lower case, or the other way round.
   */
  readonly slip: "surrounding" | "look_alike" | "case";
  /** Indexes, in the text as typed, of the characters to change; empty for `surrounding`. */
  readonly positions: readonly number[];
  /** Name of the holder of its lease. */
  readonly holder: string;
  readonly verdict: "reported" | "unreported";
}

/** The leases that the same process got before and after a lease. */
export interface LeaseNeighbours {
  /** The nearest one of the same holder (name, host and pid); null when none was found. */
  readonly previous: LedgerEntry | null;
  readonly next: LedgerEntry | null;
  /** Which they are; where one is null, whether there is none or how far it was looked for: for people. */
  readonly explanation: string;
}

/** The six answers to "what is this call number?". */
export type InspectAnswer = {
  readonly namespace: string;
  readonly callNumber: string;
  readonly explanation: string;
} & (
  | {
      readonly verdict: "malformed";
      readonly problem: "wrong_length" | "wrong_character" | "beyond_greatest";
      /** Index of the wrong character, where one is wrong. */
      readonly position: number | null;
      /** The likeliest first. */
      readonly hints: readonly CallNumberHint[];
    }
  | ({ readonly verdict: "other_version"; readonly hints: readonly CallNumberHint[] } & CallNumberFields)
  | ({
      readonly verdict: "never_leased";
      readonly reason: "above_mark" | "below_first_run" | "skipped";
      readonly hints: readonly CallNumberHint[];
    } & CallNumberFields)
  /** Leased long ago or skipped: its lease, if it had one, is no longer in the store. */
  | ({ readonly verdict: "trimmed"; readonly trimmed: TrimmedLeases } & CallNumberFields)
  | ({
      /** `reported`: within what its holder reported. `unreported`: leased, but past what the holder reported. */
      readonly verdict: "reported" | "unreported";
      readonly state: KnownRunState;
      readonly lastSequence: number | null;
      readonly lease: LedgerEntry;
      /** Null when they were not asked for. */
      readonly neighbours: LeaseNeighbours | null;
    } & CallNumberFields)
);

/** Use of runs over the last `windowMs`, or since the first lease when that is younger. */
export interface UseRate {
  readonly windowMs: number;
  readonly runs: number;
  readonly runsPerDay: number;
  /** When the run space would end at this rate; null when nothing was leased or the end lies beyond any calendar. */
  readonly exhaustedAtMs: number | null;
}

/**
 * Whether a namespace leases. `open`: it does · `in_doubt`: not until the coordinator has settled what the store may have
 * forgotten, which it does by itself · `fenced`: not until an operator has done what `explanation` says.
 */
export interface GuardAnswer {
  readonly state: "open" | "in_doubt" | "fenced";
  /** The code of the refusal that importers get; null when open. */
  readonly code: ErrorCode | null;
  readonly sinceMs: number;
  /** Why, what it waits for, or what to type: for people. */
  readonly explanation: string;
  /** Settled doubts and recoveries that this store has seen, and a bit more; only rises. */
  readonly generation: number;
  /** How many runs may be leased right now before the clock line is reached. */
  readonly roomRuns: number;
  /** Data nodes that could be promoted, each of which may hold an older state: the store's own word. */
  readonly nodeCount: number;
  /** The last recovery by the coordinator that answers; null when it has done none since it was started. */
  readonly lastRecovery: RecoveryAnswer | null;
}

export interface RecoveryAnswer {
  readonly atMs: number;
  /** Why the store may have rolled back: the code that leases were refused with. */
  readonly code: ErrorCode;
  /** Runs that are never leased because of it. */
  readonly skippedRunCount: number;
  /** Cause and skipped runs in one line: for people. */
  readonly explanation: string;
}

export interface StatusAnswer {
  readonly namespace: string;
  readonly storeId: string;
  readonly store: string;
  readonly coordinator: string;
  readonly version: number;
  readonly firstRun: number;
  /** The greatest run ever leased or passed over; `firstRun - 1` when none was. */
  readonly highWaterMark: number;
  /** Leased, or passed over when a doubt was settled: none of them is ever leased again. */
  readonly runsUsed: number;
  readonly runsLeft: number;
  readonly callNumbersLeft: number;
  readonly lastLeaseAtMs: number | null;
  readonly guard: GuardAnswer;
  readonly rates: readonly UseRate[];
}

/** Every refusal has this body. The code is stable, the message is free. */
export interface ErrorAnswer {
  readonly code: string;
  readonly message: string;
  /** For `later`: how long to wait at least. The same, in whole seconds, stands in `Retry-After`. */
  readonly retryAfterMs?: number | undefined;
}
