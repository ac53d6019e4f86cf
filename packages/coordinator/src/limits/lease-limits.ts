/**
 * Whether a lease may be asked for, and for how many runs: by the token, by the holder, and by how often the holder starts. Decided before
 * the store is asked, and what is not leased is given back.
 *
 * What one token does is counted apart from all others, its holders too: whoever invents names, or uses those of somebody else, spends what
 * its own token has. The names of one token that can owe something at a time are as many as the runs that it may take within the time in
 * which one of them pays back, so the cap on names is met only where the token itself is not limited.
 */
import type { Lease, LeaseRequest, ReportRequest } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { HolderStarts, type StartLoop } from "./restart-brake.js";
import { type Allowance, Buckets } from "./token-buckets.js";

/** One token may take a version's first 256 runs, 4 million call numbers, at once, and eight times what the clock line rises by. */
export const TOKEN_ALLOWANCE: Allowance = { atOnce: 256, perSecond: 16 };
/**
 * Half of it: two of the greatest leases at once, so that a hungry importer feels nothing; and what one holder takes leaves as much for
 * the others of its token.
 */
export const HOLDER_ALLOWANCE: Allowance = { atOnce: 128, perSecond: 8 };

const TOKENS_KEPT_MAX = 10_000;
const HOLDERS_KEPT_MAX = 10_000;
/** Where nobody is asked for a token. */
const NO_TOKEN = "none";

export interface LeaseLimitsOptions {
  /** Runs for each token. Undefined: as many as are asked for. */
  readonly token?: Allowance | undefined;
  /** Runs for each holder of a token. Undefined: as many as are asked for, and a crash loop is not slowed down either. */
  readonly holder?: Allowance | undefined;
  /** A clock that only rises, ms. */
  readonly now?: () => number;
}

/** A request that was let through. One of the two must be called. */
export interface Admission {
  /** 1 to what was asked for. */
  readonly runCount: number;
  leased(lease: Lease): void;
  refused(): void;
}

interface TokenState {
  readonly starts: HolderStarts;
  readonly holders: Buckets | undefined;
}

export class LeaseLimits {
  readonly #options: LeaseLimitsOptions;
  readonly #now: () => number;
  readonly #tokens: Buckets | undefined;
  readonly #states = new Map<string, TokenState>();

  constructor(options: LeaseLimitsOptions = {}) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#tokens = options.token && new Buckets(options.token, TOKENS_KEPT_MAX);
  }

  /**
   * Takes what fits of the runs that are asked for.
   * @throws CoordinatorError `rate_limited` when not even one does, or when the holder has to wait before it starts again: nothing is taken.
   */
  admit(
    tokenId: string | null,
    namespace: string,
    request: Pick<LeaseRequest, "runCount" | "holder" | "lastRun">,
  ): Admission {
    const nowMs = this.#now();
    const { starts, holders } = this.#stateOf(tokenId);
    const startMs = starts.untilStartMs(namespace, request, nowMs);
    if (startMs > 0) throw startsTooOften(request.holder.name, startMs);
    const { name, host } = request.holder;
    const takenFrom = [
      placeIn(this.#tokens, tokenId ?? NO_TOKEN, nowMs),
      placeIn(holders, `${namespace}\n${host}\n${name}`, nowMs),
    ].filter((place) => place !== undefined);
    const runCount = Math.min(
      request.runCount,
      ...takenFrom.map(({ buckets, place }) => buckets.available(place, nowMs)),
    );
    if (runCount < 1) {
      const waitMs = Math.max(...takenFrom.map(({ buckets, place }) => buckets.untilOneMs(place, nowMs)));
      throw tooFast(waitMs);
    }
    for (const { buckets, place } of takenFrom) buckets.take(place, runCount, nowMs);
    const start = starts.begin(namespace, request, nowMs);
    const giveBack = (unusedCount: number) => {
      if (unusedCount > 0)
        for (const { buckets, place } of takenFrom) buckets.giveBack(place, unusedCount, this.#now());
    };
    return {
      runCount,
      leased(lease) {
        giveBack(runCount - lease.runCount);
        start.leased(lease);
      },
      refused() {
        giveBack(runCount);
        start.refused();
      },
    };
  }

  /** A report that was noted: how a process shows that it came further than its start. */
  reported(tokenId: string | null, namespace: string, report: Pick<ReportRequest, "nonce" | "lastSequence">): void {
    this.#states.get(tokenId ?? NO_TOKEN)?.starts.reported(namespace, report, this.#now());
  }

  /** Holders of the namespace that start again and again, the worst first. */
  startLoops(namespace: string): readonly StartLoop[] {
    const nowMs = this.#now();
    return [...this.#states.values()]
      .flatMap(({ starts }) => starts.loops(namespace, nowMs))
      .sort((one, other) => other.startCount - one.startCount);
  }

  #stateOf(tokenId: string | null): TokenState {
    const { holder } = this.#options;
    const key = tokenId ?? NO_TOKEN;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    const state = {
      starts: new HolderStarts({ isPausing: holder !== undefined }),
      holders: holder && new Buckets(holder, HOLDERS_KEPT_MAX),
    };
    // Known tokens only: an operator made each of them.
    this.#states.set(key, state);
    return state;
  }
}

function placeIn(buckets: Buckets | undefined, name: string, nowMs: number) {
  return buckets && { buckets, place: buckets.placeOf(name, nowMs) };
}

function tooFast(waitMs: number): CoordinatorError {
  const message = "the token or the holder takes runs faster than it may; ask again after the pause";
  return new CoordinatorError("rate_limited", message, { retryAfterMs: Math.max(waitMs, 1) });
}

function startsTooOften(name: string, waitMs: number): CoordinatorError {
  const message =
    `"${name}" on this host starts again and again, and no process of it came far enough to report a number or to ask for a second run; ` +
    "each further start waits. See why it ends";
  return new CoordinatorError("rate_limited", message, { retryAfterMs: waitMs });
}
