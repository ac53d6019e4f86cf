/**
 * Everything that happens in a coordinator, told once: a log that passes each event on to whoever listens (metrics, the event
 * stream), and then to the log itself. The names and fields of events are those of docs/monitoring.md.
 */
import type { Log } from "../log.js";
import { withTraceFields } from "./trace-context.js";

export type EventLevel = keyof Log;

export interface CoordinatorEvent {
  readonly level: EventLevel;
  readonly event: string;
  readonly fields: object;
}

/** Must not throw, and must not wait: a lease stands behind it. */
export type EventListener = (event: CoordinatorEvent) => void;

export class EventHub implements Log {
  readonly #log: Log;
  readonly #listeners = new Set<EventListener>();

  /** @param log gets every event, too; its own level decides what it writes. */
  constructor(log: Log) {
    this.#log = log;
  }

  /** From now on the listener is told every event, whatever the level of the log. Answers what ends that. */
  subscribe(listener: EventListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  debug(fields: object, event: string): void {
    this.#tell("debug", fields, event);
  }

  info(fields: object, event: string): void {
    this.#tell("info", fields, event);
  }

  warn(fields: object, event: string): void {
    this.#tell("warn", fields, event);
  }

  error(fields: object, event: string): void {
    this.#tell("error", fields, event);
  }

  #tell(level: EventLevel, fields: object, event: string): void {
    const told = withTraceFields(fields);
    for (const listener of this.#listeners) listener({ level, event, fields: told });
    this.#log[level](told, event);
  }
}
