/**
 * A coordinator in a process of its own that leases as fast as Redis lets it, and tells its memory at each tenth of the way, when
 * nothing is under way and all garbage is collected. Parameters: the store's URL, a namespace, how many leases.
 */
import { randomBytes } from "node:crypto";
import { Coordinator, openStore, parseStoreUrl } from "@callnumber/coordinator";

const CALLER_COUNT = 256;
const HOLDER_COUNT = 500;
const TOLD_COUNT = 10;
/** One lease of so many is reported on. */
const LEASES_PER_REPORT = 10;

const [url, namespace, leaseCount] = process.argv.slice(2);
const { store } = await openStore(parseStoreUrl(url), { create: false });
const coordinator = new Coordinator({ store, name: "bench" });
const holders = Array.from({ length: HOLDER_COUNT }, (_, index) => {
  return {
    name: `importer-${index}`,
    host: `mail-${index}.example.org`,
    pid: 4_000 + index,
    labels: { step: "import" },
  };
});

let leased = 0;
tellMemory();
for (let told = 1; told <= TOLD_COUNT; told++) {
  const until = Math.round((leaseCount * told) / TOLD_COUNT);
  await Promise.all(Array.from({ length: CALLER_COUNT }, () => leaseUntil(until)));
  tellMemory();
}
await store.close();

async function leaseUntil(until) {
  while (leased < until) {
    const index = leased++;
    const nonce = randomBytes(12).toString("base64url");
    const holder = { ...holders[index % HOLDER_COUNT] };
    const request = { runCount: 1, nonce, holder, lastRun: null, receipt: null, sentAtMs: Date.now() };
    const { firstRun } = await coordinator.lease(namespace, request);
    if (index % LEASES_PER_REPORT > 0) continue;
    await coordinator.report(namespace, firstRun, { nonce, lastSequence: 16_383, state: "exhausted" });
  }
}

function tellMemory() {
  // Twice: what the first one only marks, the second one frees.
  globalThis.gc();
  globalThis.gc();
  const { rss: rssBytes, heapUsed: heapBytes, external: externalBytes } = process.memoryUsage();
  console.log(JSON.stringify({ leased, rssBytes, heapBytes, externalBytes }));
}
