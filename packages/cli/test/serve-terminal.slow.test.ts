/** What `serve` shows on a terminal, and where it gives way to the log. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { expect, test } from "vitest";
import { callnumber, folderForTest, startOnTerminal } from "../../../test/processes/command.js";
import { newStoreId } from "../../coordinator/src/guard/store-id.js";
import { thisMachine } from "../../coordinator/src/stores/sqlite/machine.js";
import { SqliteStore } from "../../coordinator/src/stores/sqlite/store.js";

const HOUR_MS = 3_600_000;

/** An embedded store with namespace main that was written `idleMs` ago. */
async function idleStore(path: string, idleMs: number): Promise<void> {
  const now = () => Date.now() - idleMs;
  // Its clock is behind, and no clock leapt.
  const { clockOffsetMs } = thisMachine();
  const store = new SqliteStore({ path, create: true, now, machine: { clockOffsetMs } });
  try {
    await store.step("main", {
      step: "init",
      storeId: newStoreId({ firstRun: 1, initializedAtMs: now(), rate: 2 }),
      nonce: randomBytes(12).toString("base64url"),
      isSilenceAccepted: false,
      nodeCount: 1,
      receiptKey: randomBytes(32).toString("hex"),
    });
  } finally {
    await store.close();
  }
}

async function untilShown(output: () => { stdout: string }, pattern: RegExp): Promise<string> {
  for (;;) {
    const [found] = pattern.exec(output().stdout) ?? [];
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test("a store that was idle recovers with one line on the terminal, and raises no alarm", async () => {
  const folder = await folderForTest();
  const path = join(folder, "store.db");
  await idleStore(path, 2 * HOUR_MS);
  const checkpoint = ["--checkpoint-dir", join(folder, "checkpoint")];
  const serving = startOnTerminal(120, "serve", "--port", "0", "--store", `sqlite:${path}`, ...checkpoint);
  const line = await untilShown(serving.output, /^.*skipped.*$/m);
  expect(line.trim()).toMatch(/^Idle for 2 h: skipped [\d,]+ runs, leasing in \d s$/);
  const [, url] = /listening on (http:\S+?),/.exec(serving.output().stdout) ?? [];
  const to = ["--coordinator", url as string];
  expect((await callnumber(["next", "-n", "3", ...to])).code).toBe(0);
  const status = await callnumber(["status", ...to]);
  expect(status.stdout).toMatch(/^ {2}last hour +1 run, /m);
  expect(status.stdout).toMatch(/^ {2}last recovery +Idle for 2 h: skipped [\d,]+ runs \(20/m);
  expect(status.stdout).toMatch(/^ {2}alarms +none$/m);
  expect(await callnumber(["status", "--check", ...to])).toMatchObject({ code: 0 });
  serving.typeCtrlC();
  await serving.ended();
  expect(serving.output().stdout).not.toMatch(/\{"|[Ww]arning|alarm/);
});
