/** The time, for components that show an age: once a second, for the whole page together. */
import { useEffect, useState } from "preact/hooks";

const EVERY_MS = 1_000;
const watchers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

export function useNow(): number {
  const [nowMs, setNowMs] = useState(Date.now());
  useEffect(() => {
    const watcher = () => setNowMs(Date.now());
    watchers.add(watcher);
    timer ??= setInterval(() => {
      for (const watcher of watchers) watcher();
    }, EVERY_MS);
    return () => {
      watchers.delete(watcher);
      if (watchers.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  }, []);
  return nowMs;
}
