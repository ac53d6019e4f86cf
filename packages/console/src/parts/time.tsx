/** Moments: how long ago, or for how long, with the date for whoever looks closer. */
import { ago, dateAndTime, duration } from "../format.js";
import { useNow } from "./clock.js";

/** How long something has lasted. */
export function Lasting({ sinceMs }: { sinceMs: number }) {
  const nowMs = useNow();
  return (
    <time dateTime={new Date(sinceMs).toISOString()} title={`since ${dateAndTime(sinceMs)}`}>
      {duration(nowMs - sinceMs)}
    </time>
  );
}

export function Instant({ atMs, isFull = false }: { atMs: number; isFull?: boolean }) {
  const nowMs = useNow();
  const date = dateAndTime(atMs);
  return (
    <time dateTime={new Date(atMs).toISOString()} title={date}>
      {isFull ? `${date}, ${ago(atMs, nowMs)}` : ago(atMs, nowMs)}
    </time>
  );
}
