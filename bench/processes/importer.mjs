/**
 * An importer that makes call numbers by the thousand: `importer.mjs COORDINATOR NAMESPACE MS PACE WARM-UP`, the pace in numbers a second or
 * Infinity, the warm-up in numbers. Tells its parent when it is warm, begins when told to, and tells at the end what it made and how long each lease took.
 */
import { once } from "node:events";
import process from "node:process";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@callnumber/client";

const TAKEN_AT_ONCE = 1_000;

const [coordinator, namespace, ms, pace, warmUpCount] = process.argv.slice(2);
process.once("disconnect", () => process.exit(1));

let leasesUs = [];
const client = createClient({
  coordinator,
  namespace,
  holder: { name: "bench" },
  // A machine that is busy with others is slow, and no reason to end: what a lease took is in the table.
  requestTimeoutMs: 60_000,
  waitTimeoutMs: 600_000,
  async fetch(url, options) {
    const startedAtMs = performance.now();
    const answer = await fetch(url, options);
    if (url.endsWith("/leases")) leasesUs.push((performance.now() - startedAtMs) * 1_000);
    return answer;
  },
});
for (let made = 0; made < Number(warmUpCount); made += TAKEN_AT_ONCE) await client.take(TAKEN_AT_ONCE);
process.send("ready");
await once(process, "message");

leasesUs = [];
const startedAtMs = performance.now();
const endMs = startedAtMs + Number(ms);
let made = 0;
while (performance.now() < endMs) {
  made += (await client.take(TAKEN_AT_ONCE)).length;
  const dueMs = startedAtMs + (made * 1_000) / Number(pace);
  // Without a pace too the rest of the process has its turn, as in an importer that puts the numbers somewhere.
  if (dueMs > performance.now()) await sleep(dueMs - performance.now());
  else await setImmediate();
}
const perSecond = (made * 1_000) / (performance.now() - startedAtMs);
process.send({ perSecond, leasesUs }, () => process.exit(0));
