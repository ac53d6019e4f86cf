/** Timers that are not Node's own: faked by an importer's test, or those of a page, which are numbers. And timers that come late. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { expect, onTestFinished, test, vi } from "vitest";
import { createClient } from "../src/index.js";
import { proofFor, ScriptedSource } from "./scripted-source.js";

test("next() goes on when an importer's test fakes all timers", async () => {
  let mark = 0;
  const source = {
    async lease(namespace: string, { runCount, nonce }: { runCount: number; nonce: string }) {
      const firstRun = mark + 1;
      mark += runCount;
      // The refills take long enough for the client to let the event loop turn.
      if (mark > runCount) for (let turns = 0; turns < 3; turns++) await turn();
      return { namespace, storeId: "s", version: 0, firstRun, runCount, leasedAtMs: 1, nonce, proof: proofFor(mark) };
    },
    async report() {},
  };
  const client = createClient({ source, holder: { name: "test" }, maxRunsPerLease: 64 });
  await client.ready(16 * SEQUENCE_COUNT);
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const made = new Set<string>();
  const all = (async () => {
    while (made.size < 40 * SEQUENCE_COUNT) made.add(await client.next());
  })();
  // A hang ends the test in a moment, not at its time limit.
  let turns = 0;
  while (made.size < 40 * SEQUENCE_COUNT && turns++ < 1_000) await turn();
  expect(made.size).toBe(40 * SEQUENCE_COUNT);
  await all;
  await client.close();
});

test("the client works where the timers are numbers", async () => {
  const program = `
    const { clearTimeout, setTimeout } = globalThis;
    const timers = [];
    globalThis.setTimeout = (...parameters) => timers.push(setTimeout(...parameters));
    globalThis.clearTimeout = (timer) => clearTimeout(timers[timer - 1]);
    const { createClient } = await import("@callnumber/client");
    let isAway = true;
    const source = {
      async lease(namespace, { runCount, nonce }) {
        if (isAway) { isAway = false; throw Object.assign(new Error("away"), { code: "store_unavailable" }); }
        return { namespace, storeId: "s", version: 0, firstRun: 1, runCount, leasedAtMs: 1, nonce, proof: "r".repeat(43) };
      },
      async report() {},
    };
    const client = createClient({ source, holder: { name: "x" } });
    console.log(await client.next());
    await client.close();
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], {
    cwd: import.meta.dirname,
  });
  expect(stdout).toMatch(/^\w{8}\n$/);
});

/** Responds to each message at once, and says so in shared memory, for which a process can wait without a turn of its event loop. */
const RESPONDING = `
  const { parentPort, workerData } = require("node:worker_threads");
  parentPort.on("message", () => {
    parentPort.postMessage("a response");
    Atomics.store(workerData, 0, 1);
    Atomics.notify(workerData, 0);
  });
`;

test.each([{ requestTimeoutMs: 200 }, { waitTimeoutMs: 200 }])(
  "a response that has arrived is read before %o ends, in a process that had no time for it",
  async (limit) => {
    const hasResponded = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(RESPONDING, { eval: true, workerData: hasResponded });
    onTestFinished(() => void worker.terminate());
    await once(worker, "online");
    let isRequested = () => {};
    const requested = new Promise<void>((resolve) => (isRequested = resolve));
    const source = new ScriptedSource().always(async (lease) => {
      const response = once(worker, "message");
      worker.postMessage("a request");
      isRequested();
      await response;
      return lease;
    });
    const client = createClient({ source, holder: { name: "test" }, ...limit });
    const beganMs = performance.now();
    const number = client.next();
    await requested;
    Atomics.wait(hasResponded, 0, 0, 60_000);
    while (performance.now() - beganMs < 220) {}
    expect(await number).toHaveLength(8);
    expect(source.requests).toHaveLength(1);
    await client.close();
  },
);
