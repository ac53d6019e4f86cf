// One importer of the story: takes call numbers at a walk and writes each down, until it is told to stop; or, when it is to
// crash, ends in the middle of its work, again and again, as its supervisor starts it anew.
import { appendFileSync } from "node:fs";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "@callnumber/client";

const { coordinator, namespace, name, labels, numbersFile, crashesAfter } = JSON.parse(process.argv[2]);
const NUMBERS_AT_ONCE = 50;
const PAUSE_MS = 100;

const stopping = new AbortController();
process.on("SIGTERM", () => stopping.abort());
const client = createClient({ coordinator, namespace, holder: { name, labels }, waitTimeoutMs: 3_600_000 });
for (let count = 0; !stopping.signal.aborted; count += NUMBERS_AT_ONCE) {
  const numbers = await client.take(NUMBERS_AT_ONCE);
  appendFileSync(numbersFile, `${numbers.join("\n")}\n`);
  if (count + NUMBERS_AT_ONCE >= crashesAfter) process.kill(process.pid, "SIGKILL");
  await delay(PAUSE_MS);
}
await client.close();
