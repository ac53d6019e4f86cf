/** `callnumber recover --numbers`: no run of the list is leased again, and no line of it is guessed. */
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { initBackdated } from "../../../test/backdated.js";
import { callnumber, folderForTest, serve } from "../../../test/processes/command.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { openStore } from "../../coordinator/src/stores/open-store.js";
import { type Store } from "../../coordinator/src/stores/store.js";
import { parseStoreUrl } from "../../coordinator/src/stores/store-url.js";

/** Above everything that the stores here have leased, and far below their line. */
const FORGOTTEN_RUN = 70_000;

async function onStore<T>(url: string, act: (store: Store) => Promise<T>): Promise<T> {
  const { store } = await openStore(parseStoreUrl(url), { create: true });
  try {
    return await act(store);
  } finally {
    await store.close();
  }
}

/** Numbers of some runs, in a file of their own. */
async function listOf(...runs: readonly number[]): Promise<string> {
  const path = join(await folderForTest(), "numbers.txt");
  const lines = runs.map((run) => encodeCallNumber({ version: 0, run, sequence: 7 }));
  await writeFile(path, `${lines.join("\n")}\n`);
  return path;
}

describe.each<[string, () => Promise<string>]>([
  ["embedded", async () => `sqlite:${join(await folderForTest(), "store.db")}`],
  ["Redis", async () => sharedRedis().operatorUrl],
])("with a store in %s", (_, newStoreUrl) => {
  test("the first run leased afterwards lies above the archive's greatest, which the store has forgotten", async () => {
    const url = await newStoreUrl();
    await onStore(url, (store) => initBackdated(store, "main"));
    const list = await listOf(3, FORGOTTEN_RUN, 12);
    const recovered = await callnumber(["recover", "--store", url, "--numbers", list, "--apply"]);
    expect(recovered).toMatchObject({ code: 0, stdout: expect.stringContaining("recovering sets") });
    expect(recovered.stdout).toMatch(/the record +mark 0,/);
    expect(recovered.stdout).toMatch(/--numbers +greatest run 70,000 \(\S{8}, line 2\) of 3 call numbers in /);
    const { url: coordinator } = await serve(url);
    const made = await callnumber(["next", "--coordinator", coordinator]);
    const [, run] = (await callnumber(["decode", made.stdout.trim()])).stdout.split(",");
    expect(Number(run)).toBeGreaterThan(FORGOTTEN_RUN);
  });

  test("an archive with runs above the clock line is refused, and changes nothing", async () => {
    const url = await newStoreUrl();
    expect((await callnumber(["init", "--store", url])).code).toBe(0);
    const before = await onStore(url, (store) => store.readNamespace("main"));
    const list = await listOf(3, FORGOTTEN_RUN);
    expect(await callnumber(["recover", "--store", url, "--numbers", list, "--apply"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("recovering is possible from"),
    });
    expect(await onStore(url, (store) => store.readNamespace("main"))).toEqual(before);
  });
});

describe("recover --numbers", () => {
  async function newStore(): Promise<string> {
    const store = `sqlite:${join(await folderForTest(), "store.db")}`;
    expect((await callnumber(["init", "--store", store])).code).toBe(0);
    return store;
  }
  const recover = async (input: string, ...more: readonly string[]) =>
    callnumber(["recover", "--store", await newStore(), "--numbers", "-", ...more], { input });

  test("shows what it found and refuses runs above the clock line, also without --apply", async () => {
    const list = await listOf(3, FORGOTTEN_RUN);
    const looked = await callnumber(["recover", "--store", await newStore(), "--numbers", list]);
    expect(looked).toMatchObject({ code: 1, stderr: expect.stringContaining("manual_recovery_required") });
    expect(looked.stdout).toMatch(/greatest run 70,000/);
    expect(looked.stdout).not.toMatch(/recovering sets|--apply/);
    expect(looked.stderr).toMatch(/line 2 of .*run 70000, above the clock line.*possible from \d{4}-/s);
  });

  test("refuses a list with a line that is no call number, and changes nothing", async () => {
    const store = await newStore();
    const before = await onStore(store, (opened) => opened.readNamespace("main"));
    const input = "2VznWE2i\r\n\r\noops\r\n03KOE60u\r\n";
    const refused = await callnumber(["recover", "--store", store, "--numbers", "-", "--apply"], { input });
    expect(refused).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("(numbers_invalid)") });
    expect(refused.stderr).toMatch(/line 3 of standard input is no call number: "oops" has 4 characters/);
    expect(await onStore(store, (opened) => opened.readNamespace("main"))).toEqual(before);
  });

  test("refuses a call number of a version that the namespace has not reached", async () => {
    expect(await recover("2VznWE2i\ndxlGgaI3\n")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/dxlGgaI3 \(line 2 of standard input\) tells of run \d+ of version 7, above/),
    });
  });

  test("prints the plan and refusals as JSON with --json", async () => {
    expect(JSON.parse((await recover("oops", "--json")).stderr)).toMatchObject({ code: "numbers_invalid" });
    const found = await recover("2VznWE2i\n", "--json");
    expect(found).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(found.stdout)).toMatchObject({
      possibleAtMs: null,
      numbers: { callNumberCount: 1, greatest: { ledgerId: 99, callNumber: "2VznWE2i", line: 1 } },
    });
  });
});

test("recover reports that a healthy store needs no recovery, and nothing of the kind for a copied one", async () => {
  const folder = await folderForTest();
  const path = join(folder, "store.db");
  const checkpoint = ["--checkpoint-dir", join(folder, "checkpoint")];
  expect((await callnumber(["init", "--store", `sqlite:${path}`, ...checkpoint])).code).toBe(0);
  const looked = await callnumber(["recover", "--store", `sqlite:${path}`, ...checkpoint]);
  expect(looked).toMatchObject({ code: 0, stdout: expect.stringContaining("no recovery is needed") });
  await copyFile(path, `${path}.copy`);
  const copied = await callnumber(["recover", "--store", `sqlite:${path}.copy`, ...checkpoint]);
  expect(copied).toMatchObject({ code: 0, stdout: expect.not.stringContaining("no recovery is needed") });
});
