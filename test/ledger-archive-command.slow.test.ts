/** A ledger that leaves the store by itself, as an operator sees it: the command, real processes, a real folder. */
import { readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { fillSqlite } from "../bench/filled-ledgers.js";
import { openStore, parseStoreUrl } from "../packages/coordinator/src/index.js";
import { initBackdated } from "./backdated.js";
import { callnumber, folderForTest, type RunningCoordinator, serve } from "./processes/command.js";

const NAMESPACE = "main";
const LEASE_COUNT = 9_000;
const KEEP_LEASES = 500;
const SEGMENT_LEASES = 8_192;

test("the older part of a ledger goes into the folder, and is told as before", async () => {
  const [storeFolder, folder] = [await folderForTest(), await folderForTest()];
  const url = `sqlite:${join(storeFolder, "store.db")}`;
  await fill(url, join(storeFolder, "store.db"));

  const whole = await serve(url);
  const before = await told(whole, 17);
  await whole.stop();

  const rotating = await serve(url, "--ledger-folder", folder, "--keep-leases", String(KEEP_LEASES));
  await untilTold(rotating, /"file":"(\S+?)".*"msg":"rotation"/);
  expect(await told(rotating, 17)).toEqual(before);
  expect(await rotating.stop()).toBe(0);

  const [file = "", ...others] = await filesIn(folder);
  expect(others).toEqual([]);
  expect(file).toMatch(new RegExp(`^0000000001-000000${SEGMENT_LEASES}\\.[0-9a-f]{16}\\.ndjson\\.gz$`));

  const blind = await serve(url);
  expect((await callnumber(["runs", "17", "--coordinator", blind.url, "--json"])).stderr).toContain(
    "ledger_archive_unavailable",
  );
  expect(await callnumber(["runs", String(LEASE_COUNT), "--coordinator", blind.url])).toMatchObject({ code: 0 });
  expect(await callnumber(["status", "--coordinator", blind.url])).toMatchObject({ code: 0 });
  await blind.stop();
});

test("an export is whole, or fails and says which archived file is damaged or missing", async () => {
  const [storeFolder, folder] = [await folderForTest(), await folderForTest()];
  const url = `sqlite:${join(storeFolder, "store.db")}`;
  await fill(url, join(storeFolder, "store.db"));
  const rotating = await serve(url, "--ledger-folder", folder, "--keep-leases", String(KEEP_LEASES));
  await untilTold(rotating, /"msg":"rotation"/);
  await rotating.stop();

  // By a coordinator of its own each time: one keeps what it has read.
  const exported = async () => {
    const coordinator = await serve(url, "--ledger-folder", folder);
    const done = await callnumber(["export", "--format", "ndjson", "--coordinator", coordinator.url]);
    await coordinator.stop();
    return { ...done, told: done.stderr + coordinator.output().stdout };
  };
  const whole = await exported();
  expect(whole).toMatchObject({ code: 0, stdout: expect.stringContaining(`"leaseCount":${LEASE_COUNT}`) });
  const [file = ""] = await filesIn(folder);
  const [own = ""] = await readdir(join(folder, NAMESPACE));
  const path = join(folder, NAMESPACE, own, file);
  const bytes = await readFile(path);
  await writeFile(path, Buffer.from(bytes.map((byte, at) => (at === 1_000 ? byte ^ 1 : byte))));
  expect(await exported()).toMatchObject({ code: 1, told: expect.stringContaining(`${file} is damaged`) });

  await writeFile(path, bytes);
  await rename(path, path.replace("0000000001-", "0000000101-"));
  expect(await exported()).toMatchObject({ code: 1, told: expect.stringContaining("covers ledger id 1,") });
});

test("what stays in the store can't be said without where the rest goes", async () => {
  const folder = await folderForTest();
  const asked = ["serve", "--create", "--store", `sqlite:${join(folder, "store.db")}`, "--keep-days", "3"];
  expect(await callnumber(asked)).toMatchObject({ code: 2, stderr: expect.stringContaining("--ledger-folder") });
  expect(await readdir(folder)).toEqual([]);
});

async function fill(url: string, path: string): Promise<void> {
  const { store } = await openStore(parseStoreUrl(url), { create: true });
  await initBackdated(store, NAMESPACE, { ageDays: 100 });
  await store.close();
  fillSqlite(path, NAMESPACE, LEASE_COUNT);
}

/** What the command tells of a run, of a number in it, and of the ledger around it. */
async function told({ url }: RunningCoordinator, run: number): Promise<readonly unknown[]> {
  const number = encodeCallNumber({ version: 0, run, sequence: 3 });
  const questions = [
    ["runs", String(run)],
    ["inspect", number],
    ["runs", "--limit", "5"],
    ["runs", "--limit", "5", "--holder", "importer-3"],
  ];
  const answers = await Promise.all(questions.map((words) => callnumber([...words, "--coordinator", url, "--json"])));
  for (const { code, stderr } of answers) expect([code, stderr]).toEqual([0, ""]);
  return answers.map(({ stdout }) => JSON.parse(stdout));
}

async function untilTold(coordinator: RunningCoordinator, pattern: RegExp): Promise<void> {
  while (!pattern.test(coordinator.output().stdout)) {
    expect(coordinator.output().stdout).not.toContain("rotation_failed");
    await delay(20);
  }
}

async function filesIn(folder: string): Promise<readonly string[]> {
  const [own = ""] = await readdir(join(folder, NAMESPACE));
  return await readdir(join(folder, NAMESPACE, own));
}
