/**
 * An importer with the real client. The first parameter is JSON: `coordinator`, `name`, and `crashes`: then it ends right after its first
 * number, as a program with a fault does. Else it uses up one run after the other, and tells its parent of each lease and of each refusal.
 */
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "@callnumber/client";

const { coordinator, name, crashes } = JSON.parse(process.argv[2]);
const RUN_NUMBERS = 16_384;
const PAUSE_MS = 250;

process.once("disconnect", () => process.exit(0));
const client = createClient({
  coordinator,
  holder: { name },
  leaseRunCountMax: 1,
  waitTimeoutMs: 3_600_000,
  hooks: {
    onLease: () => process.send?.("lease"),
    onCoordinatorAway: ({ error }) => process.send?.(error.code),
  },
});
await client.next();
if (crashes) process.kill(process.pid, "SIGKILL");
for (;;) {
  await client.take(RUN_NUMBERS);
  await delay(PAUSE_MS);
}
