/**
 * A process for tests to kill or to starve: opens an embedded store and leases, `atOnce` at a time, until it ends.
 * Writes a line for each lease that was answered, and `failed <code>` when the store fails.
 * Arguments: path of the store, leases at once.
 */
import { writeSync } from "node:fs";
import { Coordinator, openStore } from "@callnumber/coordinator";

const [path, atOnce] = process.argv.slice(2);
const { store } = await openStore({ kind: "sqlite", path }, { create: false });
const coordinator = new Coordinator({ store, name: "leasing-process" });
const holder = { name: "test", host: "h", pid: process.pid, labels: {} };
writeSync(1, "ready\n");

for (;;) {
  const leases = Array.from({ length: Number(atOnce) }, async () => {
    const lease = await coordinator.lease("main", { runCount: 1, nonce: "nonce-0123456789", holder, lastRun: null });
    writeSync(1, `${lease.firstRun}\n`);
  });
  const outcomes = await Promise.allSettled(leases);
  const failed = outcomes.find(({ status }) => status === "rejected");
  if (failed) {
    writeSync(1, `failed ${failed.reason.code}\n`);
    // Once more: a store that failed must go on refusing.
    const again = await coordinator
      .lease("main", { runCount: 1, nonce: "nonce-0123456789", holder, lastRun: null })
      .catch((error) => error);
    writeSync(1, `again ${again.code ?? again.firstRun}\n`);
    process.exit(0);
  }
}
