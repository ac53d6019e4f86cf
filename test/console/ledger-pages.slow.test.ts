/** The ledger and its namespaces on the page, with the coordinator's own filters, exports, hints and neighbors. */
import { readFile } from "node:fs/promises";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { chromiumForFile, expectAccessible, expectHeading } from "./browser.js";
import { lease, openConsole, report } from "./consoles.js";

const browser = chromiumForFile();

const TALLEST_BAR =
  "Math.max(...[...document.querySelectorAll('.chart rect')].map((bar) => bar.getBoundingClientRect().height))";

const names = (page: Page) => page.locator("table.leases tbody tr td:nth-of-type(1)").allInnerTexts();
const firstWords = async (page: Page) => (await names(page)).map((text) => text.split("\n")[0]);

test("the runs page filters by every field, keeps its filters in the URL, and exports what it shows", async () => {
  const { page, visit, url } = await openConsole(browser());
  const one = await lease(url, { name: "one", host: "mail-1", labels: { team: "a" } });
  await lease(url, { name: "two", host: "mail-2", labels: { team: "b" } });
  const three = await lease(url, { name: "three", host: "mail-2", labels: { team: "a" } });
  await report(url, one, 16_383, "exhausted");
  const mustShow = async (label: string, text: string, expected: readonly string[]) => {
    await visit("/main/runs");
    await expect.poll(() => firstWords(page)).toEqual(["three", "two", "one"]);
    if (label === "State") await page.getByRole("combobox", { name: label }).selectOption(text);
    else await page.getByLabel(label, { exact: true }).fill(text);
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await expect.poll(() => firstWords(page)).toEqual(expected);
  };
  await mustShow("Host", "mail-2", ["three", "two"]);
  await mustShow("Label", "team=b", ["two"]);
  await mustShow("State", "exhausted", ["one"]);
  await mustShow("Run from", String(three.firstRun), ["three"]);
  await mustShow("Run to", String(one.firstRun), ["one"]);
  await mustShow("Label", "team=a", ["three", "one"]);
  expect(page.url()).toContain("label=team%3Da");
  await page.reload();
  await expect.poll(() => firstWords(page)).toEqual(["three", "one"]);
  expect(await page.getByLabel("Label", { exact: true }).inputValue()).toBe("team=a");
  const begun = page.waitForEvent("download");
  await page.getByRole("link", { name: "NDJSON", exact: true }).click();
  const text = await readFile(await (await begun).path(), "utf8");
  expect(text.trim().split("\n")).toHaveLength(3);
  expect(text).not.toContain("two");
  await page.goBack();
  await expect.poll(() => firstWords(page)).toEqual(["three", "two", "one"]);
  // Without the button.
  await page.getByLabel("Holder", { exact: true }).fill("missing");
  await page.keyboard.press("Enter");
  await page.getByText("No lease matches.").waitFor();
  await visit("/main/runs?label=nonsense");
  // A rejection is shown with the message of the coordinator.
  await page.getByText("a label is asked for as name=value").waitFor();
});

test("the console shows until when trimmed leases were leased, and where they are", async () => {
  const { page, visit } = await openConsole(browser());
  const trimmed = { upToVersion: 0, upToRun: 17, lastLeasedAtMs: Date.UTC(2026, 9, 1) };
  const explanation = "run 17 was leased at or before 2026-10-01, unless it was skipped";
  const callNumber = encodeCallNumber({ version: 0, run: 17, sequence: 3 });
  await page.route("**/v1/namespaces/main/runs?*", (route) =>
    route.fulfill({ json: { namespace: "main", leases: [], nextCursor: null, trimmed } }),
  );
  await page.route("**/v1/namespaces/main/runs/17", (route) =>
    route.fulfill({ status: 410, json: { code: "lease_trimmed", message: explanation } }),
  );
  await page.route("**/v1/namespaces/main/call-numbers/*", (route) => {
    const numbered = { namespace: "main", callNumber, version: 0, run: 17, sequence: 3 };
    return route.fulfill({ json: { ...numbered, verdict: "trimmed", explanation, trimmed } });
  });
  await visit("/main/runs");
  await page.getByText("were trimmed from the store: they are in the files of --ledger-dir").waitFor();
  await visit("/main/runs/17");
  await page.getByText("Run 17 was leased at or before 2026-10-01").waitFor();
  await visit(`/main/inspect/${callNumber}`);
  await page.getByText("Leased long ago").waitFor();
  await expectAccessible(page, "trimmed");
});

test("the console distinguishes namespaces by color", async () => {
  const namespaces = ["main", "lists"];
  const { page, visit, url } = await openConsole(browser(), {}, { namespaces });
  await lease(url, { name: "importer-of-lists" }, "lists");
  await lease(url, { name: "importer-of-main" }, "main");
  await visit("/main");
  await page.getByText("leased to importer-of-main").waitFor();
  expect(await page.getByText("leased to importer-of-lists").count()).toBe(0);
  const color = () => page.evaluate<string>("getComputedStyle(document.querySelector('.swatch')).backgroundColor");
  const colorOfMain = await color();
  await page.getByRole("row", { name: /lists/ }).waitFor();
  await page.getByRole("combobox", { name: "Namespace" }).selectOption("lists");
  await page.getByText("leased to importer-of-lists").waitFor();
  expect(page.url()).toMatch(/#\/lists$/);
  expect(await color()).not.toBe(colorOfMain);
  await page.locator("table.holders").getByRole("link", { name: "importer-of-lists" }).waitFor();
  await expect.poll(() => page.evaluate<number>(TALLEST_BAR)).toBeGreaterThan(100);
  await expectAccessible(page, "namespaces");
});

test("the inspect page shows which number was meant by one with a similar character", async () => {
  const { page, visit, url } = await openConsole(browser());
  const { firstRun: run } = await lease(url, { name: "importer" });
  // One with a zero, which is typed as the letter.
  const real = Array.from({ length: 16_384 }, (_, sequence) => encodeCallNumber({ version: 0, run, sequence })).find(
    (callNumber) => callNumber.startsWith("0"),
  ) as string;
  await visit(`/main/inspect/${real.replace("0", "O")}`);
  await page.getByText("Perhaps this was meant").waitFor();
  await expectAccessible(page, "hint");
  await page.getByRole("link", { name: real, exact: true }).click();
  await page.getByText("Leased, but not reported").waitFor();
  expect(await page.getByLabel("A call number").inputValue()).toBe(real);
  await page.getByRole("link", { name: `All about run ${run}` }).click();
  await expectHeading(page, `Run ${run}`);
});
