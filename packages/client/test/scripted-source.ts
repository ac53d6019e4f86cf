/** A lease source that a test plays: leases rise from 1; a test may hold, break or forge single answers. */
import type { Lease, LeaseRequest, ReportRequest, RunReport } from "@callnumber/protocol/api";
import type { CallOptions, LeaseSource } from "../src/lease-source.js";

export type Answer = (lease: Lease, request: LeaseRequest, options: CallOptions | undefined) => unknown;

export class ScriptedSource implements LeaseSource {
  readonly requests: LeaseRequest[] = [];
  /** Those in lease requests, too. */
  readonly reports: RunReport[] = [];
  /** Requests in flight at the same time, at the most. */
  greatestConcurrency = 0;
  storeId = "store-1";
  mark = 0;
  #inFlight = 0;
  readonly #answers: Answer[] = [];
  #everyAnswer: Answer = (lease) => lease;

  /** The next answers, in order; after them every request is answered as `always` says, or well. */
  answer(...answers: Answer[]): this {
    this.#answers.push(...answers);
    return this;
  }

  always(answer: Answer): this {
    this.#everyAnswer = answer;
    return this;
  }

  get leasedRunCounts(): number[] {
    return this.requests.map(({ runCount }) => runCount);
  }

  async lease(namespace: string, request: LeaseRequest, options?: CallOptions): Promise<Lease> {
    this.requests.push(request);
    if (request.report) this.reports.push(request.report);
    this.#inFlight++;
    this.greatestConcurrency = Math.max(this.greatestConcurrency, this.#inFlight);
    try {
      const { runCount, nonce } = request;
      const lease = {
        namespace,
        storeId: this.storeId,
        version: 0,
        firstRun: this.mark + 1,
        runCount,
        leasedAtMs: 1,
        nonce,
        proof: proofFor(this.mark + runCount),
      };
      this.mark += runCount;
      const answer = this.#answers.shift() ?? this.#everyAnswer;
      // As from a network: never in the same turn.
      await new Promise((resolve) => setImmediate(resolve));
      return (await answer(lease, request, options)) as Lease;
    } finally {
      this.#inFlight--;
    }
  }

  async report(_namespace: string, run: number, request: ReportRequest): Promise<void> {
    this.reports.push({ ...request, run });
  }
}

/** What this source gives as proof of a lease that ends with that run. */
export function proofFor(lastRun: number): string {
  return String(lastRun).padStart(43, "r");
}

/** A refusal as a coordinator gives it. */
export function refusal(code: string, retryAfterMs?: number): Answer {
  return () => {
    throw Object.assign(new Error(`refused: ${code}`), { code, retryAfterMs });
  };
}
