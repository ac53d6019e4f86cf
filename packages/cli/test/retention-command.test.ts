/** A ledger that is kept small, as an operator sees it: the command, a coordinator with a directory, and what both print. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { beforeEach, expect, test } from "vitest";
import { fillSqlite } from "../../../bench/filled-ledgers.js";
import { initBackdated } from "../../../test/backdated.js";
import { folderForTest, type RunningCoordinator, serve } from "../../../test/processes/command.js";
import { openStore, parseStoreUrl } from "../../coordinator/src/index.js";
import { done, expectFailure, jsonLines, jsonOf } from "./commands-for-test.js";

const NAMESPACE = "main";
/** Over ninety days, until now. */
const LEASE_COUNT = 900;
const RETENTION_DAYS = 30;

let url: string;
let retention: readonly string[];

beforeEach(async () => {
  const path = join(await folderForTest(), "store.db");
  url = `sqlite:${path}`;
  const { store } = await openStore(parseStoreUrl(url), { create: true });
  await initBackdated(store, NAMESPACE, { ageDays: 100 });
  await store.close();
  fillSqlite(path, NAMESPACE, LEASE_COUNT);
  retention = ["retention", "--store", url, "--checkpoint-dir", join(path, "..", "checkpoint")];
});

async function untilLogged({ output }: RunningCoordinator, event: string): Promise<void> {
  await expect.poll(() => output().stdout).toContain(`"msg":"${event}"`);
}

test("retention prints what is set, and sets it", async () => {
  const { stdout, stderr } = await done(...retention);
  const [, storeId = ""] = /, store id (\S+)\n/.exec(stdout) ?? [];
  expect(stdout).toBe(
    `namespace main of ${url}, store id ${storeId}\n  leases stay    permanently\n  trimmed        none\n`,
  );
  expect(stderr).toBe("");
  expect((await done(...retention, "--days", "36500")).stdout).toContain("leases stay    36,500 days");
  const eightDays = { store: url, storeId, namespace: NAMESPACE, days: 8, trimmed: null };
  expect(await jsonOf(...retention, "--days", "8")).toEqual(eightDays);
  expect(await jsonOf(...retention)).toEqual(eightDays);
  expect(await jsonOf(...retention, "--keep-all")).toMatchObject({ days: null });
});

test("retention sets nothing when it is misused, or when the namespace is missing", async () => {
  for (const words of [
    ["--days", "7"],
    ["--days", "36501"],
    ["--days", "x"],
    ["--days", "8", "--keep-all"],
    ["--days", "8", "--store", "memory:"],
  ])
    await expectFailure([...retention, ...words], 2, "");
  await expectFailure([...retention, "--namespace", "other", "--days", "8"], 1, "namespace_not_found");
  expect((await done(...retention)).stdout).toContain("permanently");
});

test("a coordinator with a directory trims older leases into a file, and every command prints so", async () => {
  const directory = await folderForTest();
  await done(...retention, "--days", String(RETENTION_DAYS));
  const coordinator = await serve(url, "--ledger-dir", directory);
  await untilLogged(coordinator, "ledger_trimmed");
  const ask = async (...words: readonly string[]) => (await done(...words, "--coordinator", coordinator.url)).stdout;

  const [file = "", ...others] = await readdir(directory);
  expect(others).toEqual([]);
  const leases = jsonLines<LedgerEntry>(await readFile(join(directory, file), "utf8"));
  const last = leases.at(-1) as LedgerEntry;
  expect(leases.map(({ firstRun }) => firstRun)).toEqual(leases.map((_, index) => index + 1));
  expect(leases.length).toBeGreaterThan(LEASE_COUNT / 2);
  const instant = new Date(last.leasedAtMs).toISOString();

  expect(await ask("inspect", encodeCallNumber({ version: 0, run: 17, sequence: 3 }))).toContain(`before ${instant}`);
  const listed = await ask("runs", "--limit", String(LEASE_COUNT));
  expect(listed.trimEnd().split("\n").at(-1)).toBe(
    `leases up to run ${last.firstRun}, the last of ${instant}, were trimmed: they are in the files of --ledger-dir`,
  );
  expect(await ask("runs", "--limit", "5")).not.toContain("trimmed");
  expect(await ask("runs", "--to-run", "17")).toMatch(/^leases up to run .* were trimmed/);
  const exported = jsonLines<LedgerEntry>(await ask("export"));
  expect(exported[0]).toMatchObject({ firstRun: last.firstRun + 1 });
  expect(exported).toHaveLength(LEASE_COUNT - last.firstRun + 1);
  expect(await coordinator.stop()).toBe(0);

  expect(await jsonOf(...retention)).toMatchObject({
    store: url,
    namespace: NAMESPACE,
    days: RETENTION_DAYS,
    trimmed: { upToVersion: 0, upToRun: last.firstRun, lastLeasedAtMs: last.leasedAtMs },
  });
});
