/**
 * Reads capacity, history and alarms of the namespaces of one coordinator: requests of the same moment share one read of the ledger. Also checks
 * the alarms regularly, and logs when one begins and when it is cleared.
 */
import { type AlarmName, type AlarmSeverity, HISTORY_STEP_COUNT, ledgerIdOf } from "@callnumber/protocol/api";
import type { Alarm, CapacityResponse, HistoryResponse, LedgerEntry } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../errors.js";
import { lastLedgerIdOf } from "../ledger/lease-identity.js";
import { firstLeaseSince } from "../ledger/read-ledger.js";
import type { StartLoop } from "../limits/restart-brake.js";
import type { Log } from "../log.js";
import { ALARM_WINDOW_MS, alarmsOf, type LeasingState } from "./alarms.js";
import { type CapacityLedger, capacityOf, type LeaseWindow, leasesSince, recentLeases } from "./capacity.js";

export interface CapacityReaderOptions {
  readonly ledger: CapacityLedger;
  readonly log: Log;
  readonly now: () => number;
  /** The namespaces that are served. */
  readonly namespaces: () => Promise<Iterable<string>>;
  /** Holders that restart repeatedly, the worst first. */
  readonly startLoops: (namespace: string) => readonly StartLoop[];
  readonly processAlarms: () => readonly Alarm[];
  readonly read: (namespace: string) => Promise<LeasingState>;
}

const WEEK_MS = 7 * 24 * 3_600_000;
/** How long a response is reused. */
export const CACHED_MS = 5_000;
/** Twice a minute, so that an alarm is logged within one. */
const ALARMS_EVERY_MS = 30_000;

export class CapacityReader {
  readonly #options: CapacityReaderOptions;
  readonly #cache = new Map<string, { readonly untilMs: number; readonly response: Promise<unknown> }>();
  /** Alarms that were logged, by namespace. */
  readonly #raised = new Map<string, ReadonlyMap<AlarmName, AlarmSeverity>>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #check: Promise<void> | undefined;

  constructor(options: CapacityReaderOptions) {
    this.#options = options;
  }

  /** @param known the state, where it was just read. @throws CoordinatorError as `Coordinator.status`. */
  async capacity(namespace: string, known?: LeasingState): Promise<CapacityResponse> {
    const { ledger, now, read } = this.#options;
    const state = known ?? (await read(namespace));
    const { version, generation } = state.record;
    // With version and generation: what an operator's command changes is shown at once.
    return await this.#cached(`capacity ${version} ${generation} ${namespace}`, async () => {
      const nowMs = now();
      const window = await recentLeases(ledger, namespace, nowMs - WEEK_MS);
      const alarms = this.#alarmsIn(state, leasesSince(window, nowMs - ALARM_WINDOW_MS));
      return { ...capacityOf(state.record, window, nowMs), alarms };
    });
  }

  /** `windowMs`: one of `HISTORY_WINDOWS_MS`. @throws CoordinatorError as `Coordinator.status`. */
  history(namespace: string, windowMs: number): Promise<HistoryResponse> {
    const { ledger, now, read } = this.#options;
    return this.#cached(`history ${windowMs} ${namespace}`, async () => {
      await read(namespace);
      return await historyOf(ledger, namespace, windowMs, now());
    });
  }

  /** Checks the alarms of every namespace regularly, until `stop`. */
  start(): void {
    this.#timer ??= setInterval(() => void this.checkAlarms(), ALARMS_EVERY_MS).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#check;
  }

  /** Logs once when an alarm begins, changes its severity, or is cleared. A check in flight is shared. */
  checkAlarms(): Promise<void> {
    this.#check ??= this.#checkAll().finally(() => {
      this.#check = undefined;
    });
    return this.#check;
  }

  async #checkAll(): Promise<void> {
    const { log, namespaces } = this.#options;
    try {
      // One after the other: leases come first.
      for (const namespace of await namespaces()) await this.#checkNamespace(namespace);
    } catch (error) {
      log.warn({ reason: (error as Error).message }, "alarms_failed");
    }
  }

  /** Raised alarms stay while nothing can be read. */
  async #checkNamespace(namespace: string): Promise<void> {
    const { ledger, log, now, read } = this.#options;
    let alarms: readonly Alarm[];
    try {
      const hour = await recentLeases(ledger, namespace, now() - ALARM_WINDOW_MS);
      alarms = this.#alarmsIn(await read(namespace), hour);
    } catch (error) {
      if (!(error instanceof CoordinatorError)) throw error;
      log.debug({ namespace, code: error.code, reason: error.message }, "alarms_unknown");
      return;
    }
    const before = this.#raised.get(namespace) ?? new Map<AlarmName, AlarmSeverity>();
    const raised = new Map(alarms.map(({ name, severity }) => [name, severity]));
    this.#raised.set(namespace, raised);
    for (const alarm of alarms) {
      if (before.get(alarm.name) !== alarm.severity) log.warn({ namespace, ...alarm }, "alarm");
    }
    for (const name of before.keys()) if (!raised.has(name)) log.info({ namespace, name }, "alarm_cleared");
  }

  #alarmsIn(state: LeasingState, hour: LeaseWindow): readonly Alarm[] {
    const { now, startLoops, processAlarms } = this.#options;
    const { namespace } = state.record;
    const found = { hour, startLoops: startLoops(namespace), processAlarms: processAlarms(), nowMs: now() };
    return alarmsOf({ ...state, ...found });
  }

  /** Returns the response of the last seconds, or reads it. Errors are not cached. */
  #cached<T>(key: string, read: () => Promise<T>): Promise<T> {
    const nowMs = this.#options.now();
    for (const [name, { untilMs }] of this.#cache) {
      // A longer time left means that the clock went back.
      if (untilMs <= nowMs || untilMs - nowMs > CACHED_MS) this.#cache.delete(name);
    }
    const cached = this.#cache.get(key);
    if (cached !== undefined) return cached.response as Promise<T>;
    const response = read();
    this.#cache.set(key, { untilMs: nowMs + CACHED_MS, response });
    response.catch(() => this.#cache.delete(key));
    return response;
  }
}

/**
 * Returns the runs leased over time, in equal steps up to the current one; each begins at a multiple of its length, so that a later request
 * returns the same. The newest leases are counted one by one. Before them, the high-water mark at the beginning of each step is compared, which
 * includes skipped runs.
 */
export async function historyOf(
  ledger: CapacityLedger,
  namespace: string,
  windowMs: number,
  nowMs: number,
): Promise<HistoryResponse> {
  const stepMs = windowMs / HISTORY_STEP_COUNT;
  const fromMs = (Math.floor(nowMs / stepMs) - (HISTORY_STEP_COUNT - 1)) * stepMs;
  const beginMs = (step: number) => fromMs + step * stepMs;
  const { leases, completeFromMs } = await recentLeases(ledger, namespace, fromMs);
  const runs = Array.from({ length: HISTORY_STEP_COUNT }, () => 0);
  for (const { leasedAtMs, runCount } of leases) {
    // The clock of the store may be a little ahead.
    const step = Math.min(Math.floor((leasedAtMs - fromMs) / stepMs), HISTORY_STEP_COUNT - 1);
    runs[step] = (runs[step] ?? 0) + runCount;
  }
  const [newest] = leases;
  if (newest === undefined || completeFromMs <= fromMs) return { namespace, fromMs, stepMs, runs };
  const end = { version: newest.version, firstRun: newest.firstRun + newest.runCount };
  const startOf = async (step: number) => (await firstLeaseSince(ledger, namespace, beginMs(step))) ?? end;
  let start = await startOf(0);
  for (let step = 0; beginMs(step) < completeFromMs; step++) {
    const next = await startOf(step + 1);
    runs[step] = await runsBetween(ledger, namespace, start, next);
    start = next;
  }
  return { namespace, fromMs, stepMs, runs };
}

type Start = Pick<LedgerEntry, "version" | "firstRun">;

/** Runs that an advance of the version gave up in between were never used. */
async function runsBetween(ledger: CapacityLedger, namespace: string, start: Start, end: Start): Promise<number> {
  if (start.version === end.version) return end.firstRun - start.firstRun;
  const from = ledgerIdOf(start.version + 1, 0) - 1;
  const [last] = await ledger.leases(namespace, { from, direction: "newest_first", limit: 1 });
  const ended = last === undefined ? 0 : lastLedgerIdOf(last) - ledgerIdOf(start.version, start.firstRun) + 1;
  return Math.max(ended, 0) + end.firstRun - 1;
}
