/** Alarms about this process, by the events that raise and clear them. They concern all namespaces, and each shows them. */
import type { Alarm } from "@callnumber/protocol/schemas";
import type { EventListener } from "../events/events.js";

const RAISED = {
  connections_full: { name: "connections_full", severity: "warning" },
  tokens_reload_failed: { name: "tokens_file_unreadable", severity: "warning" },
} as const;
const CLEARED = { connections_free: "connections_full", tokens_reloaded: "tokens_file_unreadable" } as const;

export type ProcessAlarmName = (typeof RAISED)[keyof typeof RAISED]["name"];

/** Raises and clears the alarms about this process; subscribe its `take` to the hub. */
export class ProcessAlarms {
  readonly #raised = new Map<ProcessAlarmName, Alarm>();

  /** For `EventHub.subscribe`. */
  readonly take: EventListener = ({ event, fields }) => {
    const raised = RAISED[event as keyof typeof RAISED];
    const cleared = CLEARED[event as keyof typeof CLEARED];
    if (cleared !== undefined) this.#raised.delete(cleared);
    if (raised === undefined) return;
    const { reason } = fields as { readonly reason: string };
    this.#raised.set(raised.name, { ...raised, explanation: reason });
  };

  /** Returns the alarms that are raised now. */
  all(): readonly Alarm[] {
    return [...this.#raised.values()];
  }
}
