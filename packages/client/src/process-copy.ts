/**
 * A client belongs to the process that made it: a copy of that process has the same run in hand, and would make the same
 * numbers again. This file knows how a running Node can be copied.
 *
 * - A V8 startup snapshot with a client inside can be started as often as one likes. `beforeSnapshot` is told while it is taken,
 *   so what is copied is a client that has stopped. The pid alone would not do: in two containers both processes can have pid 1.
 * - A thread of `worker_threads` is no copy: it loads modules of its own, and a client can't be sent to it.
 * - fork(2) in an addon leaves no copy on Linux: Node keeps its heap out of the child, which dies at its first step.
 * - A machine or container that was frozen and is resumed twice can't be noticed from inside.
 */
import { startupSnapshot } from "node:v8";
import { ClientError } from "./client-error.js";

/** Calls back just before this process is written into a startup snapshot, if it ever is. */
export function beforeSnapshot(callback: () => void): void {
  if (startupSnapshot.isBuildingSnapshot()) startupSnapshot.addSerializeCallback(callback);
}

export function copiedError(): ClientError {
  return new ClientError(
    "copied_process",
    "this client came from another process, of which this one is a copy: both hold the same run. " +
      "Create the client after the start, in the process that uses it",
  );
}
