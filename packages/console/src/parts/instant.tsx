/** A moment: how long ago, with the date for whoever looks closer. */
import { ago, dateAndTime } from "../words.js";
import { useNow } from "./clock.js";

export function Instant({ atMs, isFull = false }: { atMs: number; isFull?: boolean }) {
  const nowMs = useNow();
  const date = dateAndTime(atMs);
  return (
    <time dateTime={new Date(atMs).toISOString()} title={date}>
      {isFull ? `${date}, ${ago(atMs, nowMs)}` : ago(atMs, nowMs)}
    </time>
  );
}
