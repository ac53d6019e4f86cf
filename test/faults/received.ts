/**
 * What importers received, and whether any of it came twice. Exact: every run of every lease is kept. Not what a store says was leased,
 * but what reached somebody who would have made numbers from it.
 * Guarantees: G2 (docs/guarantees.md).
 */
export interface ReceivedLease {
  readonly importer: string;
  readonly storeId: string;
  readonly firstRun: number;
  readonly runCount: number;
  readonly receivedAtMs: number;
}

export class Received {
  readonly #importerOf = new Map<number, string>();
  readonly #lastOf = new Map<string, number>();
  readonly #problems: string[] = [];
  #leaseCount = 0;
  #greatest = 0;

  /** @param lineAt the greatest run that may be leased at an instant. */
  constructor(private readonly lineAt: (timeMs: number) => number) {}

  note({ importer, firstRun, runCount, receivedAtMs }: ReceivedLease): void {
    this.#leaseCount++;
    const last = firstRun + runCount - 1;
    for (let run = firstRun; run <= last; run++) {
      const holder = this.#importerOf.get(run);
      if (holder !== undefined) this.#problems.push(`run ${run} was leased to ${holder} and to ${importer}`);
      this.#importerOf.set(run, importer);
    }
    const before = this.#lastOf.get(importer) ?? 0;
    if (firstRun <= before) this.#problems.push(`${importer} got run ${firstRun} after run ${before}`);
    if (last > this.lineAt(receivedAtMs)) this.#problems.push(`run ${last} lies above the clock line`);
    this.#lastOf.set(importer, last);
    this.#greatest = Math.max(this.#greatest, last);
  }

  get runCount(): number {
    return this.#importerOf.size;
  }

  get leaseCount(): number {
    return this.#leaseCount;
  }

  get greatest(): number {
    return this.#greatest;
  }

  /** Runs that came twice, that did not rise, or that lie above the line. */
  get problems(): readonly string[] {
    return this.#problems;
  }
}
