/**
 * Puts messages into threads by what they answer, after the algorithm of Jamie Zawinski (https://www.jwz.org/doc/threading.html), without
 * his guesses by subject. Pure. Parents may be missing, and fields may be forged to go round in a circle.
 */

export interface Threaded {
  readonly messageId: string | null;
  /** One Message-ID. */
  readonly inReplyTo: string | null;
  /** Message-IDs, separated by blanks, the thread's first one in front. */
  readonly references: string | null;
  /** ISO 8601; null sorts first. */
  readonly date: string | null;
}

export interface Placed<T> {
  readonly message: T;
  /** 0: begins a thread, as far as it is known here. */
  readonly depth: number;
}

/** The nearest ones are at the end. */
const REFERENCES_MAX = 50;

/** Returns all messages: each behind the one that it answers, answers and threads by date. */
export function inThreads<T extends Threaded>(messages: readonly T[]): readonly Placed<T>[] {
  const sorted = messages.toSorted((a, b) => compare(a.date ?? "", b.date ?? ""));
  const byId = new Map<string, T>();
  for (const message of sorted) {
    if (message.messageId !== null && !byId.has(message.messageId)) byId.set(message.messageId, message);
  }
  const parents = new Map<T, T>();
  const answers = new Map<T | undefined, T[]>();
  // The latest first: where two claim to answer each other, the later one is the answer.
  for (const message of sorted.toReversed()) {
    const parent = ancestorIds(message)
      .map((id) => byId.get(id))
      .find((found) => found !== undefined && !descendsFrom(found, message, parents));
    if (parent !== undefined) parents.set(message, parent);
    const siblings = answers.get(parent);
    if (siblings === undefined) answers.set(parent, [message]);
    else siblings.push(message);
  }
  // A thread may be deeper than the stack of the process. The earliest of siblings is the last of its array.
  const placed: Placed<T>[] = [];
  const waiting = (answers.get(undefined) ?? []).map((message) => ({ message, depth: 0 }));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { message, depth } = next;
    placed.push(next);
    for (const answer of answers.get(message) ?? []) waiting.push({ message: answer, depth: depth + 1 });
  }
  return placed;
}

/** The nearest first. */
function ancestorIds({ inReplyTo, references }: Threaded): readonly string[] {
  const ids = references?.split(/\s+/).slice(-REFERENCES_MAX).reverse() ?? [];
  return inReplyTo === null || ids.includes(inReplyTo) ? ids : [inReplyTo, ...ids];
}

function descendsFrom<T>(message: T, ancestor: T, parents: ReadonlyMap<T, T>): boolean {
  for (let each: T | undefined = message; each !== undefined; each = parents.get(each)) {
    if (each === ancestor) return true;
  }
  return false;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
