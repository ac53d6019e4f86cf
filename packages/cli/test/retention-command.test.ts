/** A ledger that is kept small, as an operator sees it: the command, a coordinator with a directory, and what both print. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { expect, test } from "vitest";
import { fillSqlite } from "../../../bench/filled-ledgers.js";
import { initBackdated } from "../../../test/backdated.js";
import { callnumber, folderForTest, type RunningCoordinator, serve } from "../../../test/processes/command.js";
import { openStore, parseStoreUrl } from "../../coordinator/src/index.js";

const NAMESPACE = "main";
/** Over ninety days, until now. */
const LEASE_COUNT = 900;
const RETENTION_DAYS = 30;

async function filled(): Promise<{ readonly url: string; readonly at: readonly string[] }> {
  const path = join(await folderForTest(), "store.db");
  const url = `sqlite:${path}`;
  const { store } = await openStore(parseStoreUrl(url), { create: true });
  await initBackdated(store, NAMESPACE, { ageDays: 100 });
  await store.close();
  fillSqlite(path, NAMESPACE, LEASE_COUNT);
  return { url, at: ["--store", url, "--checkpoint-dir", join(path, "..", "checkpoint")] };
}

function retention(at: readonly string[], ...words: readonly string[]) {
  return callnumber(["retention", ...at, ...words]);
}

async function until(coordinator: RunningCoordinator, event: string): Promise<void> {
  while (!coordinator.output().stdout.includes(`"msg":"${event}"`)) await delay(20);
}

test("retention prints what is set, and sets it", async () => {
  const { at } = await filled();
  expect(await retention(at)).toEqual({
    code: 0,
    stdout: "namespace main\n  leases stay    permanently\n  trimmed        none\n",
    stderr: "",
  });
  expect((await retention(at, "--days", "36500")).stdout).toContain("leases stay    36,500 days");
  expect(JSON.parse((await retention(at, "--days", "8", "--json")).stdout)).toEqual({
    namespace: NAMESPACE,
    days: 8,
    trimmed: null,
  });
  expect(JSON.parse((await retention(at, "--json")).stdout)).toMatchObject({ days: 8 });
  expect(JSON.parse((await retention(at, "--keep-all", "--json")).stdout)).toMatchObject({ days: null });
});

test("retention sets nothing that is misused, and nothing where there is no namespace", async () => {
  const { at } = await filled();
  for (const words of [
    ["--days", "7"],
    ["--days", "36501"],
    ["--days", "x"],
    ["--days", "8", "--keep-all"],
  ])
    expect(await retention(at, ...words), words.join(" ")).toMatchObject({ code: 2 });
  expect(await retention(at, "--namespace", "other", "--days", "8")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("namespace_not_found"),
  });
  expect(await callnumber(["retention", "--store", "memory:", "--days", "8"])).toMatchObject({ code: 2 });
  expect((await retention(at)).stdout).toContain("permanently");
});

test("a coordinator with a directory trims older leases into a file, and what it prints says so", async () => {
  const { url, at } = await filled();
  const directory = await folderForTest();
  await retention(at, "--days", String(RETENTION_DAYS));
  const coordinator = await serve(url, "--ledger-dir", directory);
  await until(coordinator, "ledger_trimmed");
  const ask = (...words: readonly string[]) => callnumber([...words, "--coordinator", coordinator.url]);

  const [file = "", ...others] = await readdir(directory);
  expect(others).toEqual([]);
  const leases = (await readFile(join(directory, file), "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as LedgerEntry);
  const last = leases.at(-1) as LedgerEntry;
  expect(leases.map(({ firstRun }) => firstRun)).toEqual(leases.map((_, index) => index + 1));
  expect(leases.length).toBeGreaterThan(LEASE_COUNT / 2);
  const instant = new Date(last.leasedAtMs).toISOString();

  const trimmed = await ask("inspect", encodeCallNumber({ version: 0, run: 17, sequence: 3 }));
  expect(trimmed).toMatchObject({ code: 0, stdout: expect.stringContaining(`at or before ${instant}`) });
  const listed = await ask("runs", "--limit", String(LEASE_COUNT));
  expect(listed.stdout.trimEnd().split("\n").at(-1)).toBe(
    `leases up to run ${last.firstRun}, the last of ${instant}, were trimmed: they are in the files of --ledger-dir`,
  );
  expect((await ask("runs", "--limit", "5")).stdout).not.toContain("trimmed");
  const nothing = await ask("runs", "--to-run", "17");
  expect(nothing.stdout).toMatch(/^leases up to run .* were trimmed/);
  const exported = (await ask("export", "--format", "ndjson")).stdout.trimEnd().split("\n");
  expect(JSON.parse(exported[0] ?? "")).toMatchObject({ firstRun: last.firstRun + 1 });
  expect(exported).toHaveLength(LEASE_COUNT - last.firstRun + 1);
  expect(await coordinator.stop()).toBe(0);

  expect(JSON.parse((await retention(at, "--json")).stdout)).toEqual({
    namespace: NAMESPACE,
    days: RETENTION_DAYS,
    trimmed: { upToRun: last.firstRun, lastLeasedAtMs: last.leasedAtMs },
  });
});

test("a coordinator without a directory, or whose directory is missing, trims nothing and leases", async () => {
  const { url, at } = await filled();
  await retention(at, "--days", String(RETENTION_DAYS));
  const missing = join(await folderForTest(), "missing");
  for (const [words, event] of [
    [[], "ledger_not_trimmed"],
    [["--ledger-dir", missing], "ledger_trim_failed"],
  ] as const) {
    const coordinator = await serve(url, ...words);
    await until(coordinator, event);
    expect(await callnumber(["next", "--coordinator", coordinator.url])).toMatchObject({ code: 0 });
    expect(await coordinator.stop()).toBe(0);
  }
  expect(JSON.parse((await retention(at, "--json")).stdout)).toMatchObject({ trimmed: null });
});
