/**
 * The restart brake: a holder that restarts in a loop waits longer before each start. A holder is a name on a host in a namespace, whatever
 * its process is: one that crashes comes back as another. A start is a lease for a process that has had none. It counts as failed until the
 * process leases again with a run that it had, or reports that it generated numbers. Pure: the clock is passed in.
 *
 * Each failed start adds one; time beyond the pause takes them away again, at the rate at which starts are free. So a holder that starts less
 * often than that never waits, and one that starts as soon as it may waits longer and longer.
 */
import { type Lease, type LeaseRequest, ledgerIdOf, type ReportRequest } from "@callnumber/protocol/api";

/** Failed starts that are free within `FREE_WINDOW_MS`: a pool of importers on one host begins so. */
export const FREE_STARTS = 64;
export const FREE_WINDOW_MS = 1_800_000;
const FIRST_PAUSE_MS = 1_000;
export const PAUSE_MAX_MS = 300_000;
/** The pause doubles after so many more. */
const STARTS_PER_DOUBLING = 8;
/** Beyond this the pause grows no more, and neither does what time has to take away. */
const FAILED_MAX = FREE_STARTS + STARTS_PER_DOUBLING * Math.ceil(Math.log2(PAUSE_MAX_MS / FIRST_PAUSE_MS));

/** A holder without a request for so long, pauses apart, was stopped or fixed. */
export const LOOP_OVER_MS = 600_000;
/** Starts without a result so far, two keys each. Further ones are not counted, so that no client pushes out those of others. */
const OPEN_KEYS_MAX = 20_000;
const HOLDERS_KEPT_MAX = 10_000;
const SWEEP_EVERY_MS = 1_000;

/** A holder that restarts in a loop. */
export interface StartLoop {
  readonly holder: { readonly name: string; readonly host: string };
  /** Failed starts, since the loop began. */
  readonly startCount: number;
  /** How long the loop has lasted. */
  readonly forMs: number;
  /** How long each further start waits. */
  readonly pauseMs: number;
}

interface Holder {
  readonly namespace: string;
  readonly name: string;
  readonly host: string;
  readonly sinceMs: number;
  /** Failed starts, as of the last one. */
  failed: number;
  startCount: number;
  startedAtMs: number;
  requestedAtMs: number;
}

interface OpenStart {
  readonly holder: Holder;
  readonly atMs: number;
  readonly keys: readonly string[];
}

type StartRequest = Pick<LeaseRequest, "holder" | "lastRun">;

export class RestartBrake {
  readonly #isPausing: boolean;
  readonly #holders = new Map<string, Holder>();
  /** By the nonce and by the last run of its lease, oldest first. */
  readonly #open = new Map<string, OpenStart>();
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  /** Without pauses starts are only counted. */
  constructor({ isPausing }: { readonly isPausing: boolean }) {
    this.#isPausing = isPausing;
  }

  /** How long this request has to wait before it may begin, whole ms. */
  untilStartMs(namespace: string, { holder, lastRun }: StartRequest, nowMs: number): number {
    const known = this.#holders.get(keyOf(namespace, holder.host, holder.name));
    if (lastRun !== null || known === undefined) return 0;
    known.requestedAtMs = nowMs;
    return Math.max(Math.ceil(known.startedAtMs + this.#pauseMs(known.failed) - nowMs), 0);
  }

  /**
   * Counts an admitted request, if it is a start. At once: many may be in flight together. Call what this returns with the lease, or with
   * undefined for a request that failed: then it is as if it had not been.
   */
  begin(namespace: string, { holder, lastRun }: StartRequest, nowMs: number): (lease: Lease | undefined) => void {
    if (lastRun !== null) return (lease) => lease && this.#succeeded(runKey(namespace, lastRun), nowMs);
    const known = this.#holderOf(namespace, holder, nowMs);
    if (known === undefined) return () => {};
    const { failed, startedAtMs } = known;
    known.failed = Math.min(this.#failedAt(known, nowMs) + 1, FAILED_MAX);
    known.startedAtMs = nowMs;
    known.requestedAtMs = nowMs;
    known.startCount++;
    return (lease) => {
      if (lease !== undefined) {
        this.#keepOpen(known, lease, nowMs);
        return;
      }
      known.startCount--;
      // Others may have started since.
      if (known.startedAtMs !== nowMs) known.failed = Math.max(known.failed - 1, 0);
      else Object.assign(known, { failed, startedAtMs });
    };
  }

  /** A report that was recorded. Without a number it proves nothing. */
  reported(namespace: string, { nonce, lastSequence }: Pick<ReportRequest, "nonce" | "lastSequence">, nowMs: number) {
    if (lastSequence !== null) this.#succeeded(nonceKey(namespace, nonce), nowMs);
  }

  /** Holders of the namespace that wait, or would wait; the worst first. */
  loops(namespace: string, nowMs: number): readonly StartLoop[] {
    this.#sweep(nowMs);
    return [...this.#holders.values()]
      .filter((one) => one.namespace === namespace && this.#isLooping(one, nowMs))
      .sort((one, other) => other.failed - one.failed)
      .map(({ name, host, startCount, sinceMs, failed }) => ({
        holder: { name, host },
        startCount,
        forMs: nowMs - sinceMs,
        pauseMs: this.#pauseMs(failed),
      }));
  }

  #isLooping(holder: Holder, nowMs: number): boolean {
    const quietFromMs = Math.max(holder.requestedAtMs, holder.startedAtMs + this.#pauseMs(holder.failed));
    return this.#failedAt(holder, nowMs) >= FREE_STARTS && nowMs - quietFromMs < LOOP_OVER_MS;
  }

  /** The pause between a start and the next. */
  #pauseMs(failed: number): number {
    if (!this.#isPausing || failed < FREE_STARTS) return 0;
    return Math.min(FIRST_PAUSE_MS * 2 ** Math.floor((failed - FREE_STARTS) / STARTS_PER_DOUBLING), PAUSE_MAX_MS);
  }

  /** The pause itself takes nothing away. */
  #failedAt({ failed, startedAtMs }: Holder, nowMs: number): number {
    const quietMs = Math.max(nowMs - startedAtMs - this.#pauseMs(failed), 0);
    return Math.max(failed - (quietMs * FREE_STARTS) / FREE_WINDOW_MS, 0);
  }

  /** Undefined where no further holder is counted. */
  #holderOf(namespace: string, { name, host }: LeaseRequest["holder"], nowMs: number): Holder | undefined {
    const key = keyOf(namespace, host, name);
    const known = this.#holders.get(key);
    if (known !== undefined && this.#failedAt(known, nowMs) > 0) return known;
    this.#holders.delete(key);
    this.#sweepWhenFull(nowMs);
    if (this.#holders.size >= HOLDERS_KEPT_MAX) return undefined;
    const times = { sinceMs: nowMs, startedAtMs: nowMs, requestedAtMs: nowMs };
    const holder = { namespace, name, host, ...times, failed: 0, startCount: 0 };
    this.#holders.set(key, holder);
    return holder;
  }

  #keepOpen(holder: Holder, { namespace, nonce, version, firstRun, runCount }: Lease, nowMs: number): void {
    this.#sweepWhenFull(nowMs);
    if (this.#open.size >= OPEN_KEYS_MAX) return;
    const lastRun = ledgerIdOf(version, firstRun + runCount - 1);
    const start = { holder, atMs: nowMs, keys: [nonceKey(namespace, nonce), runKey(namespace, lastRun)] };
    for (const key of start.keys) this.#open.set(key, start);
  }

  #succeeded(key: string, nowMs: number): void {
    const start = this.#open.get(key);
    if (start === undefined) return;
    for (const one of start.keys) this.#open.delete(one);
    const { holder } = start;
    // What made the others fail is over, or was not the program.
    holder.failed = Math.min(Math.max(this.#failedAt(holder, nowMs) - 1, 0), FREE_STARTS) / 2;
    holder.startedAtMs = Math.max(holder.startedAtMs, nowMs);
    holder.startCount = Math.max(holder.startCount - 1, 0);
  }

  #sweepWhenFull(nowMs: number): void {
    const isFull = this.#holders.size >= HOLDERS_KEPT_MAX || this.#open.size >= OPEN_KEYS_MAX;
    if (isFull && nowMs - this.#sweptAtMs >= SWEEP_EVERY_MS) this.#sweep(nowMs);
  }

  #sweep(nowMs: number): void {
    this.#sweptAtMs = nowMs;
    for (const [key, { atMs }] of this.#open) if (nowMs - atMs >= FREE_WINDOW_MS) this.#open.delete(key);
    for (const [key, holder] of this.#holders) if (this.#failedAt(holder, nowMs) === 0) this.#holders.delete(key);
  }
}

/** No part can contain a line break. */
function keyOf(...parts: readonly (string | number)[]): string {
  return parts.join("\n");
}

function nonceKey(namespace: string, nonce: string): string {
  return keyOf(namespace, "nonce", nonce);
}

function runKey(namespace: string, lastRun: number): string {
  return keyOf(namespace, "run", lastRun);
}
