/**
 * Capacity, history and alarms of the namespaces of one coordinator, for whoever asks: many askers of the same moment cost one look at
 * the ledger. Looks at the alarms by itself, too, and tells the log when one begins and when it ends.
 */
import { type Alarm, type CapacityAnswer, HISTORY_STEP_COUNT, type HistoryAnswer } from "@callnumber/protocol/operator";
import { type ErrorCode, type LedgerEntry, ledgerIdOf } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "../ledger/lease-identity.js";
import type { Log } from "../log.js";
import type { NamespaceRecord } from "../store.js";
import { ALARM_WINDOW_MS, AlarmsWatch, alarmsOf, type ObservedStartLoop } from "./alarms.js";
import { type CapacityLedger, capacityOf, type Look, leasesSince, recentLeases } from "./capacity.js";

export interface CapacityReaderOptions {
  readonly ledger: CapacityLedger;
  readonly log: Log;
  readonly now: () => number;
  /** Those that are served. */
  readonly namespaces: () => Promise<Iterable<string>>;
  /** Holders that start again and again, the worst first. */
  readonly startLoops: (namespace: string) => readonly ObservedStartLoop[];
  /** The record as it is now, the code that leases are refused with, and for how long the clock line has limited them. */
  readonly read: (namespace: string) => Promise<{
    readonly record: NamespaceRecord;
    readonly code: ErrorCode | null;
    readonly shortageMs: number;
  }>;
}

const WEEK_MS = 7 * 24 * 3_600_000;
/** How long an answer is given again. */
export const KEPT_MS = 5_000;

interface Kept {
  readonly untilMs: number;
  readonly answer: Promise<unknown>;
}

export class CapacityReader {
  readonly #options: CapacityReaderOptions;
  readonly #kept = new Map<string, Kept>();
  readonly #watch: AlarmsWatch;

  constructor(options: CapacityReaderOptions) {
    this.#options = options;
    const { log, namespaces } = options;
    this.#watch = new AlarmsWatch({ log, namespaces, alarmsOf: (namespace) => this.alarms(namespace) });
  }

  /** @throws CoordinatorError as `Coordinator.status`. */
  async capacity(namespace: string): Promise<CapacityAnswer> {
    const { record } = await this.#options.read(namespace);
    return await this.capacityOf(record);
  }

  /** The same of a record that was just read. @throws CoordinatorError as `Coordinator.status`. */
  capacityOf(record: NamespaceRecord): Promise<CapacityAnswer> {
    // Right after an operator's verb nobody is told what was so before.
    const question = `capacity ${record.version} ${record.generation} ${record.namespace}`;
    return this.#once(question, () => this.#capacity(record));
  }

  /** `windowMs`: one of `HISTORY_WINDOWS_MS`. @throws CoordinatorError as `Coordinator.status`. */
  history(namespace: string, windowMs: number): Promise<HistoryAnswer> {
    const { ledger, now } = this.#options;
    return this.#once(`history ${windowMs} ${namespace}`, () => historyOf(ledger, namespace, windowMs, now()));
  }

  /** @throws CoordinatorError as `Coordinator.status`. */
  alarms(namespace: string): Promise<readonly Alarm[]> {
    return this.#once(`alarms ${namespace}`, async () => {
      const { ledger, now } = this.#options;
      return await this.#alarmsIn(namespace, await recentLeases(ledger, namespace, now() - ALARM_WINDOW_MS));
    });
  }

  /** Looks at the alarms of every namespace now and then, until `stop`. */
  start(): void {
    this.#watch.start();
  }

  async stop(): Promise<void> {
    await this.#watch.stop();
  }

  async #capacity(record: NamespaceRecord): Promise<CapacityAnswer> {
    const { ledger, now } = this.#options;
    const { namespace } = record;
    const nowMs = now();
    const look = await recentLeases(ledger, namespace, nowMs - WEEK_MS);
    const alarms = await this.#alarmsIn(namespace, leasesSince(look, nowMs - ALARM_WINDOW_MS));
    return { ...capacityOf(record, look, nowMs), alarms };
  }

  async #alarmsIn(namespace: string, hour: Look): Promise<readonly Alarm[]> {
    const { read, now, startLoops } = this.#options;
    const { record, code, shortageMs } = await read(namespace);
    return alarmsOf({ record, guardCode: code, shortageMs, hour, startLoops: startLoops(namespace), nowMs: now() });
  }

  /** A failure is kept for nobody but those who wait for it. */
  #once<T>(question: string, ask: () => Promise<T>): Promise<T> {
    const nowMs = this.#options.now();
    for (const [name, { untilMs }] of this.#kept) {
      // Or it is kept for longer than anything is: the clock went back.
      if (untilMs <= nowMs || untilMs - nowMs > KEPT_MS) this.#kept.delete(name);
    }
    const kept = this.#kept.get(question);
    if (kept !== undefined) return kept.answer as Promise<T>;
    const answer = ask();
    this.#kept.set(question, { untilMs: nowMs + KEPT_MS, answer });
    answer.catch(() => this.#kept.delete(question));
    return answer;
  }
}

/** The steps of `windowMs` that end with the one under way; each begins at a multiple of its length, so that it stays the same when asked again. */
export async function historyOf(
  ledger: CapacityLedger,
  namespace: string,
  windowMs: number,
  nowMs: number,
): Promise<HistoryAnswer> {
  const stepMs = windowMs / HISTORY_STEP_COUNT;
  const fromMs = (Math.floor(nowMs / stepMs) - (HISTORY_STEP_COUNT - 1)) * stepMs;
  const beginMs = (step: number) => fromMs + step * stepMs;
  const { leases, completeFromMs } = await recentLeases(ledger, namespace, fromMs);
  const runs = Array.from({ length: HISTORY_STEP_COUNT }, () => 0);
  for (const { leasedAtMs, runCount } of leases) {
    // A lease of this very moment, by a store whose clock is a little ahead.
    const step = Math.min(Math.floor((leasedAtMs - fromMs) / stepMs), HISTORY_STEP_COUNT - 1);
    runs[step] = (runs[step] ?? 0) + runCount;
  }
  const [newest] = leases;
  if (newest === undefined || completeFromMs <= fromMs) return { namespace, fromMs, stepMs, runs };
  const end = { version: newest.version, firstRun: newest.firstRun + newest.runCount };
  const startOf = async (step: number) => (await ledger.firstLeaseSince(namespace, beginMs(step))) ?? end;
  let start = await startOf(0);
  for (let step = 0; beginMs(step) < completeFromMs; step++) {
    const next = await startOf(step + 1);
    runs[step] = await runsBetween(ledger, namespace, start, next);
    start = next;
  }
  return { namespace, fromMs, stepMs, runs };
}

type Start = Pick<LedgerEntry, "version" | "firstRun">;

/** What an advance of the version gave up between the two was never used. */
async function runsBetween(ledger: CapacityLedger, namespace: string, start: Start, end: Start): Promise<number> {
  if (start.version === end.version) return end.firstRun - start.firstRun;
  const [last] = await ledger.listLeases(namespace, { belowLedgerId: ledgerIdOf(start.version + 1, 0), limit: 1 });
  const ended = last === undefined ? 0 : lastLedgerIdOf(last) - ledgerIdOf(start.version, start.firstRun) + 1;
  return Math.max(ended, 0) + end.firstRun - 1;
}
