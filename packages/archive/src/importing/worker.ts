/**
 * A process that imports: one client, one connection to the archive, one range after the other as the parent sends them.
 * Ends when the parent sends `stop`, and also when the parent is gone. Started by worker-pool.ts.
 */
import { type Client, type ClientError, createClient } from "@callnumber/client";
import { Archive, type StoredNow } from "../archive/archive.js";
import { errorDetails } from "../errors.js";
import { appendLines, entryLine } from "../numbers/numbers-file.js";
import type { Range } from "../sources/source.js";
import { clientOptions } from "./client-options.js";
import { type NumberSource, RangeImporter } from "./range-importer.js";
import { type FromWorker, START_VARIABLE, type ToWorker, type WorkerStart } from "./worker-pool.js";

/** Opened with the first range, so that a failure is that of a range. */
let opened: { readonly archive: Archive; readonly client: Client; readonly importer: RangeImporter } | undefined;
let currentRange: Promise<void> = Promise.resolve();
let isStopping = false;
let isTaking = false;
/** Why no run came since the last one. */
let failure: ClientError | undefined;
let isReported = false;

function open({ workerNumber, settings }: WorkerStart) {
  const { namespace, list, numbersFile } = settings;
  const archive = new Archive(settings.archive, settings);
  archive.assertOrigin({ namespace });
  const client = createClient({
    ...clientOptions(settings, archive.origin?.storeId, workerNumber),
    hooks: {
      onLease: ({ runCount }) => {
        failure = undefined;
        isReported = false;
        send({ type: "leased", runCount });
      },
      onRetry: ({ error }) => {
        failure = error;
        reportWaiting();
      },
    },
  });
  const numbers: NumberSource = {
    async take(count) {
      isTaking = true;
      setImmediate(reportWaiting);
      try {
        for (;;) {
          try {
            return await client.take(count);
          } catch (error) {
            // The client's time was over: with the code of its last failure, or with its own if no request came to an end.
            const { code } = error as ClientError;
            const isOver = code === "wait_timeout" || code === failure?.code;
            if (!isOver || !settings.waitsForever || isStopping) throw error;
          }
        }
      } finally {
        isTaking = false;
      }
    },
    get storeId() {
      return client.storeId;
    },
  };
  const beforeCommit = (stored: readonly StoredNow[]) => {
    const fresh = stored.filter(({ isRestored }) => !isRestored);
    const lines = fresh.map(({ callNumber, message }) => entryLine(callNumber, message));
    if (numbersFile === undefined || lines.length === 0 || archive.origin === undefined) return;
    appendLines(numbersFile, archive.origin, lines);
  };
  return { archive, client, importer: new RangeImporter(archive, numbers, { namespace, list, beforeCommit }) };
}

/** Once for each outage. A client that only prefetches waits for nothing: it may have thousands of numbers left. */
function reportWaiting(): void {
  if (!isTaking || isReported || failure === undefined) return;
  isReported = true;
  send({ type: "waiting", reason: `${failure.code}: ${failure.message}` });
}

async function importRange(range: Range): Promise<void> {
  try {
    opened ??= open(JSON.parse(process.env[START_VARIABLE] as string) as WorkerStart);
    await send({ type: "imported", result: await opened.importer.import(range) });
  } catch (error) {
    await send({ type: "failed", error: errorDetails(error) });
  }
}

/** Lets the current transaction end, and gives up a range that still waits for numbers. */
async function stop(): Promise<void> {
  if (isStopping) return;
  isStopping = true;
  await opened?.client.close();
  await currentRange;
  opened?.archive.close();
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
  else currentRange = importRange(message.range);
});
