/** `callnumber recover --scan`: what stands in the archive is never leased again, and nothing in it is guessed. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import type { Store } from "../packages/coordinator/src/store.js";
import { openStore } from "../packages/coordinator/src/stores/open-store.js";
import { parseStoreUrl } from "../packages/coordinator/src/stores/store-url.js";
import { initBackdated } from "./backdated.js";
import { callnumber, folderForTest, serve } from "./processes/command.js";
import { sharedRedis } from "./redis/test-redis.js";

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

/** Numbers of some runs, the greatest in the middle, in a file of their own. */
async function archiveOf(...runs: readonly number[]): Promise<string> {
  const path = join(await folderForTest(), "numbers.txt");
  const lines = runs.map(
    (run) => `https://lists.example.org/message/${encodeCallNumber({ version: 0, run, sequence: 7 })}`,
  );
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
    const archive = await archiveOf(3, FORGOTTEN_RUN, 12);
    const recovered = await callnumber(["recover", "--store", url, "--scan", archive, "--apply"]);
    expect(recovered).toMatchObject({ code: 0, stdout: expect.stringContaining("recovering sets") });
    expect(recovered.stdout).toMatch(/the record +mark 0,/);
    expect(recovered.stdout).toMatch(/the archive +greatest run 70,000 \(\S{8}, line 2\) of 3 call numbers in /);
    const { url: coordinator } = await serve(url);
    const made = await callnumber(["next", "--coordinator", coordinator]);
    const [, run] = (await callnumber(["decode", made.stdout.trim()])).stdout.split(",");
    expect(Number(run)).toBeGreaterThan(FORGOTTEN_RUN);
  });

  test("an archive with runs above the clock line is refused, and changes nothing", async () => {
    const url = await newStoreUrl();
    expect((await callnumber(["init", "--store", url])).code).toBe(0);
    const before = await onStore(url, (store) => store.readNamespace("main"));
    const archive = await archiveOf(3, FORGOTTEN_RUN);
    expect(await callnumber(["recover", "--store", url, "--scan", archive, "--apply"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("recovering is possible from"),
    });
    expect(await onStore(url, (store) => store.readNamespace("main"))).toEqual(before);
  });
});

describe("what can't be relied on is refused", () => {
  async function newStore(): Promise<string> {
    const store = `sqlite:${join(await folderForTest(), "store.db")}`;
    expect((await callnumber(["init", "--store", store])).code).toBe(0);
    return store;
  }
  const scan = async (input: string, ...more: readonly string[]) =>
    callnumber(["recover", "--store", await newStore(), "--scan", "-", ...more], { input });

  test("without --apply too: runs above the clock line, and what was found is told", async () => {
    const archive = await archiveOf(3, FORGOTTEN_RUN);
    const wish = ["recover", "--store", await newStore(), "--scan", archive];
    const looked = await callnumber(wish);
    expect(looked).toMatchObject({ code: 1, stderr: expect.stringContaining("operator_needed") });
    expect(looked.stdout).toMatch(/greatest run 70,000/);
    expect(looked.stdout).not.toMatch(/recovering sets|--apply/);
    expect(looked.stderr).toMatch(/line 2 of .*run 70000, above the clock line.*possible from \d{4}-/s);
  });

  test("lines that are no call numbers, each named, unless they are to be skipped", async () => {
    const input = "2VznWE2i\r\n\r\noops\r\nzzzzzzzz\r\n";
    const refused = await scan(input);
    expect(refused).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("archive_unreadable") });
    expect(refused.stderr).toMatch(
      /1 call number, and in 2 places.*line 3: "oops".*line 4: "zzzzzzzz".*--skip-malformed/s,
    );
    const skipped = await scan(input, "--skip-malformed");
    expect(skipped).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("2 that hold none were skipped; 1 is empty"),
    });
  });

  test("an archive without any call number", async () => {
    expect(await scan("")).toMatchObject({ code: 1, stderr: expect.stringContaining("holds no call number") });
    expect(await scan("oops\n", "--skip-malformed")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("no call number"),
    });
  });

  test("a call number of a version that the namespace has not reached", async () => {
    expect(await scan("2VznWE2i\ndxlGgaI3\n")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /dxlGgaI3 \(line 2 of standard input\) is of version 7, and namespace "main" is at version 0/,
      ),
    });
  });

  test("the store's own file, and its column without an archive", async () => {
    const store = await newStore();
    const path = store.slice("sqlite:".length);
    for (const own of [path, `${path}.lock`]) {
      const refused = await callnumber(["recover", "--store", store, "--scan", own, "--scan-column", "namespaces.c"]);
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("of the store itself") });
    }
    const misused = await callnumber(["recover", "--store", store, "--scan-column", "1"]);
    expect(misused).toMatchObject({ code: 2, stderr: expect.stringContaining("need a --scan") });
  });

  test("and with --json all of it is JSON", async () => {
    expect(JSON.parse((await scan("oops", "--json")).stderr)).toMatchObject({ code: "archive_unreadable" });
    const found = await scan("id,number\n1,2VznWE2i\n", "--scan-column", "number", "--json");
    expect(JSON.parse(found.stdout)).toMatchObject({
      possibleAtMs: null,
      archive: { callNumberCount: 1, greatest: { ledgerId: 99, callNumber: "2VznWE2i", line: 2 } },
    });
    expect(found.stderr).toBe("");
  });
});
