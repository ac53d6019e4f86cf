/**
 * The HTTP API as a client needs it: routes, limits, the shapes of lease and report, and error codes.
 * Imports no library, so that the client stays small. `schemas.ts` has the zod schemas and the shapes of all other responses.
 */
import { RUN_COUNT, VERSION_COUNT } from "./layout.js";

export * from "./error-codes.js";
export { describe } from "./quoted.js";

/** The paths of the routes; `pathOf` fills in their parameters. */
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

/** Returns the path of a route with its parameters, escaped: a typed call number may contain anything. */
export function pathOf(route: keyof typeof ROUTES, parameters?: PathParameters): string {
  return filledPath(ROUTES[route], parameters);
}

type PathParameters = Readonly<Record<string, string | number>>;

/** Returns the path of a route of another table. @throws TypeError when a parameter is missing. */
export function filledPath(path: string, parameters: PathParameters = {}): string {
  return path.replace(/:(\w+)/g, (_, name: string) => {
    const value = parameters[name];
    if (value === undefined) throw new TypeError(`the path ${path} needs "${name}"`);
    return encodeURIComponent(value);
  });
}

/** The most runs that one lease can hold: a million call numbers. */
export const LEASE_RUN_COUNT_MAX = 64;
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

/** One rising number for a run of any version: `version · 2^30 + run`. Orders the ledger, and is on the wire between client and coordinator. People read `runName`. */
export function ledgerIdOf(version: number, run: number): number {
  return version * RUN_COUNT + run;
}

/** Of the last run of the last version. */
export const LEDGER_ID_MAX = VERSION_COUNT * RUN_COUNT - 1;

/** Returns the version and run of a ledger id. */
export function runOfLedgerId(ledgerId: number): { version: number; run: number } {
  const run = ledgerId % RUN_COUNT;
  return { version: (ledgerId - run) / RUN_COUNT, run };
}

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

/** The body of every error. The code is stable, the message is not. */
export interface ErrorResponse {
  readonly code: string;
  /** Of `store_recovering`: one of `RECOVERY_REASONS`. */
  readonly reason?: string | undefined;
  readonly message: string;
  /** For `later`: how long to wait at least. `Retry-After` has the same in whole seconds. */
  readonly retryAfterMs?: number | undefined;
}
