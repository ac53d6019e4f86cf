/**
 * How many runs a client leases ahead, and when. The demand is how many runs are buffered: it starts at one run, doubles when callers had to
 * wait, to half of what was used lately at the most, and halves when a lease lasted long. So a small importer leaves little unused, and a
 * large one seldom sends a request. Up to the largest lease the demand is the size of a request, sent before the last lease is used up;
 * beyond it, requests are sent earlier. A call that needs more runs makes the request larger, and the demand no greater.
 */
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import type { Settings } from "./options.js";

/** A lease that lasted longer than this was larger than needed. */
const CALM_LEASE_MS = 10_000;
/** The greatest demand, in largest leases: then the next one is requested while two are buffered. */
const DEMAND_LEASES_MAX = 4;
/** A shorter wait means a caller that blocked the event loop, not a slow coordinator: an earlier request would not help. */
const SLOW_RESPONSE_MS = 5;

export class Demand {
  readonly #settings: Settings;
  #runCount = 1;
  /** How many runs were begun since a lease last lasted long. */
  #usedLately = 0;
  #lastLeaseRunCount = 0;
  #lastLeaseAtMs = 0;
  /** When a caller found no run; undefined when one has arrived since. */
  #starvedAtMs: number | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  runStarted(): void {
    this.#usedLately++;
  }

  /** A caller found no run. Returns whether this is news, and not the wait for the first lease. */
  starved(): boolean {
    if (this.#starvedAtMs !== undefined) return false;
    this.#starvedAtMs = performance.now();
    if (this.#lastLeaseRunCount === 0) return false;
    if (this.#settings.prefetch && !this.#hasLeaseLasted()) this.#grow(this.#settings.maxRunsPerLease);
    return true;
  }

  leased(runCount: number): void {
    const { maxRunsPerLease } = this.#settings;
    this.#lastLeaseRunCount = runCount;
    this.#lastLeaseAtMs = performance.now();
    const waitMs = this.#lastLeaseAtMs - (this.#starvedAtMs ?? this.#lastLeaseAtMs);
    if (waitMs > SLOW_RESPONSE_MS && this.#runCount >= maxRunsPerLease) this.#grow(maxRunsPerLease * DEMAND_LEASES_MAX);
    this.#starvedAtMs = undefined;
  }

  /** From this sequence of the run in use on it is time to refill; `SEQUENCE_COUNT` for never. */
  refillAt(bufferedRunCount: number): number {
    const { maxRunsPerLease, prefetch, spareRuns, stopWhenExhausted } = this.#settings;
    if (!prefetch || stopWhenExhausted) return SEQUENCE_COUNT;
    if (bufferedRunCount < spareRuns) return 0;
    // None while the coordinator leases less than requested: scarce runs are not hoarded.
    const beyondLargest = this.#lastLeaseRunCount < maxRunsPerLease ? 0 : Math.max(this.#runCount - maxRunsPerLease, 0);
    // Half of a lease, but of a single run a quarter: an importer of fewer than 12,000 numbers needs no second one.
    const lead = (Math.min(this.#runCount, this.#lastLeaseRunCount) - 0.5 + beyondLargest) / 2;
    const sequence = Math.floor((1 - lead + bufferedRunCount) * SEQUENCE_COUNT) + 1;
    return Math.min(Math.max(sequence, 0), SEQUENCE_COUNT);
  }

  /** `neededRunCount`: how many runs callers miss now, in addition to the buffered ones. */
  runCountToRequest(neededRunCount: number, bufferedRunCount: number): number {
    const { maxRunsPerLease, spareRuns } = this.#settings;
    if (this.#hasLeaseLasted()) {
      this.#usedLately = 0;
      const halved = Math.floor(Math.min(this.#runCount, maxRunsPerLease) / 2);
      if (this.#starvedAtMs === undefined) this.#runCount = Math.max(halved, 1);
    }
    // Callers that miss runs will use the buffered ones, too.
    const missing = neededRunCount || -bufferedRunCount;
    return Math.min(Math.max(this.#runCount, missing + spareRuns), maxRunsPerLease);
  }

  #hasLeaseLasted(): boolean {
    return performance.now() - this.#lastLeaseAtMs > CALM_LEASE_MS;
  }

  #grow(most: number): void {
    const grown = Math.min(this.#runCount * 2, most, Math.ceil(this.#usedLately / 2));
    this.#runCount = Math.max(this.#runCount, grown);
  }
}
