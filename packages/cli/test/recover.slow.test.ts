/** `callnumber recover`, run as an operator does: with a list of call numbers, and on a healthy store. */
import { copyFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { initBackdated } from "../../../test/backdated.js";
import { baseBackup, followed } from "../../../test/postgres/standby.js";
import {
  ownPostgresUnavailable,
  postgresUnavailable,
  sharedPostgres,
  startPostgresServer,
  storeUrlAt,
} from "../../../test/postgres/test-postgres.js";
import { callnumber, folderForTest, serve } from "../../../test/processes/command.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { openStore } from "../../coordinator/src/stores/open-store.js";
import type { Store } from "../../coordinator/src/stores/store.js";
import { parseStoreUrl } from "../../coordinator/src/stores/store-url.js";
import { done, embeddedStore, jsonOf } from "./commands-for-test.js";

/** Above everything that the stores here have leased, and far below their run ceiling. */
const FORGOTTEN_RUN = 70_000;

async function onStore<T>(url: string, act: (store: Store) => Promise<T>): Promise<T> {
  const { store } = await openStore(parseStoreUrl(url), { create: true });
  return await act(store).finally(() => store.close());
}

const recordOf = (url: string) => onStore(url, (store) => store.readNamespace("main"));

async function newStore(): Promise<string> {
  const store = await embeddedStore();
  await done("init", "--store", store);
  return store;
}

/** A file with numbers of these runs. */
async function listOf(...runs: readonly number[]): Promise<string> {
  const path = join(await folderForTest(), "numbers.txt");
  const lines = runs.map((run) => encodeCallNumber({ version: 0, run, sequence: 7 }));
  await writeFile(path, `${lines.join("\n")}\n`);
  return path;
}

describe.each<[string, () => Promise<string>]>([
  ["an embedded store", embeddedStore],
  ["a store in Redis", async () => sharedRedis().operatorUrl],
])("recover --numbers on %s", (_, newStoreUrl) => {
  test("the next lease is above the archive's greatest run, which the store has forgotten", async () => {
    const url = await newStoreUrl();
    await onStore(url, (store) => initBackdated(store, "main"));
    const list = await listOf(3, FORGOTTEN_RUN, 12);
    const { stdout } = await done("recover", "--store", url, "--numbers", list, "--apply");
    expect(stdout).toMatch(
      /the record +high-water mark 0,.*--numbers +greatest run 70000 \(\S{8}, line 2\) of 3 call numbers in .*recovering sets/s,
    );
    const { url: coordinator } = await serve(url);
    const made = await done("next", "--coordinator", coordinator);
    const [, run] = (await done("decode", made.stdout.trim())).stdout.split(",");
    expect(Number(run)).toBeGreaterThan(FORGOTTEN_RUN);
  });

  test("an archive with runs above the run ceiling is rejected, and nothing changes", async () => {
    const url = await newStoreUrl();
    await done("init", "--store", url);
    const before = await recordOf(url);
    const recover = ["recover", "--store", url, "--numbers", await listOf(3, FORGOTTEN_RUN)];
    const applied = await callnumber([...recover, "--apply"]);
    expect(applied).toMatchObject({ code: 1, stderr: expect.stringContaining("recover this one after") });
    expect(await recordOf(url)).toEqual(before);
    const planned = await callnumber(recover);
    expect(planned).toMatchObject({ code: 1, stdout: expect.stringMatching(/greatest run 70000/) });
    expect(planned.stdout).not.toMatch(/recovering sets|--apply/);
    expect(planned.stderr).toMatch(
      /line 2 of .*run 70000, above the run ceiling.*this one after \d{4}-.*manual_recovery_required/s,
    );
  });
});

test("recover --numbers - rejects a bad line before it opens the store, also with --json", async () => {
  const recover = ["recover", "--store", await newStore(), "--numbers", "-"];
  const input = "2VznWE2i\r\n\r\noops\r\n03KOE60u\r\n";
  expect(await callnumber([...recover, "--apply"], { input })).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/line 3 of standard input is not a call number: .*\(numbers_invalid\)/s),
  });
  const { stderr } = await callnumber([...recover, "--json"], { input });
  expect(JSON.parse(stderr)).toMatchObject({ code: "numbers_invalid" });
  expect(await callnumber(recover, { input: "2VznWE2i\ndxlGgaI3\n" })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/dxlGgaI3 \(line 2 of standard input\) has run 7\/\d+, above/),
  });
  const found = await callnumber([...recover, "--json"], { input: "2VznWE2i\n" });
  expect(found).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(found.stdout)).toMatchObject({
    possibleAtMs: null,
    numbers: { callNumberCount: 1, greatest: { version: 0, run: 99, callNumber: "2VznWE2i", line: 1 } },
  });
});

test("recover reports that a healthy store needs no recovery, but not for a copied one", async () => {
  const folder = await folderForTest();
  const path = join(folder, "store.db");
  const place = (file: string) => ["--store", `sqlite:${file}`, "--checkpoint-dir", join(folder, "checkpoint")];
  await done("init", ...place(path));
  expect((await done("recover", ...place(path))).stdout).toContain("no recovery is needed");
  await copyFile(path, `${path}.copy`);
  expect((await done("recover", ...place(`${path}.copy`))).stdout).not.toContain("no recovery is needed");
});

test("recover of a lost embedded store says that its coordinator must be started", async () => {
  const folder = await folderForTest();
  const path = join(folder, "store.db");
  const place = ["--store", `sqlite:${path}`, "--checkpoint-dir", join(folder, "checkpoint")];
  const { storeId } = await jsonOf<{ storeId: string }>("init", ...place);
  await rm(path);
  expect((await done("recover", ...place, "--store-id", storeId, "--apply")).stdout).toMatch(
    /Done: .*Start the coordinator: it claims/,
  );
});

describe("a printed command for PostgreSQL", () => {
  test("of an operator keeps the user, hides the password, and runs as it is", async ({ skip }) => {
    const reason = postgresUnavailable();
    if (reason !== undefined) skip(reason);
    const url = new URL(storeUrlAt(sharedPostgres()));
    const { href, username } = url;
    url.password = "secret";
    const withPassword = { CALLNUMBER_STORE: url.href };
    const named = expect.stringContaining(`://${username}@`);
    const printed = async (words: readonly string[], env = {}) => {
      const { stdout, stderr } = await callnumber(words, { env });
      expect(stdout + stderr).not.toContain("secret");
      const [, command = ""] = /callnumber (\w+ --store .*?)(?: \(store_not_found\))?\n/.exec(stdout + stderr) ?? [];
      return command.replaceAll("'", "").split(" ");
    };
    const init = await printed(["advance-version", "--store", href]);
    expect(init).toEqual(["init", "--store", named]);
    expect(await printed(["advance-version", "--store", url.href])).toEqual(init);
    expect(await printed(["advance-version"], withPassword)).toEqual(init);
    await done(...init);
    const recover = await printed(["recover", "--nodes", "1"], withPassword);
    expect(recover).toEqual(["recover", "--store", named, "--namespace", "main", "--nodes", "1", "--apply"]);
    expect((await done(...recover)).stdout).toContain("Done: ");
  });

  test("of a coordinator names no user: the operator's is another one, and comes from the environment", async ({
    skip,
  }) => {
    const reason = postgresUnavailable();
    if (reason !== undefined) skip(reason);
    const url = storeUrlAt(sharedPostgres());
    const { stderr } = await callnumber(["serve", "--store", url, "--port", "0"]);
    const [, words = ""] = /(init --store \S+)/.exec(stderr) ?? [];
    expect(words).not.toContain("@");
    const env = { CALLNUMBER_STORE: url };
    expect((await callnumber(words.replaceAll("'", "").split(" "), { env })).stdout).toContain("store id");
  });
});

test("recover makes a lost schema of a pair again: the standby of its server counts", async ({ skip }) => {
  const reason = ownPostgresUnavailable();
  if (reason !== undefined) skip(reason);
  const primary = await startPostgresServer();
  await startPostgresServer({
    fill: (data) => baseBackup(primary, data, `primary_conninfo = '${followed(primary)}'\n`),
  });
  await primary.configure({ synchronous_standby_names: "ANY 1 (standby)" });
  await expect.poll(() => primary.run("SELECT sync_state FROM pg_stat_replication")).toEqual([["quorum"]]);
  const place = ["--store", storeUrlAt(primary.url), "--checkpoint-dir", await folderForTest()];
  const { storeId } = await jsonOf<{ storeId: string }>("init", ...place, "--nodes", "2");
  await primary.run(`DROP SCHEMA ${new URL(place[1] as string).searchParams.get("schema")} CASCADE`);
  expect((await done("recover", ...place, "--store-id", storeId, "--nodes", "2", "--apply")).stdout).toMatch(
    /data nodes +2.*Done: /s,
  );
});
