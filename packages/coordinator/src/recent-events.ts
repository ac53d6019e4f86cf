/**
 * The last events of this coordinator, for whoever watches it: each with a number, what nobody outside may read left out, and a
 * flood of leases, or of what callers cause, told in sums. Knows nothing of how they are sent.
 */
import { randomBytes } from "node:crypto";
import type { OperatorEvent } from "@callnumber/protocol/operator";
import { isErrorCode } from "@callnumber/protocol/wire";
import { CALLER_EVENTS, isSum, sumNameOf } from "./caller-events.js";
import type { EventListener } from "./events.js";

/** So many events can be asked for again. */
export const RECENT_EVENT_COUNT = 500;
/** Beside them those that leases must not push out: what became of the guard is asked for days later. */
export const NOTABLE_EVENT_COUNT = 200;
/** And of each event that callers cause, but for refusals: a flood of one pushes out neither what the guard did nor any other. */
export const CALLER_EVENT_COUNT = 50;
/** Leases, and of each event that callers cause, told one by one in a second; what comes beyond is told in one sum. */
export const TOLD_PER_SECOND_MAX = 20;
/** Sums of a second, by namespace and code; strangers invent namespaces, and beyond so many a sum names none. */
export const SUMS_PER_SECOND_MAX = 50;

/** A nonce lets its holder report; an error bears a stack. Namespace and code stand beside the fields. */
const HIDDEN_FIELDS: ReadonlySet<string> = new Set(["nonce", "receipt", "err", "namespace", "code"]);

const SECOND_MS = 1_000;

/** What stands beside the last events is kept in rooms, each bounded by itself. */
const NOTABLE_ROOM = "";

interface Sum {
  /** The event that is summed up. */
  readonly of: string;
  readonly namespace: string | null;
  readonly code: OperatorEvent["code"];
  count: number;
  runCount: number;
}

export interface EventsSince {
  readonly events: readonly OperatorEvent[];
  /** False when some that followed are no longer known. */
  readonly isComplete: boolean;
}

type Watcher = (event: OperatorEvent) => void;

export class RecentEvents {
  /** Tells this process from the one before it, which counted its events from one, too. */
  readonly life = randomBytes(6).toString("hex");
  readonly #now: () => number;
  readonly #watchers = new Set<Watcher>();
  #lastId = 0;
  #recent: OperatorEvent[] = [];
  readonly #rooms = new Map<string, OperatorEvent[]>();
  /** How many of a name were told one by one since `#secondFromMs`. */
  readonly #toldCounts = new Map<string, number>();
  readonly #sums = new Map<string, Sum>();
  #secondFromMs = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** For `EventHub.subscribe`. Debugging is left out. */
  readonly take: EventListener = ({ level, event, fields }) => {
    if (level === "debug") return;
    const nowMs = this.#now();
    if (nowMs - this.#secondFromMs >= SECOND_MS || nowMs < this.#secondFromMs) this.#beginSecond(nowMs);
    const { namespace, code, runCount } = fields as Readonly<Record<string, unknown>>;
    const subject = {
      namespace: typeof namespace === "string" ? namespace : null,
      code: isErrorCode(code) ? code : null,
    };
    if (event === "lease" || CALLER_EVENTS.has(event)) {
      const told = this.#toldCounts.get(event) ?? 0;
      if (told >= TOLD_PER_SECOND_MAX) {
        this.#addTo(event, subject, typeof runCount === "number" ? runCount : 0);
        return;
      }
      this.#toldCounts.set(event, told + 1);
    }
    this.#tell({ atMs: nowMs, level, event, ...subject, fields: shownFields(fields) });
  };

  /** What followed the event `id`. A gap is no error: the newest are always there. */
  since(id: number): EventsSince {
    const isOurs = id <= this.#lastId;
    const isComplete = isOurs && id >= (this.#recent[0]?.id ?? 1) - 1;
    return { events: isOurs ? this.all().filter((event) => event.id > id) : this.all(), isComplete };
  }

  /** All that are known, oldest first. */
  all(): readonly OperatorEvent[] {
    const firstRecentId = this.#recent[0]?.id ?? 0;
    const older = [...this.#rooms.values()].flat().filter(({ id }) => id < firstRecentId);
    return [...older.sort((one, other) => one.id - other.id), ...this.#recent];
  }

  /** The watcher is told each new event; it must not throw and not wait. Answers what ends that. */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** Tells the sums that are pending; nothing is left running. */
  close(): void {
    this.#beginSecond(this.#now());
  }

  #beginSecond(nowMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#secondFromMs = nowMs;
    this.#toldCounts.clear();
    const sums = [...this.#sums.values()];
    this.#sums.clear();
    for (const sum of sums) {
      const { namespace, code } = sum;
      this.#tell({ atMs: nowMs, level: "info", event: sumNameOf(sum.of), namespace, code, fields: fieldsOf(sum) });
    }
  }

  #addTo(of: string, subject: Pick<Sum, "namespace" | "code">, runCount: number): void {
    const sum = this.#sumOf(of, subject);
    sum.count++;
    sum.runCount += runCount;
    this.#timer ??= setTimeout(() => this.#beginSecond(this.#now()), SECOND_MS).unref();
  }

  #sumOf(of: string, { namespace, code }: Pick<Sum, "namespace" | "code">): Sum {
    const key = `${of} ${namespace} ${code}`;
    const known = this.#sums.get(key);
    if (known !== undefined) return known;
    // Events and codes are few: without a namespace there is an end to the sums.
    if (namespace !== null && this.#sums.size >= SUMS_PER_SECOND_MAX) {
      return this.#sumOf(of, { namespace: null, code });
    }
    const sum = { of, namespace, code, count: 0, runCount: 0 };
    this.#sums.set(key, sum);
    return sum;
  }

  #tell(event: Omit<OperatorEvent, "id">): void {
    const numbered = { id: ++this.#lastId, ...event };
    this.#recent = kept(this.#recent, numbered, RECENT_EVENT_COUNT);
    const room = roomOf(event);
    if (room !== undefined) {
      const countMax = room === NOTABLE_ROOM ? NOTABLE_EVENT_COUNT : CALLER_EVENT_COUNT;
      this.#rooms.set(room, kept(this.#rooms.get(room) ?? [], numbered, countMax));
    }
    for (const watcher of this.#watchers) watcher(numbered);
  }
}

function fieldsOf({ of, count, runCount }: Sum): OperatorEvent["fields"] {
  if (of === "lease") return { leaseCount: count, runCount };
  return of === "refusal" ? { refusalCount: count } : { of, eventCount: count };
}

/** None for leases, which stand in the ledger, for refusals, which come again as long as they are right, and for sums. */
function roomOf({ event }: Pick<OperatorEvent, "event">): string | undefined {
  if (event === "lease" || event === "refusal" || isSum(event)) return undefined;
  return CALLER_EVENTS.has(event) ? event : NOTABLE_ROOM;
}

function kept(events: readonly OperatorEvent[], newest: OperatorEvent, countMax: number): OperatorEvent[] {
  const first = Math.max(0, events.length + 1 - countMax);
  return [...events.slice(first), newest];
}

function shownFields(fields: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !HIDDEN_FIELDS.has(name)));
}
