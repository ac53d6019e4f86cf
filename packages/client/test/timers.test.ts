/** Timers that are not Node's own: faked by an importer's test, or those of a page, which are numbers. */
import { execFile } from "node:child_process";
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { expect, onTestFinished, test, vi } from "vitest";
import { createClient } from "../src/index.js";
import { proofFor } from "./scripted-source.js";

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
