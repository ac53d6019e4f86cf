/**
 * The last events of this coordinator, for whoever watches it: each with a number, what nobody outside may read left out, and a
 * flood of leases, or of what callers cause, told in sums. Knows nothing of how they are sent.
 */
import { randomBytes } from "node:crypto";
import type { OperatorEvent } from "@callnumber/protocol/operator";
import { isErrorCode } from "@callnumber/protocol/wire";
import { CALLER_EVENTS, type CoordinatorEvent, type EventListener, EventSuppressor, isSum } from "./events.js";

/** So many events can be asked for again. */
export const RECENT_EVENT_COUNT = 500;
/** Beside them those that leases must not push out: what became of the guard is asked for days later. */
export const NOTABLE_EVENT_COUNT = 200;
/** And of each event that callers cause, but for refusals: a flood of one pushes out neither what the guard did nor any other. */
export const CALLER_EVENT_COUNT = 50;

/** A nonce lets its holder report; an error bears a stack. Namespace and code stand beside the fields. */
const HIDDEN_FIELDS: ReadonlySet<string> = new Set(["nonce", "receipt", "err", "namespace", "code"]);

/** Leases too: a stream of them is for the log and the ledger. */
const SUPPRESSED: ReadonlySet<string> = new Set([...CALLER_EVENTS, "lease"]);

/** What stands beside the last events is kept in rooms, each bounded by itself. */
const NOTABLE_ROOM = "";

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
  readonly #suppressor = new EventSuppressor(SUPPRESSED, (event) => this.#tell(event));

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** For `EventHub.subscribe`. Debugging is left out. */
  readonly take: EventListener = (event) => {
    if (event.level !== "debug") this.#suppressor.take(event);
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
    this.#suppressor.close();
  }

  #tell({ level, event, fields }: CoordinatorEvent): void {
    const { namespace, code } = fields as Readonly<Record<string, unknown>>;
    const numbered: OperatorEvent = {
      id: ++this.#lastId,
      atMs: this.#now(),
      level,
      event,
      namespace: typeof namespace === "string" ? namespace : null,
      code: isErrorCode(code) ? code : null,
      fields: shownFields(fields),
    };
    this.#recent = kept(this.#recent, numbered, RECENT_EVENT_COUNT);
    const room = roomOf(event);
    if (room !== undefined) {
      const countMax = room === NOTABLE_ROOM ? NOTABLE_EVENT_COUNT : CALLER_EVENT_COUNT;
      this.#rooms.set(room, kept(this.#rooms.get(room) ?? [], numbered, countMax));
    }
    for (const watcher of this.#watchers) watcher(numbered);
  }
}

/** None for leases, which stand in the ledger, for refusals, which come again as long as they are right, and for sums. */
function roomOf(event: string): string | undefined {
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
