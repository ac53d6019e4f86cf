/** What a client has to know of its Node process: startup snapshots, which copy it, timers, and turns of the event loop. */
import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import { startupSnapshot } from "node:v8";

/**
 * Node's own, as they are at the import. The global ones may be faked by an importer's test, where a wait would have no end, or be those of a
 * page (jsdom, Electron), whose timers are numbers.
 */
export const timers = { clearTimeout, setImmediate, setTimeout };

/**
 * Calls `callback` just before this process is written into a startup snapshot, if it ever is.
 *
 * A client belongs to the process that created it: a copy of that process has the same run, and would make the same numbers again.
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

/** Some ten milliseconds at full speed: well below what half of the largest lease lasts; a turn costs a thousandth of that. */
const RUNS_WITHOUT_TURN_MAX = 8;

/**
 * Lets the event loop turn now and then. A caller that only awaits buffered numbers would block it, and with it the response to a refill, until
 * the last run is used up and every caller waits.
 */
export class EventLoop {
  #runsWithoutTurn = 0;

  get isTurnDue(): boolean {
    return this.#runsWithoutTurn >= RUNS_WITHOUT_TURN_MAX;
  }

  runStarted(): void {
    this.#runsWithoutTurn++;
  }

  async turn(): Promise<void> {
    await new Promise((resolve) => timers.setImmediate(resolve));
    this.hasTurned();
  }

  /** To be called after a wait for the network, too: the loop has turned then. */
  hasTurned(): void {
    this.#runsWithoutTurn = 0;
  }
}
