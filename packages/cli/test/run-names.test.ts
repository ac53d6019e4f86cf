/** Runs as they are printed, typed back after the version was advanced: every command takes what another one prints. */
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { callnumber, type RunningCoordinator, serve } from "../../../test/processes/command.js";
import { done, embeddedStore, expectFailure, jsonLines, jsonOf, lease } from "./commands-for-test.js";

const FIRST_RUN = 1_073_741_000;
const LEDGER_ID = /10737418\d\d|1073742\d{3}/;

/** A store with leases of versions 0 and 1. Returns what is printed about it, and the coordinator. */
async function advancedStore(): Promise<{ readonly store: string; readonly coordinator: RunningCoordinator }> {
  const store = await embeddedStore();
  await done("init", "--store", store, "--first-run", String(FIRST_RUN));
  const before = await serve(store);
  await lease(before.url);
  await before.stop();
  await done("advance-version", "--store", store, "--force-early", "--apply");
  const coordinator = await serve(store);
  await lease(coordinator.url);
  await lease(coordinator.url, { runCount: 2 });
  return { store, coordinator };
}

describe("a namespace that has had two versions", () => {
  test("runs prints every run with its version, and each command takes it as printed", async () => {
    const { store, coordinator } = await advancedStore();
    const to = ["--coordinator", coordinator.url];
    const { stdout } = await done("runs", ...to);
    const names = [...stdout.matchAll(/^(\S+) {2}/gm)].map(([, name = ""]) => name);
    expect(names).toEqual(["RUNS", "1/2-3", "1/1", `0/${FIRST_RUN}`]);
    expect((await done("runs", "1/1", ...to)).stdout).toMatch(/^run 1\/1 in namespace main\n/);
    expect((await done("runs", "1/3", ...to)).stdout).toMatch(/^run 1\/3 in.*, with runs 1\/2-3\n/s);
    expect((await done("runs", `0/${FIRST_RUN}`, ...to)).stdout).toMatch(`run 0/${FIRST_RUN} in namespace main\n`);
    expect((await done("runs", "--from-run", "1/1", ...to)).stdout).not.toContain("0/");
    expect((await done("runs", "--to-run", "0/1,073,741,823", ...to)).stdout).toContain(`\n0/${FIRST_RUN} `);
    expect(await jsonOf("runs", "1/3", ...to)).toMatchObject({ currentVersion: 1, version: 1, run: 3 });
    const [lastLine] = jsonLines((await done("export", "--from-run", "1/2", ...to)).stdout).reverse();
    expect(lastLine).toEqual({ end: true, leaseCount: 1, upToVersion: 1, upToRun: 3 });
    const number = encodeCallNumber({ version: 1, run: 2, sequence: 5 });
    expect((await done("inspect", "--neighbors", number, ...to)).stdout).toMatch(
      /: run 1\/2 was leased to.*run 1\/1 before it/s,
    );
    expect((await done("status", ...to)).stdout).toMatch(/high-water mark {4}run 1\/3, last lease/);
    await coordinator.stop();
    const recover = ["recover", "--store", store];
    expect((await done(...recover, "--min-run", "1/3")).stdout).toMatch(
      /high-water mark 1\/3, .*--min-run +run 1\/3\n/s,
    );
    expect(JSON.stringify(await jsonOf(...recover, "--min-run", "1/3"))).not.toMatch(/ledgerId|:10737418/);
    await expectFailure([...recover, "--min-run", "3"], 2, "write it as 1/3 (version/run)");
  });

  test("a run without its version is rejected with the name that it may have", async () => {
    const { coordinator } = await advancedStore();
    const to = ["--coordinator", coordinator.url];
    const asks = "could be of any version from 0 to 1: write it as 1/3 (version/run)";
    await expectFailure(["runs", "3", ...to], 1, asks);
    await expectFailure(["runs", "--from-run", "3", ...to], 1, asks);
    await expectFailure(["export", "--to-run", "3", ...to], 1, asks);
    await expectFailure(["runs", "1/900", ...to], 1, 'no lease of namespace "main" has run 1/900:');
    await expectFailure(["runs", "0/900", ...to], 1, 'no lease of namespace "main" has run 0/900:');
    // What used to name the run.
    const { code, stderr } = await callnumber(["runs", String(2 ** 30 + 3), ...to]);
    expect(code).toBe(2);
    expect(stderr).toContain("1/65556 (version/run)");
    expect(coordinator.output().stderr).not.toMatch(LEDGER_ID);
  });
});

test("a namespace that has had version 0 alone names a run by its number, and takes it with its version, too", async () => {
  const coordinator = await serve("memory:");
  const to = ["--coordinator", coordinator.url];
  await lease(coordinator.url, { runCount: 3 });
  expect((await done("runs", ...to)).stdout).toMatch(/^1-3 {2}/m);
  for (const name of ["2", "0/2"]) {
    expect((await done("runs", name, ...to)).stdout).toMatch(/^run 2 in namespace main\n/);
  }
});

test("recover repeats a run as it was given in the command that it prints", async () => {
  const store = await embeddedStore();
  await done("init", "--store", store);
  for (const run of ["0/7", "7"]) {
    const { stdout } = await done("recover", "--store", store, "--min-run", run);
    expect(stdout).toContain(`--min-run ${run} --apply`);
  }
});
