/**
 * The last events of this coordinator, for whoever watches it: each with a number, what nobody outside may read left out, and a
 * flood of leases or refusals told in sums. Knows nothing of how they are sent.
 */
import { randomBytes } from "node:crypto";
import type { OperatorEvent } from "@callnumber/protocol/operator";
import { isErrorCode } from "@callnumber/protocol/wire";
import type { EventListener } from "./events.js";

/** So many events can be asked for again. */
export const RECENT_EVENT_COUNT = 500;
/** Beside them those that leases must not push out: what became of the guard is asked for days later. */
export const NOTABLE_EVENT_COUNT = 200;
/** Leases, and refusals, told one by one in a second; what comes beyond is told in one sum. */
export const TOLD_PER_SECOND_MAX = 20;
/** Sums of a second, by namespace and code; strangers invent namespaces, and beyond so many a sum names none. */
export const SUMS_PER_SECOND_MAX = 50;

/** What comes in floods, and what the sum of it is called. */
const SUM_NAMES: Readonly<Record<string, string>> = { lease: "leases", refusal: "refusals" };

/** A nonce lets its holder report; an error bears a stack. Namespace and code stand beside the fields. */
const HIDDEN_FIELDS: ReadonlySet<string> = new Set(["nonce", "receipt", "err", "namespace", "code"]);

const SECOND_MS = 1_000;

interface Sum {
  readonly event: string;
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
  #notable: OperatorEvent[] = [];
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
    const sumName = Object.hasOwn(SUM_NAMES, event) ? SUM_NAMES[event] : undefined;
    if (sumName !== undefined) {
      const told = this.#toldCounts.get(event) ?? 0;
      if (told >= TOLD_PER_SECOND_MAX) {
        this.#addTo(sumName, subject, typeof runCount === "number" ? runCount : 0);
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
    return [...this.#notable.filter(({ id }) => id < firstRecentId), ...this.#recent];
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
    for (const { event, namespace, code, count, runCount } of sums) {
      const fields = event === "leases" ? { leaseCount: count, runCount } : { refusalCount: count };
      this.#tell({ atMs: nowMs, level: "info", event, namespace, code, fields });
    }
  }

  #addTo(event: string, subject: Pick<Sum, "namespace" | "code">, runCount: number): void {
    const sum = this.#sumOf(event, subject);
    sum.count++;
    sum.runCount += runCount;
    this.#timer ??= setTimeout(() => this.#beginSecond(this.#now()), SECOND_MS).unref();
  }

  #sumOf(event: string, { namespace, code }: Pick<Sum, "namespace" | "code">): Sum {
    const key = `${event} ${namespace} ${code}`;
    const known = this.#sums.get(key);
    if (known !== undefined) return known;
    // The codes are few: without a namespace there is an end to the sums.
    if (namespace !== null && this.#sums.size >= SUMS_PER_SECOND_MAX) {
      return this.#sumOf(event, { namespace: null, code });
    }
    const sum = { event, namespace, code, count: 0, runCount: 0 };
    this.#sums.set(key, sum);
    return sum;
  }

  #tell(event: Omit<OperatorEvent, "id">): void {
    const numbered = { id: ++this.#lastId, ...event };
    this.#recent = kept(this.#recent, numbered, RECENT_EVENT_COUNT);
    if (isNotable(numbered)) this.#notable = kept(this.#notable, numbered, NOTABLE_EVENT_COUNT);
    for (const watcher of this.#watchers) watcher(numbered);
  }
}

/** Leases stand in the ledger, and a refusal comes again as long as it is right. */
function isNotable({ event }: OperatorEvent): boolean {
  return !/^(lease|refusal)s?$/.test(event);
}

function kept(events: readonly OperatorEvent[], newest: OperatorEvent, countMax: number): OperatorEvent[] {
  const first = Math.max(0, events.length + 1 - countMax);
  return [...events.slice(first), newest];
}

function shownFields(fields: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !HIDDEN_FIELDS.has(name)));
}
