/**
 * Before each test file: a test that keeps its process busy for ever, or waits in a call that keeps the process, would hold up the whole run
 * without a word: no time limit of the runner is heard there. A thread beside it sees that, tells where the process stands, and ends it.
 */
import { Worker } from "node:worker_threads";
import { expect, inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    /** How long a process may make no turn. A safety net, and wide: it proves nothing. */
    stuckAfterSeconds?: number;
  }
}

const TURN_MS = 250;
const STUCK_AFTER_SECONDS = 240;

/** Test files that share a process share the thread. */
const shared = globalThis as { stuckWatch?: Worker };
shared.stuckWatch ??= startedWatch();
shared.stuckWatch.postMessage(expect.getState().testPath);

function startedWatch(): Worker {
  const turns = new SharedArrayBuffer(4);
  const counter = new Int32Array(turns);
  setInterval(() => void Atomics.add(counter, 0, 1), TURN_MS).unref();
  const watch = new Worker(new URL("./stuck-watch.mjs", import.meta.url), {
    execArgv: [],
    workerData: { turns, stuckAfterSeconds: inject("stuckAfterSeconds") ?? STUCK_AFTER_SECONDS },
  });
  watch.unref();
  return watch;
}
