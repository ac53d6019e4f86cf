/**
 * Which holders start again and again, and how long each has to wait. A holder is a name on a host in a namespace, whatever its process is:
 * one that crashes comes back as another. A start is a lease for a process that has had none, and is held against the holder until the
 * process asks again with a run that it had, or reports that it made numbers. Pure: the clock is passed in.
 */
import type { Lease, LeaseRequest, ReportRequest } from "@callnumber/protocol/wire";
import { ledgerIdOf } from "@callnumber/protocol/wire";
import {
  FREE_STARTS,
  FREE_WINDOW_MS,
  heldAfter,
  heldAfterGoodStart,
  heldWithOneMore,
  pauseMsFor,
} from "./start-pause.js";

/** A holder that has not asked for so long, pauses apart, has been stopped or mended. */
export const LOOP_OVER_MS = 600_000;
/** Starts of which it is not known what came of them. What comes beyond is not counted, so that nobody can push others out. */
const STARTS_KEPT_MAX = 10_000;
const HOLDERS_KEPT_MAX = 10_000;
const SWEEP_EVERY_MS = 1_000;

/** A holder that starts again and again. */
export interface StartLoop {
  readonly holder: { readonly name: string; readonly host: string };
  /** Starts of which nothing came, since it began. */
  readonly startCount: number;
  /** For how long it has gone on. */
  readonly forMs: number;
  /** What each further start has to wait. */
  readonly pauseMs: number;
}

/** A start that was let through. */
export interface Start {
  /** It got its runs. */
  leased(lease: Lease): void;
  /** It got none: as if it had not been. */
  refused(): void;
}

interface Held {
  readonly namespace: string;
  readonly name: string;
  readonly host: string;
  readonly sinceMs: number;
  /** As of the last start. */
  held: number;
  startCount: number;
  startedAtMs: number;
  askedAtMs: number;
}

interface OpenStart {
  readonly holder: Held;
  readonly atMs: number;
  readonly keys: readonly string[];
}

const UNCOUNTED: Start = { leased() {}, refused() {} };

export class HolderStarts {
  readonly #isPausing: boolean;
  readonly #holders = new Map<string, Held>();
  /** By the nonce and by the last run of its lease, oldest first. */
  readonly #open = new Map<string, OpenStart>();
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  /** Without pauses starts are only counted. */
  constructor({ isPausing }: { readonly isPausing: boolean }) {
    this.#isPausing = isPausing;
  }

  /** How long this request has to wait, whole ms. */
  untilStartMs(namespace: string, request: Pick<LeaseRequest, "holder" | "lastRun">, nowMs: number): number {
    if (request.lastRun !== null) return 0;
    const holder = this.#holders.get(nameOf(namespace, request.holder));
    if (holder === undefined) return 0;
    holder.askedAtMs = nowMs;
    return Math.max(Math.ceil(holder.startedAtMs + this.#pauseMs(holder.held) - nowMs), 0);
  }

  /** A request that was let through; whether it is a start is found here. Counted at once: many may be under way together. */
  begin(namespace: string, request: Pick<LeaseRequest, "holder" | "lastRun">, nowMs: number): Start {
    const { holder, lastRun } = request;
    if (lastRun !== null) return { leased: () => this.#cameOf(runKey(namespace, lastRun), nowMs), refused() {} };
    const known = this.#holderOf(namespace, holder, nowMs);
    if (known === undefined) return UNCOUNTED;
    const { held, startedAtMs } = known;
    known.held = heldWithOneMore(this.#heldAt(known, nowMs));
    known.startedAtMs = nowMs;
    known.askedAtMs = nowMs;
    known.startCount++;
    return {
      leased: (lease) => this.#keepOpen(known, lease, nowMs),
      refused: () => {
        known.startCount--;
        // Others may have started since.
        if (known.startedAtMs !== nowMs) known.held = Math.max(known.held - 1, 0);
        else Object.assign(known, { held, startedAtMs });
      },
    };
  }

  /** A report that was noted. Whoever made no number has come no further by it. */
  reported(namespace: string, { nonce, lastSequence }: Pick<ReportRequest, "nonce" | "lastSequence">, nowMs: number) {
    if (lastSequence !== null) this.#cameOf(nonceKey(namespace, nonce), nowMs);
  }

  /** Those of the namespace that are made to wait, or would be; the worst first. */
  loops(namespace: string, nowMs: number): readonly StartLoop[] {
    this.#sweep(nowMs);
    return [...this.#holders.values()]
      .filter((one) => one.namespace === namespace && this.#isLooping(one, nowMs))
      .sort((one, other) => other.held - one.held)
      .map(({ name, host, startCount, sinceMs, held }) => ({
        holder: { name, host },
        startCount,
        forMs: nowMs - sinceMs,
        pauseMs: this.#pauseMs(held),
      }));
  }

  #isLooping(holder: Held, nowMs: number): boolean {
    const quietFromMs = Math.max(holder.askedAtMs, holder.startedAtMs + this.#pauseMs(holder.held));
    return this.#heldAt(holder, nowMs) >= FREE_STARTS && nowMs - quietFromMs < LOOP_OVER_MS;
  }

  #pauseMs(held: number): number {
    return this.#isPausing ? pauseMsFor(held) : 0;
  }

  #heldAt({ held, startedAtMs }: Held, nowMs: number): number {
    return heldAfter(held, nowMs - startedAtMs, this.#pauseMs(held));
  }

  #holderOf(namespace: string, { name, host }: LeaseRequest["holder"], nowMs: number): Held | undefined {
    const key = nameOf(namespace, { name, host });
    const known = this.#holders.get(key);
    if (known !== undefined && this.#heldAt(known, nowMs) > 0) return known;
    this.#holders.delete(key);
    if (this.#holders.size >= HOLDERS_KEPT_MAX || this.#open.size >= 2 * STARTS_KEPT_MAX) this.#sweepSeldom(nowMs);
    if (this.#holders.size >= HOLDERS_KEPT_MAX) return undefined;
    const fresh = { namespace, name, host, sinceMs: nowMs, held: 0, startCount: 0 };
    const holder = { ...fresh, startedAtMs: nowMs, askedAtMs: nowMs };
    this.#holders.set(key, holder);
    return holder;
  }

  #keepOpen(holder: Held, { namespace, nonce, version, firstRun, runCount }: Lease, nowMs: number): void {
    if (this.#open.size >= 2 * STARTS_KEPT_MAX) this.#sweepSeldom(nowMs);
    if (this.#open.size >= 2 * STARTS_KEPT_MAX) return;
    const lastRun = ledgerIdOf(version, firstRun + runCount - 1);
    const start = { holder, atMs: nowMs, keys: [nonceKey(namespace, nonce), runKey(namespace, lastRun)] };
    for (const key of start.keys) this.#open.set(key, start);
  }

  #cameOf(key: string, nowMs: number): void {
    const start = this.#open.get(key);
    if (start === undefined) return;
    for (const one of start.keys) this.#open.delete(one);
    const { holder } = start;
    holder.held = heldAfterGoodStart(this.#heldAt(holder, nowMs));
    holder.startedAtMs = Math.max(holder.startedAtMs, nowMs);
    holder.startCount = Math.max(holder.startCount - 1, 0);
  }

  #sweepSeldom(nowMs: number): void {
    if (nowMs - this.#sweptAtMs >= SWEEP_EVERY_MS) this.#sweep(nowMs);
  }

  #sweep(nowMs: number): void {
    this.#sweptAtMs = nowMs;
    for (const [key, { atMs }] of this.#open) if (nowMs - atMs >= FREE_WINDOW_MS) this.#open.delete(key);
    for (const [key, holder] of this.#holders) if (this.#heldAt(holder, nowMs) === 0) this.#holders.delete(key);
  }
}

/** None of them can hold a line break. */
function nameOf(namespace: string, { name, host }: Pick<LeaseRequest["holder"], "name" | "host">): string {
  return `${namespace}\n${host}\n${name}`;
}

function nonceKey(namespace: string, nonce: string): string {
  return `${namespace}\nnonce ${nonce}`;
}

function runKey(namespace: string, lastRun: number): string {
  return `${namespace}\nrun ${lastRun}`;
}
