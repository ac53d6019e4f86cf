/**
 * The last events of this coordinator, for operators who watch it: numbered, without what must not leave the coordinator, and floods of leases
 * or of events that clients cause as sums. Knows nothing about how they are sent.
 */
import { randomBytes } from "node:crypto";
import { isErrorCode, type OperatorEvent } from "@callnumber/protocol/api";
import { CALLER_EVENTS, type CoordinatorEvent, type EventListener, EventSuppressor, isSum } from "./events.js";

/** Events that can be requested again. */
export const RECENT_EVENT_COUNT = 500;
/** Further events that leases must not push out: what the guard did is read days later. */
export const NOTABLE_EVENT_COUNT = 200;
/** And of each event that clients cause, except rejections. */
const CALLER_EVENT_COUNT = 50;

/** A nonce allows reports; an error includes a stack. Namespace and code have fields of their own. */
const HIDDEN_FIELDS: ReadonlySet<string> = new Set(["nonce", "proof", "err", "namespace", "code"]);

/** Leases and numbers too: all of them are in the log. */
const SUPPRESSED: ReadonlySet<string> = new Set([...CALLER_EVENTS, "lease", "numbers"]);
/** What is read in the log or the ledger instead, rejections, which repeat as long as their cause lasts, and sums. */
const NOT_KEPT: ReadonlySet<string> = new Set(["lease", "numbers", "request_rejected"]);

export interface EventsSince {
  readonly events: readonly OperatorEvent[];
  /** False when some that followed are no longer known. */
  readonly isComplete: boolean;
}

type Watcher = (event: OperatorEvent) => void;

/** Keeps the last events for the event stream; subscribe its `take` to the hub. */
export class RecentEvents {
  /** Identifies this process: the one before counted its events from one, too. */
  readonly life = randomBytes(6).toString("hex");
  readonly #watchers = new Set<Watcher>();
  /** Oldest first. The newest have consecutive ids. */
  #kept: readonly OperatorEvent[] = [];
  readonly #suppressor = new EventSuppressor(SUPPRESSED, (event) => this.#add(event));

  /** For `EventHub.subscribe`. Debug events are left out. */
  readonly take: EventListener = (event) => {
    if (event.level !== "debug") this.#suppressor.take(event);
  };

  /** Returns what followed the event `id`. A gap is no error: the newest events are always there. */
  since(id: number): EventsSince {
    const isOurs = id <= this.#lastId;
    const isComplete = isOurs && id >= this.#lastId - RECENT_EVENT_COUNT;
    return { events: isOurs ? this.#kept.filter((event) => event.id > id) : this.#kept, isComplete };
  }

  /** Returns all that are kept, oldest first. */
  all(): readonly OperatorEvent[] {
    return this.#kept;
  }

  /** Passes each new event to the watcher, which must not throw or wait. Returns a function that ends that. */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** Emits pending sums, and ends the timer. */
  close(): void {
    this.#suppressor.close();
  }

  get #lastId(): number {
    return this.#kept.at(-1)?.id ?? 0;
  }

  #add({ level, event, fields }: CoordinatorEvent): void {
    const { namespace, code } = fields as Readonly<Record<string, unknown>>;
    const numbered: OperatorEvent = {
      id: this.#lastId + 1,
      atMs: Date.now(),
      level,
      event,
      namespace: typeof namespace === "string" ? namespace : null,
      code: isErrorCode(code) ? code : null,
      fields: Object.fromEntries(Object.entries(fields).filter(([name]) => !HIDDEN_FIELDS.has(name))),
    };
    this.#kept = keptOf([...this.#kept, numbered]);
    for (const watcher of this.#watchers) watcher(numbered);
  }
}

/** Returns the newest events, and older ones in groups with bounds of their own: a flood of one event pushes out no other. */
function keptOf(events: readonly OperatorEvent[]): readonly OperatorEvent[] {
  const lastId = events.at(-1)?.id ?? 0;
  const counts = new Map<string, number>();
  const newestFirst = events.toReversed().filter(({ id, event }) => {
    const [group, countMax] = groupOf(event);
    const count = (counts.get(group) ?? 0) + 1;
    counts.set(group, count);
    return id > lastId - RECENT_EVENT_COUNT || count <= countMax;
  });
  return newestFirst.toReversed();
}

function groupOf(event: string): readonly [group: string, countMax: number] {
  if (NOT_KEPT.has(event) || isSum(event)) return ["", 0];
  return CALLER_EVENTS.has(event) ? [event, CALLER_EVENT_COUNT] : ["notable", NOTABLE_EVENT_COUNT];
}
