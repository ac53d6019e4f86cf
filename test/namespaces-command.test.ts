/** `callnumber namespaces` as an operator types it: with a coordinator, on a store at rest, and the mistakes. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { callnumber, folderForTest, serve } from "./processes/command.js";

async function storeUrl(): Promise<string> {
  return `sqlite:${join(await folderForTest(), "store.db")}`;
}

describe("on a store at rest", () => {
  test("one is created as init creates it, with labels, listed and described; nobody claims to know its guard", async () => {
    const store = await storeUrl();
    const create = ["namespaces", "create", "lists", "--store", store, "--first-run", "200", "--rate", "4"];
    const made = await callnumber([...create, "--label", "archive=lists", "--label", "team=a=b c"]);
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/Made namespace "lists".*first run {2}200/s) });
    expect(await callnumber(["namespaces", "create", "lists", "--store", store])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("namespace_already_initialised"),
    });
    await callnumber(["init", "--store", store]);
    const listed = await callnumber(["namespaces", "list", "--store", store]);
    expect(listed.stdout.trimEnd().split("\n").slice(1)).toEqual([
      expect.stringMatching(/^lists +0 +1073741624 +4 +not asked +archive=lists team="a=b c"$/),
      expect.stringMatching(/^main +0 +1073741823 +2 +not asked$/),
    ]);
    const described = await callnumber(["namespaces", "describe", "lists", "--store", store, "--json"]);
    expect(JSON.parse(described.stdout)).toMatchObject({
      namespace: "lists",
      labels: { archive: "lists", team: "a=b c" },
      record: { firstRun: 200, lineRunsPerSecond: 4 },
      guard: null,
    });
    await callnumber(["namespaces", "describe", "lists", "--store", store, "--unlabel"]);
    expect((await callnumber(["namespaces", "describe", "lists", "--store", store])).stdout).not.toContain("labels");
  });

  test("one that is in use is left to its coordinator", async () => {
    const store = await storeUrl();
    await serve(store, "--create");
    for (const verb of [["list"], ["create", "lists"]]) {
      expect(await callnumber(["namespaces", ...verb, "--store", store])).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/a coordinator \("callnumber serve"\).*Stop it first.*\(store_locked\)/),
      });
    }
  });
});

describe("with a coordinator", () => {
  test("all are listed, and described with their guard; labels are given while it leases", async () => {
    const store = await storeUrl();
    const coordinator = await serve(store, "--create");
    const to = ["--coordinator", coordinator.url];
    await callnumber(["next", ...to]);
    expect((await callnumber(["namespaces", ...to])).stdout).toMatch(/NAMESPACE.*GUARD.*\nmain +1 +\d+ +2 +open\n$/s);
    const labelled = await callnumber(["namespaces", "describe", "main", "--label", "archive=lists", ...to]);
    expect(labelled).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^namespace main\n +labels +archive=lists\n.*mark 1\n.*guard +open since/s),
    });
    // The environment names the store for serve: a question goes to the coordinator all the same.
    const env = { CALLNUMBER_STORE: store };
    expect((await callnumber(["namespaces", "--json", ...to], { env })).stdout).toContain('"archive": "lists"');
    expect(await callnumber(["namespaces", "describe", "other", ...to])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("namespace_not_initialised"),
    });
    expect(await coordinator.stop()).toBe(0);
  });

  test("a public question is answered only by a coordinator that was told to", async () => {
    const path = "/v1/public/namespaces/main/call-numbers/2VznWE2i";
    const [silent, open] = [await serve("memory:"), await serve("memory:", "--public-inspect")];
    expect((await fetch(silent.url + path)).status).toBe(404);
    expect(await (await fetch(open.url + path)).json()).toEqual({ callNumber: "2VznWE2i", canExist: false });
  });
});

describe("mistakes", () => {
  test.each<[string[], RegExp]>([
    [["create"], /which namespace/],
    [["describe"], /which namespace/],
    [["destroy", "main"], /create/],
    [["describe", "Main"], /starts with a letter or digit/],
    [["list", "main"], /neither a name nor labels/],
    [["describe", "main", "--label", "archive"], /label/],
    [["describe", "main", "--label", "Archive=x"], /label/],
    [["describe", "main", "--label", "a=x", "--unlabel"], /exclude each other/],
    [["describe", "main", "--first-run", "7"], /--first-run is for create/],
    [["create", "main", "--unlabel"], /no labels to take away/],
  ])("%j are told what is wrong", async (parameters, said) => {
    expect(await callnumber(["namespaces", ...parameters])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(said),
    });
  });
});
