/**
 * Everything that happens in a coordinator: a log that passes each event to its listeners (metrics, the event stream) and then to the log
 * itself; and a suppressor, because clients can cause some events as often as they send requests. Without a bound these would fill the log,
 * and push what the guard did out of the recent events. docs/reference/metrics-and-events.md lists the events and their fields.
 */
import type { Log } from "../log.js";

export type EventLevel = keyof Log;

export interface CoordinatorEvent {
  readonly level: EventLevel;
  readonly event: string;
  readonly fields: object;
}

/** Must not throw or wait: a lease may be waiting for it. */
export type EventListener = (event: CoordinatorEvent) => void;

/** A log that passes each event to its subscribers, and then to another log. */
export class EventHub implements Log {
  readonly #log: Log;
  readonly #listeners = new Set<EventListener>();

  /** @param log gets every event, too; its own level decides what it writes. */
  constructor(log: Log) {
    this.#log = log;
  }

  /** Passes every event to the listener from now on, whatever the level of the log. Returns a function that ends that. */
  subscribe(listener: EventListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  readonly debug = this.#logsAs("debug");
  readonly info = this.#logsAs("info");
  readonly warn = this.#logsAs("warn");
  readonly error = this.#logsAs("error");

  #logsAs(level: EventLevel): Log[EventLevel] {
    return (fields, event) => {
      for (const listener of this.#listeners) listener({ level, event, fields });
      this.#log[level](fields, event);
    };
  }
}

/** Events that one client can cause as often as it sends requests. The first ones matter to an operator: they pass. */
export const CALLER_EVENTS: ReadonlySet<string> = new Set([
  "request_rejected",
  "clock_skew",
  "run_above_high_water_mark",
  "discarded",
  "requester_gone",
  "internal_error",
]);

/** Of one event and code at one level: a flood of one suppresses no other. */
export const EVENTS_PER_SECOND_MAX = 20;
/** By event, code and namespace. Clients invent namespaces, so further sums have none. */
export const SUMS_PER_SECOND_MAX = 50;
/** Callers in a sum: a log line stays short. */
export const CALLERS_SHOWN_MAX = 5;
/** Later callers count in the total only. */
export const CALLERS_KEPT_MAX = 1_000;

const SECOND_MS = 1_000;
const SUMS: ReadonlySet<string> = new Set(["leases", "rejections_suppressed", "events_suppressed"]);

/** The client that caused a rejection, as far as it is known. */
export interface RejectedClient {
  /** Of the token in the request. */
  readonly tokenId?: string | undefined;
  /** Of the connection: a proxy, where there is one. */
  readonly remoteAddress?: string | undefined;
}

interface Fields extends RejectedClient {
  readonly namespace?: unknown;
  readonly code?: unknown;
  readonly runCount?: unknown;
}

/** The suppressed events of one kind, and the clients that caused most of them, in bounded memory. */
interface Sum {
  readonly level: EventLevel;
  readonly of: string;
  readonly code: unknown;
  readonly namespace: unknown;
  readonly callers: Map<string, RejectedClient & { rejectionCount: number }>;
  eventCount: number;
  runCount: number;
}

/** Returns the name of the event that sums up others of this name. */
export function sumNameOf(event: string): string {
  if (event === "lease") return "leases";
  return event === "request_rejected" ? "rejections_suppressed" : "events_suppressed";
}

export function isSum(event: string): boolean {
  return SUMS.has(event);
}

export class EventSuppressor {
  readonly #bounded: ReadonlySet<string>;
  readonly #pass: EventListener;
  readonly #passedCounts = new Map<string, number>();
  readonly #sums = new Map<string, Sum>();
  #timer: NodeJS.Timeout | undefined;

  /** @param bounded names of the events that may be suppressed; all others pass. */
  constructor(bounded: ReadonlySet<string>, pass: EventListener) {
    this.#bounded = bounded;
    this.#pass = pass;
  }

  readonly take: EventListener = (one) => {
    if (this.#bounded.has(one.event)) {
      this.#timer ??= setTimeout(() => this.#endSecond(), SECOND_MS).unref();
      const kind = `${one.level} ${one.event} ${(one.fields as Fields).code}`;
      const passedCount = this.#passedCounts.get(kind) ?? 0;
      if (passedCount >= EVENTS_PER_SECOND_MAX) {
        addTo(this.#sumOf(one, kind, (one.fields as Fields).namespace), one.fields);
        return;
      }
      this.#passedCounts.set(kind, passedCount + 1);
    }
    this.#pass(one);
  };

  /** Passes the sums that are pending, and leaves no timer. */
  close(): void {
    clearTimeout(this.#timer);
    this.#endSecond();
  }

  #sumOf(one: CoordinatorEvent, kind: string, namespace: unknown): Sum {
    const key = `${kind} ${namespace}`;
    const known = this.#sums.get(key);
    if (known !== undefined) return known;
    // Kinds are few.
    if (namespace !== undefined && this.#sums.size >= SUMS_PER_SECOND_MAX) return this.#sumOf(one, kind, undefined);
    const { level, event: of, fields } = one;
    const { code } = fields as Fields;
    const sum: Sum = { level, of, code, namespace, callers: new Map(), eventCount: 0, runCount: 0 };
    this.#sums.set(key, sum);
    return sum;
  }

  #endSecond(): void {
    this.#timer = undefined;
    this.#passedCounts.clear();
    const sums = [...this.#sums.values()];
    this.#sums.clear();
    for (const sum of sums) this.#pass({ level: sum.level, event: sumNameOf(sum.of), fields: fieldsOf(sum) });
  }
}

function addTo(sum: Sum, { tokenId, remoteAddress, runCount }: Fields): void {
  sum.eventCount++;
  if (typeof runCount === "number") sum.runCount += runCount;
  const key = `${tokenId ?? ""} ${remoteAddress ?? ""}`;
  const known = sum.callers.get(key);
  if (known !== undefined) known.rejectionCount++;
  else if (sum.callers.size < CALLERS_KEPT_MAX) sum.callers.set(key, { tokenId, remoteAddress, rejectionCount: 1 });
}

/** With the callers that have most events. They need not have caused all. */
function fieldsOf({ of, namespace, code, callers, eventCount, runCount }: Sum): object {
  if (of === "lease") return { namespace, leaseCount: eventCount, runCount };
  if (of !== "request_rejected") return { namespace, of, eventCount };
  const most = [...callers.values()].sort((one, other) => other.rejectionCount - one.rejectionCount);
  return { namespace, code, rejectionCount: eventCount, callers: most.slice(0, CALLERS_SHOWN_MAX) };
}
