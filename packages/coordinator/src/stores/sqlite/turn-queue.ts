/**
 * Gathers the jobs of one turn of the event loop and hands them on together, so that callers of the same moment share one
 * sync of the disk. Knows nothing of what the jobs do.
 */
export type JobOutcome<T> = { readonly value: T } | { readonly error: unknown };

interface Waiting {
  readonly job: () => unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

export class TurnQueue {
  readonly #runTogether: (jobs: readonly (() => unknown)[]) => readonly JobOutcome<unknown>[];
  #waiting: Waiting[] = [];

  /** `runTogether` runs all jobs and answers for each, in their order; when it throws, every job of the turn failed. */
  constructor(runTogether: (jobs: readonly (() => unknown)[]) => readonly JobOutcome<unknown>[]) {
    this.#runTogether = runTogether;
  }

  add<T>(job: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ job, resolve, reject });
      if (this.#waiting.length === 1) setImmediate(() => this.flush());
    });
  }

  /** Runs what waits now, without waiting for the end of the turn. */
  flush(): void {
    const turn = this.#waiting;
    this.#waiting = [];
    if (turn.length === 0) return;
    let outcomes: readonly JobOutcome<unknown>[];
    try {
      outcomes = this.#runTogether(turn.map(({ job }) => job));
    } catch (error) {
      for (const { reject } of turn) reject(error);
      return;
    }
    turn.forEach(({ resolve, reject }, index) => {
      const outcome = outcomes[index] as JobOutcome<never>;
      if ("error" in outcome) reject(outcome.error);
      else resolve(outcome.value);
    });
  }
}
