/**
 * An importer as a process of its own, with the real client. Every call number that it makes goes to its standard output, eight
 * characters after the other; what happens to it goes to the file descriptor 3 as lines of JSON. It never gives up: when the client reports
 * why no run comes, it reports that and tries again, as a person would start it again. It stops when a line comes on its standard input. Its
 * settings come as JSON in the first parameter. generating-process.py is the same in Python.
 */
import { once } from "node:events";
import { writeSync } from "node:fs";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "@callnumber/client";

const { takeCount, pauseMs, ...options } = JSON.parse(process.argv[2]);

const stop = new AbortController();
process.stdin.once("data", () => stop.abort()).once("end", () => process.exit(1));

const report = (event, fields) => writeSync(3, `${JSON.stringify({ event, atMs: Date.now(), ...fields })}\n`);
const reportError = (event, { code, message }) => report(event, { code, message });

const client = createClient({
  ...options,
  hooks: {
    onLease: ({ storeId, version, firstRun, runCount }) => report("lease", { storeId, version, firstRun, runCount }),
    onRetry: ({ error }) => reportError("away", error),
    onStopped: (error) => reportError("alarm", error),
  },
});

while (!stop.signal.aborted) {
  try {
    const callNumbers = await client.take(takeCount);
    const hasRoom = process.stdout.write(Buffer.from(callNumbers.join(""), "latin1"));
    if (!hasRoom) await once(process.stdout, "drain");
    await delay(pauseMs);
  } catch (error) {
    if (error.code === undefined) throw error;
    reportError("refused", error);
    await delay(100);
  }
}
await client.close();
process.stdout.end(() => process.exit(0));
