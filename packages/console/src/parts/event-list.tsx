/** Recent events, newest first, one line each. */
import type { OperatorEvent } from "@callnumber/protocol/api";
import { useConnection, useEvents } from "../event-stream.js";
import { formatDateTime, formatNumber } from "../format.js";
import { eventLines } from "../format-event.js";
import { Instant } from "./time.js";

interface Properties {
  readonly namespace: string;
  readonly isShown: (event: OperatorEvent) => boolean;
  readonly countMax: number;
  /** Shown for an empty list while the stream is connected. */
  readonly whenEmpty: string;
  /** With dates, instead of ages. */
  readonly isDated?: boolean;
}

export function EventList({ namespace, isShown, countMax, whenEmpty, isDated = false }: Properties) {
  const lines = eventLines(useEvents(namespace).filter(isShown)).slice(0, countMax);
  const isConnected = useConnection().state === "connected";
  if (lines.length === 0) return <p class="quiet">{isConnected ? whenEmpty : "Not known while disconnected."}</p>;
  return (
    <ol class={isDated ? "events dated" : "events"}>
      {lines.map(({ event: { atMs, id, level }, sentence, count }) => (
        <li key={`${atMs} ${id}`} class={level}>
          {isDated ? (
            <time dateTime={new Date(atMs).toISOString()}>{formatDateTime(atMs)}</time>
          ) : (
            <Instant atMs={atMs} />
          )}
          <span>
            {sentence}
            {count > 1 && <small>{formatNumber(count)} times in a row</small>}
          </span>
        </li>
      ))}
    </ol>
  );
}
