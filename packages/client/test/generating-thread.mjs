/** A thread with a client of its own. Its source leases from a counter that a test shares among threads. */
import { parentPort, workerData } from "node:worker_threads";
import { createClient } from "@callnumber/client";

const { counter, count } = workerData;
const source = {
  async lease(namespace, { runCount, nonce }) {
    const firstRun = Atomics.add(counter, 0, runCount) + 1;
    const proof = "r".repeat(43);
    return { namespace, storeId: "store-1", version: 0, firstRun, runCount, leasedAtMs: 1, nonce, proof };
  },
  async report() {},
};

const client = createClient({ source, holder: { name: "thread" } });
const made = [];
while (made.length < count) {
  made.push(await client.next(), client.nextSync());
  made.push(...(await client.take(Math.min(997, count - made.length + 1))));
}
await client.close();
parentPort.postMessage(made);
