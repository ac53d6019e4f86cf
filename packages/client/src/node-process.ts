/** What a client has to know of its Node process: startup snapshots, which copy it, and timers. */
import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import { startupSnapshot } from "node:v8";

/**
 * Node's own, as they are at the import. The global ones may be faked by an importer's test, where a wait would have no end, or be those of a
 * page (jsdom, Electron), whose timers are numbers.
 */
export const timers = { clearTimeout, setImmediate, setTimeout };

/**
 * Calls `end` after `limitMs`. A process that had no time comes to its timers late, and before its sockets: it would give up what has arrived, or
 * what it has not even sent. So the end comes as much later as the timer was late, at most as long again, and after a turn that reads. Returns
 * a function that calls it off.
 */
export function limitTime(end: () => void, limitMs: number): () => void {
  let isOff = false;
  const dueMs = performance.now() + limitMs;
  const read = () => timers.setImmediate(() => isOff || end());
  let timer = timers.setTimeout(() => {
    const lateMs = performance.now() - dueMs;
    if (lateMs < 1) read();
    else timer = timers.setTimeout(read, Math.min(lateMs, limitMs));
  }, limitMs);
  return () => {
    isOff = true;
    timers.clearTimeout(timer);
  };
}

/**
 * Calls `callback` just before this process is written into a startup snapshot, if it ever is.
 *
 * A client belongs to the process that created it: a copy of that process has the same run, and would generate the same numbers again.
 * The ways in which a running Node process can be copied:
 *
 * - A V8 startup snapshot with a client inside can be started any number of times. `beforeSnapshot` is called while it is taken, so that the
 *   copies contain a client that has stopped. The pid alone would not do: in two containers both processes can have pid 1.
 * - A thread of `worker_threads` is no copy: it loads modules of its own, and a client can't be sent to it.
 * - fork(2) in an addon leaves no copy on Linux: Node keeps its heap out of the child, which dies at its first step.
 * - A machine or container that was frozen and is resumed twice can't be noticed from inside.
 */
export function beforeSnapshot(callback: () => void): void {
  if (startupSnapshot.isBuildingSnapshot()) startupSnapshot.addSerializeCallback(callback);
}
