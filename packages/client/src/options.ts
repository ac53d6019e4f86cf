/** The options of a client, with their defaults and checks. */
import { hostname } from "node:os";
import process from "node:process";
import {
  DEFAULT_NAMESPACE,
  describe,
  HOLDER_NAME_LENGTH_MAX,
  HOST_LENGTH_MAX,
  type Holder,
  LABEL_COUNT_MAX,
  LABEL_NAME_PATTERN,
  LABEL_VALUE_LENGTH_MAX,
  LEASE_RUN_COUNT_MAX,
  type Lease,
  NAMESPACE_PATTERN,
  PID_MAX,
  PRINTABLE_PATTERN,
} from "@callnumber/protocol/api";
import type { ClientError } from "./client-error.js";
import { DEFAULT_HOST, type Fetch, httpSource, type Token } from "./http-source.js";
import type { LeaseSource } from "./lease-source.js";

/** Called on events. A hook that throws causes an uncaught error; it never affects a call number. */
export interface ClientHooks {
  /** A lease arrived. */
  readonly onLease?: ((lease: Lease) => void) | undefined;
  /** The buffered numbers ran out before the next run arrived: a caller waits. Not for the first run. */
  readonly onStall?: (() => void) | undefined;
  /**
   * A request for a lease failed and will be repeated in `retryInMs`, a whole number. Without this hook, the first client of a process that
   * has had no response for two seconds warns by `process.emitWarning`.
   */
  readonly onRetry?:
    | ((away: { readonly error: ClientError; readonly attempt: number; readonly retryInMs: number }) => void)
    | undefined;
  /**
   * The client has stopped permanently, and an operator should know: called once, as soon as it is known, whether or not a caller waits for a
   * number. Its runs may be leased to another holder (`store_mismatch`, `run_not_increasing`, `run_above_high_water_mark`, `store_id_mismatch`,
   * `store_forked`), or this process is a copy (`process_cloned`). Every later call throws the same.
   */
  readonly onStopped?: ((error: ClientError) => void) | undefined;
  /** A report did not arrive. The ledger then has less information; no number is in danger. */
  readonly onReportFailed?: ((error: ClientError) => void) | undefined;
}

/** The options of `createClient`. */
export interface ClientOptions {
  /** URL of the coordinator. Either this or `source`. Default: the variable `CALLNUMBER_COORDINATOR`, else `http://127.0.0.1:7300`. */
  readonly coordinator?: string | undefined;
  /** Where leases come from instead of HTTP: a coordinator in the same process, or a source of your own. */
  readonly source?: LeaseSource | undefined;
  /** Default `main`. */
  readonly namespace?: string | undefined;
  /** The name of this process in the ledger. Host and pid are filled in. */
  readonly holder: Pick<Holder, "name"> & { readonly [K in keyof Holder]?: Holder[K] | undefined };
  /**
   * Bearer token for the coordinator, or a function that returns one or a promise of one, called before each request. White space around it, such as the line end
   * of a file, is removed. Over `http:` to another machine the network in between can read it.
   */
  readonly token?: Token | undefined;
  /** Instead of the platform's `fetch`. */
  readonly fetch?: Fetch | undefined;
  /**
   * The id of the store that the archive's numbers come from; store it with the archive. Runs of any other store are rejected before the
   * first number. Default: the store of the first lease.
   */
  readonly expectedStoreId?: string | undefined;
  /** Runs to buffer in addition to the one in use, for outages: each is 16,384 numbers. 0 to 64. Default 0. */
  readonly spareRuns?: number | undefined;
  /** The most runs of one request: 1 to 64. Default 64; a client starts with 1 and requests more only with more demand. */
  readonly maxRunsPerLease?: number | undefined;
  /** Whether to request runs before the last lease is used up, rather than when a call needs more than is left. Default true. */
  readonly prefetch?: boolean | undefined;
  /** `lease` (default): take a new run when one is used up. `stop`: use one run, then throw `sequence_exhausted`. */
  readonly onExhausted?: "lease" | "stop" | undefined;
  /** How long `next()`, `take()` and `ready()` wait for a run before they give up: 1 to 3,600,000 ms. Default 30,000. */
  readonly waitTimeoutMs?: number | undefined;
  /**
   * How long one request may take, to the end of its response: 1 to 600,000 ms. Default 5,000. A later lease is discarded. Each further
   * attempt to lease may take twice as long as the one before, up to eight times and within `waitTimeoutMs`, until one succeeds.
   */
  readonly requestTimeoutMs?: number | undefined;
  readonly hooks?: ClientHooks | undefined;
}

const NAME_CHARACTERS = "characters a-z, 0-9, dot, dash, underscore";

export interface Settings {
  readonly source: LeaseSource;
  readonly namespace: string;
  readonly holder: Holder;
  readonly expectedStoreId: string | undefined;
  readonly spareRuns: number;
  readonly maxRunsPerLease: number;
  readonly prefetch: boolean;
  readonly stopWhenExhausted: boolean;
  readonly waitTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly hooks: ClientHooks;
}

/**
 * Returns the options with their defaults, checked.
 * @throws TypeError or RangeError that names the option and its value.
 */
export function settingsOf(options: ClientOptions): Settings {
  assertObject("the options of createClient", options, 'holder: { name: "my-importer" }');
  const {
    coordinator,
    token,
    fetch,
    source,
    namespace = DEFAULT_NAMESPACE,
    holder,
    expectedStoreId,
    spareRuns,
    maxRunsPerLease,
    prefetch = true,
    onExhausted = "lease",
    waitTimeoutMs,
    requestTimeoutMs,
    hooks = {},
    ...others
  } = options;
  assertNone("", others satisfies Record<string, never>);
  assertHooks(hooks);
  check(NAMESPACE_PATTERN.test(namespace), "namespace", `1 to 63 ${NAME_CHARACTERS}`, namespace);
  const isStoreId =
    expectedStoreId === undefined || (typeof expectedStoreId === "string" && /^\S+$/.test(expectedStoreId));
  check(
    isStoreId,
    "expectedStoreId",
    "a store id without white space, or left out to pin the store of the first lease",
    expectedStoreId,
  );
  const stopWhenExhausted = onExhausted === "stop";
  check(stopWhenExhausted || onExhausted === "lease", "onExhausted", "one of lease, stop", onExhausted);
  if (stopWhenExhausted && (spareRuns ?? 0) > 0) {
    throw new TypeError('spareRuns have no use with onExhausted "stop": such a client uses one run');
  }
  check(typeof prefetch === "boolean", "prefetch", "true or false", prefetch);
  const runsPerLease = assertWithin("maxRunsPerLease", maxRunsPerLease ?? LEASE_RUN_COUNT_MAX, 1, LEASE_RUN_COUNT_MAX);
  return {
    source: sourceOf({ source, coordinator, token, fetch }),
    namespace,
    holder: holderOf(holder),
    expectedStoreId,
    spareRuns: assertWithin("spareRuns", spareRuns ?? 0, 0, LEASE_RUN_COUNT_MAX),
    maxRunsPerLease: stopWhenExhausted ? 1 : runsPerLease,
    prefetch,
    stopWhenExhausted,
    waitTimeoutMs: assertWithin("waitTimeoutMs", waitTimeoutMs ?? 30_000, 1, 3_600_000),
    requestTimeoutMs: assertWithin("requestTimeoutMs", requestTimeoutMs ?? 5_000, 1, 600_000),
    hooks,
  };
}

type SourceOptions = Pick<ClientOptions, "source" | "coordinator" | "token" | "fetch">;

function sourceOf({ source, coordinator, token, fetch }: SourceOptions): LeaseSource {
  if (source === undefined) {
    const fromEnvironment = process.env?.["CALLNUMBER_COORDINATOR"];
    return coordinator === undefined && fromEnvironment !== undefined
      ? httpSource({ coordinator: fromEnvironment, token, fetch }, "CALLNUMBER_COORDINATOR")
      : httpSource({ coordinator: coordinator ?? `http://${DEFAULT_HOST}`, token, fetch });
  }
  if (coordinator !== undefined || token !== undefined || fetch !== undefined) {
    throw new TypeError("give either `source` or the options of HTTP (`coordinator`, `token`, `fetch`), not both");
  }
  const isSource = typeof source?.lease === "function" && typeof source.report === "function";
  check(isSource, "source", "an object with the functions `lease` and `report`", source);
  return source;
}

function assertHooks(hooks: ClientHooks): void {
  assertObject("hooks", hooks, "onStall() {}");
  const { onLease, onStall, onRetry, onStopped, onReportFailed, ...others } = hooks;
  assertNone("hooks.", others satisfies Record<string, never>);
  for (const [name, hook] of Object.entries({ onLease, onStall, onRetry, onStopped, onReportFailed })) {
    check(hook === undefined || typeof hook === "function", `hooks.${name}`, "a function", hook);
  }
}

function holderOf(given: ClientOptions["holder"]): Holder {
  assertObject("holder", given, 'name: "my-importer"');
  const { name, host = hostname(), pid = process.pid, labels = {}, ...others } = given;
  assertNone("holder.", others satisfies Record<string, never>);
  assertPrintable("holder.name", name, HOLDER_NAME_LENGTH_MAX);
  assertPrintable("holder.host", host, HOST_LENGTH_MAX);
  assertWithin("holder.pid", pid, 0, PID_MAX);
  assertObject("holder.labels", labels, 'shard: "3"');
  const entries = Object.entries(labels);
  assertWithin("the number of holder.labels", entries.length, 0, LABEL_COUNT_MAX);
  for (const [label, value] of entries) {
    check(LABEL_NAME_PATTERN.test(label), "a label's name", `1 to 32 ${NAME_CHARACTERS}`, label);
    assertPrintable(`holder.labels.${label}`, value, LABEL_VALUE_LENGTH_MAX);
  }
  return { name, host, pid, labels: { ...labels } };
}

/** A misspelled option, such as `expectedStoreID`, would be silently without effect. */
function assertNone(prefix: string, others: object): void {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new TypeError(`createClient knows no option "${prefix}${unknown}"`);
}

function assertObject(name: string, value: unknown, example: string): void {
  check(typeof value === "object" && value !== null, name, `an object such as { ${example} }`, value);
}

function assertPrintable(name: string, value: unknown, lengthMax: number): void {
  const isPrintable = typeof value === "string" && value.length <= lengthMax && PRINTABLE_PATTERN.test(value);
  check(isPrintable, name, `a string of 1 to ${lengthMax} printable characters`, value);
}

function assertWithin(name: string, value: number, min: number, max: number): number {
  const isWithin = Number.isInteger(value) && value >= min && value <= max;
  check(isWithin, name, `a whole number from ${min} to ${max}`, value, RangeError);
  return value;
}

/** @throws TypeError, or the given error, that says what `name` must be and what it is. */
function check(isValid: boolean, name: string, rule: string, value: unknown, Misuse = TypeError): void {
  if (!isValid) throw new Misuse(`${name} must be ${rule}, not ${describe(value)}`);
}
