/**
 * Whether a lease may be requested, and for how many runs: by the token, by the holder, and by how often the holder starts. Decided before
 * the store is used, and what is not leased is given back.
 *
 * What one token does is counted apart from all others, its holders too: a client that invents names, or uses those of others, spends what
 * its own token has. The holders of one token that can owe something at a time are as many as the runs that it may take while one of them pays
 * back, so the cap on holders is met only where the token itself is not limited.
 */
import type { Lease, LeaseRequest, ReportRequest } from "@callnumber/protocol/api";
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { CoordinatorError } from "../errors.js";
import { RestartBrake, type StartLoop } from "./restart-brake.js";

/** How many runs one token or one holder may take. */
export interface Allowance {
  /** What may be taken at once: whole, 1 or more. */
  readonly atOnce: number;
  /** By what it grows again, above 0. */
  readonly perSecond: number;
}

const SWEEP_EVERY_MS = 1_000;
/** A rounding error must not cost a run. */
const ROUNDING = 1e-6;
/** Shared by the keys for which there is no room. No key is empty. */
const SHARED = "";

export class TokenBuckets {
  readonly #allowance: Allowance;
  readonly #keyCountMax: number;
  /** By key: when nothing is owed any more. */
  readonly #freeAtMs = new Map<string, number>();
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  /**
   * @param keyCountMax how many keys are kept apart. A key that owes something stays, however many others come: when there is no room, new
   *   ones share a bucket.
   */
  constructor(allowance: Allowance, keyCountMax: number) {
    this.#allowance = allowance;
    this.#keyCountMax = keyCountMax;
  }

  /** How many keys are kept. */
  get keyCount(): number {
    return this.#freeAtMs.size;
  }

  /** How many, whole, may be taken now. */
  available(key: string, nowMs: number): number {
    const { atOnce, perSecond } = this.#allowance;
    return Math.max(
      Math.floor(atOnce - (this.#owedMs(this.#bucketOf(key, nowMs), nowMs) * perSecond) / 1_000 + ROUNDING),
      0,
    );
  }

  /** How long until `count`, up to 1, may be taken, whole ms; 0 when it may be now. */
  untilMs(key: string, count: number, nowMs: number): number {
    const { atOnce, perSecond } = this.#allowance;
    const freeAtMs = ((atOnce - count) * 1_000) / perSecond;
    return Math.max(Math.ceil(this.#owedMs(this.#bucketOf(key, nowMs), nowMs) - freeAtMs - ROUNDING), 0);
  }

  /** Takes `count`; a negative one gives back what was taken and not used. */
  take(key: string, count: number, nowMs: number): void {
    const bucket = this.#bucketOf(key, nowMs);
    const owedMs = this.#owedMs(bucket, nowMs) + (count * 1_000) / this.#allowance.perSecond;
    if (owedMs > 0) this.#freeAtMs.set(bucket, nowMs + owedMs);
    else this.#freeAtMs.delete(bucket);
  }

  #owedMs(bucket: string, nowMs: number): number {
    return Math.max((this.#freeAtMs.get(bucket) ?? nowMs) - nowMs, 0);
  }

  #bucketOf(key: string, nowMs: number): string {
    if (this.#freeAtMs.has(key)) return key;
    // Not for every request of a flood.
    if (this.#freeAtMs.size >= this.#keyCountMax && nowMs - this.#sweptAtMs >= SWEEP_EVERY_MS) {
      this.#sweptAtMs = nowMs;
      for (const [one, freeAtMs] of this.#freeAtMs) if (freeAtMs <= nowMs) this.#freeAtMs.delete(one);
    }
    return this.#freeAtMs.size < this.#keyCountMax ? key : SHARED;
  }
}

/** One token may take a version's first 256 runs, 4 million call numbers, at once, and eight times what the run ceiling rises by. */
export const TOKEN_ALLOWANCE: Allowance = { atOnce: 256, perSecond: 16 };
/** Half of it: two of the greatest leases at once, and as much is left for the other holders of the token. */
export const HOLDER_ALLOWANCE: Allowance = { atOnce: 128, perSecond: 8 };

const KEY_COUNT_MAX = 10_000;
/** Where no token is required. */
const NO_TOKEN = "none";

export interface LeaseLimitsOptions {
  /** Runs for each token. Undefined: no limit. */
  readonly token?: Allowance | undefined;
  /** Runs for each holder of a token. Undefined: no limit, and a crash loop is not slowed down either. */
  readonly holder?: Allowance | undefined;
  /** A monotonic clock, ms. */
  readonly now?: () => number;
}

/** An admitted request. */
export interface Admission {
  /** 1 to what was requested. */
  readonly runCount: number;
  /** Must be called, with the lease or, where the request failed, undefined: then all is as if it had not been. */
  readonly end: (lease: Lease | undefined) => void;
}

interface Limit {
  readonly buckets: TokenBuckets;
  readonly key: string;
}

interface TokenState {
  readonly brake: RestartBrake;
  readonly holders: TokenBuckets | undefined;
}

/** How many runs tokens and holders may take; for `createServer`. Without options there is no limit. */
export class LeaseLimits {
  readonly #options: LeaseLimitsOptions;
  readonly #now: () => number;
  readonly #tokens: TokenBuckets | undefined;
  /** By token. Valid tokens only: an operator made each of them. */
  readonly #states = new Map<string, TokenState>();

  constructor(options: LeaseLimitsOptions = {}) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#tokens = options.token && new TokenBuckets(options.token, KEY_COUNT_MAX);
  }

  /**
   * Takes what fits of the requested runs.
   * @throws CoordinatorError `rate_limited` when not even one does, or when the holder has to wait before it starts again: nothing is taken.
   */
  admit(
    tokenId: string | null,
    namespace: string,
    request: Pick<LeaseRequest, "runCount" | "holder" | "lastRun">,
  ): Admission {
    const nowMs = this.#now();
    const { brake } = this.#stateOf(tokenId);
    const startMs = brake.untilStartMs(namespace, request, nowMs);
    if (startMs > 0) throw startsTooOften(request.holder.name, startMs);
    const limits = this.#limitsOf(tokenId, namespace, request.holder);
    const runCount = Math.min(request.runCount, ...limits.map(({ buckets, key }) => buckets.available(key, nowMs)));
    if (runCount < 1) throw tooFast(untilMs(limits, 1, nowMs));
    const take = (count: number) => {
      for (const { buckets, key } of limits) buckets.take(key, count, this.#now());
    };
    take(runCount);
    const endStart = brake.begin(namespace, request, nowMs);
    return {
      runCount,
      end(lease) {
        take((lease?.runCount ?? 0) - runCount);
        endStart(lease);
      },
    };
  }

  /**
   * Takes the share of a run that `count` numbers are. A program that asks for numbers may start as often as it likes: it shares a run.
   * Returns what gives the share back, for a request that failed.
   * @throws CoordinatorError `rate_limited`, as `admit`.
   */
  admitNumbers(
    tokenId: string | null,
    namespace: string,
    holder: Pick<LeaseRequest["holder"], "name" | "host">,
    count: number,
  ): () => void {
    const share = count / SEQUENCE_COUNT;
    const limits = this.#limitsOf(tokenId, namespace, holder);
    const waitMs = untilMs(limits, share, this.#now());
    if (waitMs > 0) throw tooFast(waitMs);
    for (const { buckets, key } of limits) buckets.take(key, share, this.#now());
    return () => {
      for (const { buckets, key } of limits) buckets.take(key, -share, this.#now());
    };
  }

  /** Notes a report that was recorded: how a process shows that it came further than its start. */
  reported(tokenId: string | null, namespace: string, report: Pick<ReportRequest, "nonce" | "lastSequence">): void {
    this.#states.get(tokenId ?? NO_TOKEN)?.brake.reported(namespace, report, this.#now());
  }

  /** Returns holders of the namespace that start repeatedly, the worst first. */
  startLoops(namespace: string): readonly StartLoop[] {
    const nowMs = this.#now();
    return [...this.#states.values()]
      .flatMap(({ brake }) => brake.loops(namespace, nowMs))
      .sort((one, other) => other.startCount - one.startCount);
  }

  #limitsOf(
    tokenId: string | null,
    namespace: string,
    { name, host }: Pick<LeaseRequest["holder"], "name" | "host">,
  ): readonly Limit[] {
    return [
      { buckets: this.#tokens, key: tokenId ?? NO_TOKEN },
      { buckets: this.#stateOf(tokenId).holders, key: `${namespace}\n${host}\n${name}` },
    ].filter((limit): limit is Limit => limit.buckets !== undefined);
  }

  #stateOf(tokenId: string | null): TokenState {
    const { holder } = this.#options;
    const key = tokenId ?? NO_TOKEN;
    const state = this.#states.get(key) ?? {
      brake: new RestartBrake({ isPausing: holder !== undefined }),
      holders: holder && new TokenBuckets(holder, KEY_COUNT_MAX),
    };
    this.#states.set(key, state);
    return state;
  }
}

function untilMs(limits: readonly Limit[], count: number, nowMs: number): number {
  return Math.max(0, ...limits.map(({ buckets, key }) => buckets.untilMs(key, count, nowMs)));
}

function tooFast(waitMs: number): CoordinatorError {
  const message = "the token or the holder leases runs faster than its limit allows; try again after the pause";
  return new CoordinatorError("rate_limited", message, { retryAfterMs: Math.max(waitMs, 1) });
}

function startsTooOften(name: string, waitMs: number): CoordinatorError {
  const message =
    `"${name}" on this host restarts in a loop: none of its processes reported a number or requested a second run; ` +
    "each further start waits. See why it ends";
  return new CoordinatorError("rate_limited", message, { retryAfterMs: waitMs });
}
