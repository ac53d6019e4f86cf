/**
 * `callnumber advance-version` and `status`, typed as an operator does, at the real end of a run space: beside a coordinator that runs
 * and importers that mint.
 * Guarantees: G12 (docs/guarantees.md).
 */
import { join } from "node:path";
import { RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { expect, onTestFinished, test } from "vitest";
import { CallNumberCheck } from "../../../test/faults/call-number-check.js";
import { type MintingEvent, MintingProcess } from "../../../test/faults/minting-process.js";
import { callnumber, type Finished, folderForTest, serve } from "../../../test/processes/command.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";

const RUNS_LEFT = 12;
const RUNS_AFTERWARDS = 6;

async function done(...parameters: readonly string[]): Promise<Finished> {
  const finished = await callnumber(parameters);
  expect(finished, parameters.join(" ")).toMatchObject({ code: 0 });
  return finished;
}

async function jsonOf(...parameters: readonly string[]): Promise<Record<string, unknown>> {
  return JSON.parse((await done(...parameters, "--json")).stdout) as Record<string, unknown>;
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** What an importer process of its own wrote and said. */
function importerAt(coordinator: string, name: string, check: CallNumberCheck) {
  const events: MintingEvent[] = [];
  const importer = new MintingProcess(
    { coordinator, namespace: "main", holder: { name }, takeCount: 4_096, pauseMs: 1, spareRuns: 1 },
    { onWritten: check.reader("main", name), onEvent: (event) => void events.push(event) },
  );
  onTestFinished(() => importer.kill());
  const leases = () => events.flatMap((event) => (event.event === "lease" ? [event] : []));
  const has = (code: string) => events.some((event) => event.event === "refused" && event.code === code);
  return { importer, leases, has };
}

test("at the end of a run space importers stop, and go on in the next version once it is advanced, with no number twice", async () => {
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
  expect(look.stderr).toMatch(/version 0 .*never leased from again: 0 runs.*version 1 .*begins at run 1.*no way back/s);
  expect(look.stdout).toContain("Nothing was changed");
  expect((await jsonOf("status", "--coordinator", url))["version"]).toBe(0);

  const typedAtOnce = await Promise.all([callnumber([...advance, "--yes"]), callnumber([...advance, "--yes"])]);
  expect(typedAtOnce.map(({ code }) => code).sort()).toEqual([0, 1]);
  const again = await callnumber([...advance, "--yes"]);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("is at version 1 already") });
  const script = await done(...advance, "--to", "1", "--yes");
  expect(script.stdout).toContain("is at version 1 already. Nothing was changed");
  expect((await callnumber([...advance, "--to", "3", "--yes"])).code).toBe(2);

  const inVersion1 = () => importers.map(({ leases }) => leases().filter(({ version }) => version === 1));
  await until(() => inVersion1().every((leases) => leases.length >= RUNS_AFTERWARDS));
  for (const { importer } of importers) await importer.stop();
  expect({ repeats: check.repeatCount, malformed: check.malformedCount, told: check.findings }).toEqual({
    repeats: 0,
    malformed: 0,
    told: [],
  });
  expect(check.count).toBeGreaterThan(RUNS_LEFT * SEQUENCE_COUNT);
  // Dense: the advance cost no run.
  expect(Math.min(...inVersion1().flatMap((leases) => leases.map(({ firstRun }) => firstRun)))).toBe(1);

  const { version, capacity } = await jsonOf("status", "--coordinator", url);
  const { holders } = capacity as { holders: readonly { name: string }[] };
  expect({ version, names: holders.map(({ name }) => name).sort() }).toEqual({
    version: 1,
    names: ["one", "two"],
  });
  const [first] = (await done("runs", "--coordinator", url, "--json")).stdout.match(/"version": \d/) ?? [];
  expect(first).toBe('"version": 1');
  expect(output().stdout).toContain("run_space_exhausted");
});

test("an embedded store is advanced while no coordinator has it open, and goes on densely", async () => {
  const store = `sqlite:${join(await folderForTest(), "store.db")}`;
  const checkpoint = ["--checkpoint-dir", await folderForTest()];
  await done("init", "--store", store, "--first-run", String(RUN_MAX));
  const before = await serve(store, ...checkpoint);
  const [last] = (await done("next", "--coordinator", before.url)).stdout.trim().split("\n");
  const advance = ["advance-version", "--store", store, ...checkpoint, "--yes"];
  expect(await callnumber(advance)).toMatchObject({ code: 1, stderr: expect.stringContaining("store_locked") });
  await before.stop();
  expect((await done(...advance)).stdout).toContain('namespace "main" is at version 1. The next lease is run 1 of it');
  const after = await serve(store, ...checkpoint);
  const [first] = (await done("next", "--coordinator", after.url)).stdout.trim().split("\n");
  const { stdout } = await done("decode", last as string, first as string);
  expect(stdout).toBe(`0,${RUN_MAX},0\n1,1,0\n`);
  const inspected = await done("inspect", last as string, "--coordinator", after.url);
  expect(inspected.stdout).toContain("leased to");
});

test("before its end a version is left only by who says so, and never while its clock line goes on", async () => {
  const store = sharedRedis().storeUrl;
  const checkpoint = ["--checkpoint-dir", await folderForTest()];
  await done("init", "--store", store);
  const advance = ["advance-version", "--store", store, ...checkpoint];
  for (const more of [[], ["--yes"], ["--force-early", "--yes"]]) {
    const { code, stderr } = await callnumber([...advance, ...more]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/clock line reaches its last run at 20\d\d-.*\(version_still_active\)/s);
  }
  expect((await callnumber(["advance-version", "--store", "memory:"])).code).toBe(2);
});
