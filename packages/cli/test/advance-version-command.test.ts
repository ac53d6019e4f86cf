/**
 * `callnumber advance-version` and `status`, run as an operator does, at the real end of a run space: with a running coordinator and
 * importers that generate numbers.
 * Guarantees: G12 (docs/guarantees.md).
 */
import { RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { expect, onTestFinished, test } from "vitest";
import { CallNumberCheck } from "../../../test/faults/call-number-check.js";
import { type GeneratingEvent, GeneratingProcess } from "../../../test/faults/generating-process.js";
import { callnumber, folderForTest, serve } from "../../../test/processes/command.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { done, embeddedStore, expectFailure, jsonOf } from "./commands-for-test.js";

const RUNS_LEFT = 12;
const RUNS_AFTERWARDS = 6;

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** What an importer process wrote and reported. */
function importerAt(coordinator: string, name: string, check: CallNumberCheck) {
  const events: GeneratingEvent[] = [];
  const importer = new GeneratingProcess(
    { coordinator, namespace: "main", holder: { name }, takeCount: 4_096, pauseMs: 1, spareRuns: 1 },
    { onWritten: check.reader("main", name), onEvent: (event) => void events.push(event) },
  );
  onTestFinished(() => importer.kill());
  const leases = () => events.flatMap((event) => (event.event === "lease" ? [event] : []));
  const has = (code: string) => events.some((event) => event.event === "refused" && event.code === code);
  return { importer, leases, has };
}

test("importers stop at the end of a run space, and continue in the next version without a repeated number", async () => {
  const store = sharedRedis().storeUrl;
  const checkpoint = ["--checkpoint-dir", await folderForTest()];
  await done("init", "--store", store, "--first-run", String(RUN_MAX - RUNS_LEFT + 1));
  const { url, output } = await serve(store, ...checkpoint);
  const check = new CallNumberCheck();
  const importers = ["one", "two"].map((name) => importerAt(url, name, check));
  await until(() => importers.every(({ has }) => has("run_space_exhausted")));

  const full = await done("status", "--coordinator", url);
  expect(full.stdout).toMatch(
    /version {12}0, .*stopped.*run_space_exhausted.*alarms {13}run_space_exhausted \(critical\)/s,
  );
  const advance = ["advance-version", "--store", store, ...checkpoint];
  const look = await done(...advance);
  expect(look.stdout).toMatch(/version 0 .*never leased from again: 0 runs.*version 1 .*begins at run 1.*no way back/s);
  expect(look.stdout).toContain("Nothing was changed");
  expect((await jsonOf("status", "--coordinator", url))["version"]).toBe(0);

  const typedAtOnce = await Promise.all([callnumber([...advance, "--apply"]), callnumber([...advance, "--apply"])]);
  expect(typedAtOnce.map(({ code }) => code).sort()).toEqual([0, 1]);
  await expectFailure([...advance, "--apply"], 1, "is at version 1 already");
  const script = await done(...advance, "--to", "1", "--apply");
  expect(script.stdout).toContain("It is at version 1 already. Nothing was changed");
  await expectFailure([...advance, "--to", "3", "--apply"], 2, "a version is never left out");

  const inVersion1 = () => importers.map(({ leases }) => leases().filter(({ version }) => version === 1));
  await until(() => inVersion1().every((leases) => leases.length >= RUNS_AFTERWARDS));
  for (const { importer } of importers) await importer.stop();
  expect([check.repeatCount, check.malformedCount, check.findings]).toEqual([0, 0, []]);
  expect(check.count).toBeGreaterThan(RUNS_LEFT * SEQUENCE_COUNT);
  // The advance skipped no run.
  expect(Math.min(...inVersion1().flatMap((leases) => leases.map(({ firstRun }) => firstRun)))).toBe(1);

  const { version, capacity } = await jsonOf("status", "--coordinator", url);
  const { holders } = capacity as { holders: readonly { name: string }[] };
  expect([version, holders.map(({ name }) => name).sort()]).toEqual([1, ["one", "two"]]);
  expect(await jsonOf("runs", "--limit", "1", "--coordinator", url)).toMatchObject([{ version: 1 }]);
  expect(output().stdout).toContain("run_space_exhausted");
});

test("advance-version waits for the coordinator of an embedded store to stop, and skips no run", async () => {
  const store = await embeddedStore();
  const checkpoint = ["--checkpoint-dir", await folderForTest()];
  await done("init", "--store", store, "--first-run", String(RUN_MAX));
  const before = await serve(store, ...checkpoint);
  const [last] = (await done("next", "--coordinator", before.url)).stdout.trim().split("\n");
  const advance = ["advance-version", "--store", store, ...checkpoint, "--apply"];
  await expectFailure(advance, 1, "store_locked");
  await before.stop();
  expect((await done(...advance)).stdout).toContain('namespace "main" is at version 1. The next lease is run 1/1');
  const after = await serve(store, ...checkpoint);
  const [first] = (await done("next", "--coordinator", after.url)).stdout.trim().split("\n");
  const { stdout } = await done("decode", last as string, first as string);
  expect(stdout).toBe(`0,${RUN_MAX},0\n1,1,0\n`);
  const inspected = await done("inspect", last as string, "--coordinator", after.url);
  expect(inspected.stdout).toContain("leased to");
});
