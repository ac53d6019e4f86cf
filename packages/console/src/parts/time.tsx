/** Moments: how long ago or for how long, with the date as a tooltip. */
import { useEffect, useState } from "preact/hooks";
import { formatAge, formatDateTime, formatDuration } from "../format.js";

const EVERY_MS = 1_000;

/** The time, once a second. */
export function useNow(): number {
  const [nowMs, setNowMs] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return nowMs;
}

export function Duration({ sinceMs }: { sinceMs: number }) {
  const nowMs = useNow();
  return (
    <time dateTime={new Date(sinceMs).toISOString()} title={`since ${formatDateTime(sinceMs)}`}>
      {formatDuration(nowMs - sinceMs)}
    </time>
  );
}

export function Instant({ atMs, isFull = false }: { atMs: number; isFull?: boolean }) {
  const nowMs = useNow();
  const date = formatDateTime(atMs);
  return (
    <time dateTime={new Date(atMs).toISOString()} title={date}>
      {isFull ? `${date}, ${formatAge(atMs, nowMs)}` : formatAge(atMs, nowMs)}
    </time>
  );
}
