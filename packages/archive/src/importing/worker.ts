/**
 * A process that imports one range after the other, as the parent sends them. Ends when the parent sends `stop`, and also when the parent is
 * gone. Started by worker-pool.ts.
 */
import { errorDetails } from "../errors.js";
import type { Range } from "../sources/source.js";
import { RangeWorker } from "./range-worker.js";
import { type FromWorker, START_VARIABLE, type ToWorker, type WorkerStart } from "./worker-pool.js";

const { workerNumber, settings } = JSON.parse(process.env[START_VARIABLE] as string) as WorkerStart;
const worker = new RangeWorker(settings, workerNumber, {
  onLeased: (runCount) => void send({ type: "leased", runCount }),
  onNote: (text) => void send({ type: "note", text }),
});
let sent: Promise<void> = Promise.resolve();

async function importRange(range: Range): Promise<void> {
  try {
    await send({ type: "imported", result: await worker.import(range) });
  } catch (error) {
    await send({ type: "failed", error: errorDetails(error) });
  }
}

async function stop(): Promise<void> {
  await worker.close();
  await sent;
  if (process.connected) process.disconnect();
}

/** Resolves when the message is sent, or can't be: the parent may be gone. What is stored stays either way. */
function send(message: FromWorker): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => resolve());
    else resolve();
  });
}

// Ctrl-C reaches every process of the terminal. The parent decides what it means.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});
process.on("disconnect", stop);
process.on("message", (message: ToWorker) => {
  if (message.type === "stop") void stop();
  else sent = importRange(message.range);
});
