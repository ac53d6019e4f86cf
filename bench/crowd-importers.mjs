/**
 * Importers of the crowd benchmark, many clients in one process. The first argument is JSON: `url`, `namespace`, `count`, `startMs` (they
 * start at random moments within it) and `endMs` (then they give up). Sends "ready", starts with the first message of its parent, and sends
 * how long each client waited for its number, in ms; a client without one is missing.
 */
import { once } from "node:events";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@callnumber/client";

const { url, namespace, count, startMs, endMs } = JSON.parse(process.argv[2]);

process.once("disconnect", () => process.exit(0));
process.send("ready");
await once(process, "message");
const startedAtMs = performance.now();
const waits = await Promise.all(Array.from({ length: count }, firstNumber));
process.send(waits.filter((waitMs) => waitMs !== undefined));

async function firstNumber() {
  await sleep(Math.random() * startMs);
  const beganAtMs = performance.now();
  const client = createClient({ coordinator: url, namespace, holder: { name: "crowd" } });
  for (;;) {
    const leftMs = startedAtMs + endMs - performance.now();
    if (leftMs <= 0) return undefined;
    const number = await Promise.race([client.next().catch(() => undefined), sleep(leftMs, undefined, { ref: false })]);
    if (number !== undefined) return performance.now() - beganAtMs;
    // A request goes on in the background, so the next call only waits for it.
    await sleep(1);
  }
}
