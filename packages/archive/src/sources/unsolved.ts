/** What could not be read so far of the sources that are followed. Each is named once. */
import type { MaildirItem, MboxItem, Problem, Range } from "./source.js";

/** A rotation is at its end, and what it has moved can be found. */
export const ROTATION_MS = 3000;

interface Unsolved {
  readonly problem: Problem;
  readonly sinceMs: number;
  isNamed: boolean;
}

export class UnsolvedProblems {
  /** By place. */
  readonly #unsolved = new Map<string, Unsolved>();

  get all(): readonly Problem[] {
    return [...this.#unsolved.values()].map(({ problem }) => problem);
  }

  reasonAt(place: string): string | undefined {
    return this.#unsolved.get(place)?.problem.reason;
  }

  add(place: string, problem: Problem): void {
    const { sinceMs = performance.now(), isNamed = false } = this.#unsolved.get(place) ?? {};
    this.#unsolved.set(place, { problem, sinceMs, isNamed });
  }

  remove(place: string): void {
    this.#unsolved.delete(place);
  }

  /** Takes note of what could not be read of a range, and of what could. */
  imported(range: Range, problems: readonly Problem[]): void {
    const failed = new Map(problems.filter(({ stored }) => !stored).map((problem) => [placeOf(problem), problem]));
    for (const item of range.items) {
      const isPart = range.kind === "mbox";
      const source = isPart ? range.source : `${range.path}/${(item as MaildirItem).unique}`;
      const place = placeOf({ source, byteOffset: isPart ? (item as MboxItem).offset : 0 });
      const problem = failed.get(place);
      if (problem === undefined) this.remove(place);
      else this.add(place, problem);
    }
  }

  /** Returns a line for each source and reason that is no rotation at work: what a rotation has moved is read again before. */
  nameTransient(): string[] {
    const groups = new Map<string, { readonly first: Problem; count: number }>();
    for (const unsolved of this.#unsolved.values()) {
      const { problem, sinceMs, isNamed } = unsolved;
      if (isNamed || problem.isTransient !== true || performance.now() - sinceMs < ROTATION_MS) continue;
      unsolved.isNamed = true;
      const key = `${problem.source}\0${problem.reason}`;
      const group = groups.get(key) ?? { first: problem, count: 0 };
      group.count++;
      groups.set(key, group);
    }
    return [...groups.values()].map(({ first: { source, number, reason }, count }) => {
      const more = count > 1 ? ` and ${count - 1} more` : "";
      return `${source}, message ${number}${more}: ${reason}`;
    });
  }
}

function placeOf({ source, byteOffset }: Pick<Problem, "source" | "byteOffset">): string {
  return `${source}\0${byteOffset}`;
}
