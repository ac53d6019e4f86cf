/**
 * An importer that does nothing but make call numbers, by the thousand: `importer.mjs COORDINATOR NAMESPACE MS`. Tells its parent when it is
 * warm, begins when told to, and tells at the end what it made and how long each lease took.
 */
import { once } from "node:events";
import process from "node:process";
import { setImmediate } from "node:timers/promises";
import { createClient } from "@callnumber/client";

const TAKEN_AT_ONCE = 1_000;
const WARM_UP_COUNT = 1_000_000;

const [coordinator, namespace, ms] = process.argv.slice(2);
process.once("disconnect", () => process.exit(1));

let leasesUs = [];
const client = createClient({
  coordinator,
  namespace,
  holder: { name: "bench" },
  async fetch(url, options) {
    const startedAtMs = performance.now();
    const answer = await fetch(url, options);
    if (url.endsWith("/leases")) leasesUs.push((performance.now() - startedAtMs) * 1_000);
    return answer;
  },
});
for (let made = 0; made < WARM_UP_COUNT; ) made += await makeSome();
process.send("ready");
await once(process, "message");

leasesUs = [];
const startedAtMs = performance.now();
const endMs = startedAtMs + Number(ms);
let made = 0;
while (performance.now() < endMs) made += await makeSome();
const perSecond = (made * 1_000) / (performance.now() - startedAtMs);
process.send({ perSecond, leasesUs }, () => process.exit(0));

/** Lets the rest of the process have its turn, as an importer does that puts the numbers somewhere. */
async function makeSome() {
  const { length } = await client.take(TAKEN_AT_ONCE);
  await setImmediate();
  return length;
}
