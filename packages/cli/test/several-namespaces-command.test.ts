/** Several namespaces in one store, as an operator works with them: `init` for each, `status` for one and for all. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { callnumber, folderForTest, serve } from "../../../test/processes/command.js";

async function storeUrl(): Promise<string> {
  return `sqlite:${join(await folderForTest(), "store.db")}`;
}

describe("init", () => {
  test("makes a second namespace in a store that has one, with labels, and refuses a name that is taken", async () => {
    const store = await storeUrl();
    expect(await callnumber(["init", "--store", store])).toMatchObject({ code: 0 });
    const lists = ["init", "--namespace", "lists", "--store", store];
    const labels = ["--label", "archive=lists", "--label", "team=a=b c"];
    const made = await callnumber([...lists, "--first-run", "200", "--rate", "4", ...labels, "--json"]);
    expect(JSON.parse(made.stdout)).toMatchObject({
      namespace: "lists",
      firstRun: 200,
      labels: { archive: "lists", team: "a=b c" },
    });
    expect(await callnumber(lists)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("namespace_exists"),
    });
    const { url } = await serve(store);
    const to = ["--coordinator", url];
    expect((await callnumber(["next", ...to])).code).toBe(0);
    const listed = await callnumber(["status", "--all-namespaces", ...to]);
    expect(listed.stdout.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^NAMESPACE +RUNS USED +RUNS LEFT +RATE +GUARD +LABELS$/),
      expect.stringMatching(/^lists +0 +1073741624 +4 +active +archive=lists team="a=b c"$/),
      expect.stringMatching(/^main +1 +1073741822 +2 +active$/),
    ]);
    const asJson = await callnumber(["status", "--all-namespaces", "--json", ...to]);
    expect(JSON.parse(asJson.stdout)).toMatchObject([
      { namespace: "lists", record: { firstRun: 200, ceilingRunsPerSecond: 4 }, guard: { state: "active" } },
      { namespace: "main", labels: {} },
    ]);
    expect((await callnumber(["status", "--namespace", "lists", ...to])).stdout).toMatch(
      /first run 200\n.*no run leased yet\n.*runs used +0, 0\.000 %\n.*the line ends +\S+Z, rising by 4 a second.*alarms +none\n$/s,
    );
    expect(await callnumber(["status", "--namespace", "other", ...to])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("namespace_not_found"),
    });
  });
});

test("status --json has the capacity figures, and null where they can't be had", async () => {
  const { url } = await serve(await storeUrl(), "--create");
  const to = ["--coordinator", url];
  await callnumber(["next", ...to]);
  const asJson = JSON.parse((await callnumber(["status", "--json", ...to])).stdout) as object;
  expect(asJson).toMatchObject({
    namespace: "main",
    runsUsed: 1,
    capacity: { ceilingRunsPerSecond: 2, alarms: [], holders: [{ name: "callnumber-next" }] },
  });
});
