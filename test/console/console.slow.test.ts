/** The operators' page in a real Chromium, before a real coordinator with real leases. */
import { join } from "node:path";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { callnumber, folderForTest, serve, serveProcess } from "../processes/command.js";
import { mustBeAccessible } from "./accessibility.js";
import {
  CHROMIUM,
  chromiumForFile,
  DESK,
  heading,
  mustNotScrollSideways,
  newPage,
  PHONE,
  screenshot,
  WITHOUT_CHROMIUM,
} from "./browser.js";
import { lease, report } from "./leases-for-console.js";
import { answerWithAlarms, answerWithFencedNamespace, answerWithHistory } from "./made-up-answers.js";
import { openConsole } from "./opened-console.js";

if (CHROMIUM === undefined) console.warn(WITHOUT_CHROMIUM);

const browser = chromiumForFile();

const rows = (page: Page) => page.locator("table.leases tbody tr");
const focusedText = (page: Page) => page.evaluate<string>("document.activeElement.textContent.trim()");

describe.skipIf(CHROMIUM === undefined)("the console", () => {
  test("of a new store says what to type to begin, and that works", async () => {
    const { page, visit, coordinator } = await openConsole(browser());
    await visit("/main");
    await page.getByText("No run was leased yet").waitFor();
    const command = await page.locator(".beginning .command code").textContent();
    expect(command).toBe(`callnumber next --coordinator ${coordinator.url} --namespace main`);
    expect((await callnumber((command as string).split(" ").slice(1))).code).toBe(0);
    // Without a reload.
    await page.getByText("No run was leased yet").waitFor({ state: "detached" });
    await page.getByText("run 1 leased to").waitFor();
  });

  test("shows a lease at once, in the overview and in the list of runs", async () => {
    const { page, visit, coordinator } = await openConsole(browser());
    // Without its clock the page asks again only because it was told to.
    await page.addInitScript("globalThis.setInterval = () => 0");
    await lease(coordinator.url, { name: "first" });
    await visit("/main/runs");
    await expect.poll(() => rows(page).count()).toBe(1);
    const { firstRun } = await lease(coordinator.url, { name: "second", runCount: 3 });
    await expect.poll(() => rows(page).count()).toBe(2);
    expect(await rows(page).first().textContent()).toContain(`${firstRun} to ${firstRun + 2}`);
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByText(`runs ${firstRun} to ${firstRun + 2} leased to second`).waitFor();
    await page
      .locator(".figures")
      .getByText(String(firstRun + 2), { exact: true })
      .first()
      .waitFor();
  });

  test("filters, and keeps the filters in the address, through back and reload", async () => {
    const { page, visit, coordinator } = await openConsole(browser());
    for (const name of ["one", "two", "one"]) await lease(coordinator.url, { name });
    await visit("/main/runs");
    await expect.poll(() => rows(page).count()).toBe(3);
    await page.getByLabel("Holder", { exact: true }).fill("one");
    await page.keyboard.press("Enter");
    await expect.poll(() => rows(page).count()).toBe(2);
    expect(page.url()).toContain("holder=one");
    await page.reload();
    await expect.poll(() => rows(page).count()).toBe(2);
    expect(await page.getByLabel("Holder", { exact: true }).inputValue()).toBe("one");
    for (const format of ["csv", "ndjson"]) {
      const address = await page.getByRole("link", { name: format.toUpperCase(), exact: true }).getAttribute("href");
      expect(address).toBe(`${coordinator.url}/v1/namespaces/main/export?format=${format}&holder=one`);
    }
    await page.goBack();
    await expect.poll(() => rows(page).count()).toBe(3);
    await visit("/main/runs?holder=nobody");
    await page.getByText("No lease matches.").waitFor();
  });

  test("pages through the ledger and back", async () => {
    const { page, visit, coordinator } = await openConsole(browser());
    // More than a page; two at once, because a young store has little room.
    for (let count = 0; count < 53; count++) await lease(coordinator.url, { name: `importer-${count}` });
    await visit("/main/runs");
    await expect.poll(() => rows(page).count()).toBe(50);
    await page.getByRole("link", { name: "Older" }).click();
    await expect.poll(() => rows(page).count()).toBe(3);
    expect(await rows(page).last().textContent()).toContain("importer-0");
    await page.goBack();
    await expect.poll(() => rows(page).count()).toBe(50);
    await page.goForward();
    await page.getByRole("link", { name: "Newest" }).click();
    await expect.poll(() => rows(page).count()).toBe(50);
  });

  test("shows a run with every field, each run of its lease, and the ones beside it", async () => {
    const { page, visit, coordinator } = await openConsole(browser());
    await lease(coordinator.url, { name: "before" });
    const held = await lease(coordinator.url, {
      name: "importer",
      host: "mail-7",
      runCount: 3,
      labels: { archive: "lists", team: "a" },
    });
    await report(coordinator.url, held, 8191, "open");
    await visit(`/main/runs/${held.firstRun}`);
    await page.getByText("8,192 of 16,384 numbers, so far").waitFor();
    const main = await page.locator("main").innerText();
    for (const part of [
      "importer",
      "mail-7",
      "4711",
      "archive=lists, team=a",
      `${held.firstRun} to ${held.firstRun + 2}`,
    ])
      expect(main).toContain(part);
    expect(await page.locator(".run-bars li").count()).toBe(3);
    await page.getByRole("link", { name: `Before: run ${held.firstRun - 1}` }).click();
    await page.getByText("before", { exact: true }).waitFor();
    await visit("/main/runs/900000");
    await page.getByText("No holder has this run").waitFor();
  });

  test("inspects a number out of a whole address, and says who made it", async () => {
    const { page, visit, coordinator } = await openConsole(browser());
    const held = await lease(coordinator.url, { name: "importer", labels: { archive: "lists" } });
    await report(coordinator.url, held, 5000, "open");
    const callNumber = encodeCallNumber({ version: 0, run: held.firstRun, sequence: 345 });
    await visit("/main/inspect");
    await page.getByLabel("A call number").fill(`https://lists.example.org/message/${callNumber}?page=2`);
    await page.getByText("Leased, and reported as made").waitFor();
    await page.getByText("this one is sequence 345").first().waitFor();
    await expect.poll(() => page.url()).toContain(`/inspect/${callNumber}`);
    expect(await page.locator(".parts dd").allTextContents()).toEqual(["0", String(held.firstRun), "345"]);
    const bits = await page.locator(".bits").first().textContent();
    expect(bits).toBe((held.firstRun * 2 ** 14 + 345).toString(2).padStart(47, "0"));
    const beyond = encodeCallNumber({ version: 0, run: held.firstRun, sequence: 9000 });
    await visit(`/main/inspect/${beyond}`);
    await page.getByText("Leased, but not reported").waitFor();
    await visit(`/main/inspect/${encodeCallNumber({ version: 0, run: 99_000, sequence: 1 })}`);
    await page.getByText("Never leased", { exact: true }).waitFor();
    await visit("/main/inspect/2VznWE2_");
    expect(await page.locator(".spelling .wrong").textContent()).toBe("_");
  });

  test("takes a number apart although the coordinator is gone", async () => {
    const { page, visit, coordinator } = await openConsole(browser());
    await visit("/main/inspect");
    await coordinator.stop();
    await page.getByLabel("A call number").fill("2VznWE2i");
    await page.getByRole("heading", { name: "What it is made of" }).waitFor();
    expect(await page.locator(".parts dd").allTextContents()).toEqual(["0", "99", "345"]);
    await page.getByText("No response of the coordinator").waitFor();
  });

  test("is walked by keyboard alone", async () => {
    const { page, visit, coordinator } = await openConsole(browser());
    for (const name of ["one", "two", "three"]) await lease(coordinator.url, { name });
    await visit("/main");
    await page.keyboard.press("Tab");
    expect(await focusedText(page)).toBe("Skip to the page");
    await page.keyboard.press("Enter");
    expect(await page.evaluate("document.activeElement.tagName")).toBe("MAIN");
    await page.getByRole("link", { name: "Runs", exact: true }).focus();
    await page.keyboard.press("Enter");
    // The heading of the new page, as after a real one.
    await expect.poll(() => focusedText(page)).toBe("Runs");
    await expect.poll(() => rows(page).count()).toBe(3);
    for (let count = 0; count < 30 && (await focusedText(page)) !== "2"; count++) await page.keyboard.press("Tab");
    const outline = await page.evaluate<string>("getComputedStyle(document.activeElement).outlineStyle");
    expect(outline).toBe("solid");
    await page.keyboard.press("Enter");
    await expect.poll(() => focusedText(page)).toBe("Run 2");
  });

  test("says that the coordinator is away and how old everything is, and is there again by itself", async () => {
    const store = `sqlite:${join(await folderForTest(), "store.db")}`;
    const first = await serveProcess(store, "--create");
    const { page, wrongs } = await newPage(browser(), new URL(first.url).origin);
    await lease(first.url, { name: "importer" });
    await page.goto(`${first.url}/console/#/main`);
    await page.locator(".notice-title", { hasText: "Leasing is active" }).waitFor();
    await first.stop("SIGKILL");
    await page.locator(".connection.disconnected").getByText("The coordinator does not answer").waitFor();
    expect(await page.locator(".connection").getAttribute("role")).toBe("status");
    await page
      .getByText(/^As of /)
      .first()
      .waitFor();
    await screenshot(page, "away");
    await serve(store, "--port", new URL(first.url).port);
    await page.locator(".connection.disconnected").waitFor({ state: "detached" });
    await expect.poll(() => page.locator(".stale").count()).toBe(0);
    expect(wrongs()).toEqual([]);
  });

  test("says what is wrong, and what to type with the store id filled in", async () => {
    const { page, visit } = await openConsole(browser());
    await answerWithFencedNamespace(page);
    await visit("/main/recovery");
    await page.getByText("Nothing to do: ").waitFor();
    await visit("/lists/recovery");
    await page.locator(".notice-title", { hasText: "Leasing is stopped" }).waitFor();
    const commands = await page.locator(".steps code").allTextContents();
    expect(commands).toEqual([
      expect.stringMatching(
        /^callnumber recover --store STORE_URL --namespace lists --store-id 519e69f5-\S+ --min-run 65735$/,
      ),
    ]);
    await page.getByText("STORE_URL is what the coordinator was started with").waitFor();
    // The button says what happened, whether the browser lets it or not.
    await page
      .getByRole("button", { name: /^Copy: / })
      .first()
      .click();
    await page.getByText(/^(Copied|Select it, and copy by hand)$/).waitFor();
    await visit("/lists");
    await page.getByRole("link", { name: "What happened, and what to do" }).click();
    await expect.poll(() => heading(page).textContent()).toBe("Recovery");
  });

  test("shows alarms before anything else, the worst first", async () => {
    const { page, visit, coordinator } = await openConsole(browser());
    await lease(coordinator.url, { name: "importer" });
    await answerWithAlarms(page);
    await visit("/main");
    await expect.poll(() => page.locator("main .notice-title").count()).toBeGreaterThan(2);
    expect((await page.locator("main .notice-title").allTextContents()).slice(0, 2)).toEqual([
      "Act now: holder share",
      "Warning: runs used 80",
    ]);
  });

  test("asks no more often because it is refused", async () => {
    const { page, visit } = await openConsole(browser());
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await visit("/nobody");
    await page.getByText("No status").waitFor();
    const count = () => asked.filter((path) => path.endsWith("/nobody/status")).length;
    const before = count();
    // Each refusal is told by the stream; were it taken for news, there would be one more question each second.
    await page.waitForTimeout(5_000);
    expect(count() - before).toBeLessThanOrEqual(1);
  });

  test("follows the colors of the system", async () => {
    const { page, visit } = await openConsole(browser(), { colorScheme: "dark" });
    await visit("/main");
    const ground = () => page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
    const dark = await ground();
    await page.emulateMedia({ colorScheme: "light" });
    expect(await ground()).not.toBe(dark);
  });

  test("works behind a path that a proxy puts before it", async () => {
    const { coordinator } = await openConsole(browser());
    const { page, wrongs } = await newPage(browser(), "http://proxy.test");
    await page.route("http://proxy.test/**", async (route) => {
      const { pathname, search } = new URL(route.request().url());
      expect(pathname.startsWith("/numbers/")).toBe(true);
      const answer = await fetch(`${coordinator.url}${pathname.replace("/numbers", "")}${search}`, {
        redirect: "manual",
        headers: { "accept-encoding": "identity" },
      });
      if (answer.headers.get("content-type")?.startsWith("text/event-stream")) {
        await answer.body?.cancel();
        await route.fulfill({ contentType: "text/event-stream", body: "retry: 60000\n\n" });
        return;
      }
      const headers = Object.fromEntries(answer.headers);
      await route.fulfill({ status: answer.status, headers, body: Buffer.from(await answer.arrayBuffer()) });
    });
    await page.goto("http://proxy.test/numbers/console/#/main");
    await page.locator(".notice-title", { hasText: "Leasing is active" }).waitFor();
    expect(wrongs()).toEqual([]);
  });
});

const PLACES = ["overview", "runs", "run", "inspect", "malformed", "recovery", "stopped"] as const;

describe.skipIf(CHROMIUM === undefined)("every page", () => {
  test.each([
    ["light at 390 pixels", { viewport: PHONE, colorScheme: "light" }],
    ["dark at 390 pixels", { viewport: PHONE, colorScheme: "dark" }],
    ["light at 1,440 pixels", { viewport: DESK, colorScheme: "light" }],
    ["dark at 1,440 pixels", { viewport: DESK, colorScheme: "dark" }],
  ] as const)("is open to everybody and fits the window, %s", async (name, options) => {
    const { page, visit, coordinator } = await openConsole(browser(), options);
    const suffix = name.replaceAll(/[ ,]/g, "-");
    await visit("/main");
    await page.getByText("No run was leased yet").waitFor();
    await mustBeAccessible(page);
    await mustNotScrollSideways(page);
    await screenshot(page, `empty-${suffix}`);
    for (const importer of ["list-importer", "backfill", "as-long-a-name-as-a-holder-may-have".padEnd(64, "-x")])
      await lease(coordinator.url, {
        name: importer,
        host: "batch-17.berlin.example.org",
        labels: { archive: "lists" },
      });
    const held = await lease(coordinator.url, { name: "list-importer", runCount: 12, labels: { archive: "lists" } });
    await report(coordinator.url, held, 9000, "open");
    await answerWithFencedNamespace(page);
    await answerWithAlarms(page);
    await answerWithHistory(page);
    const callNumber = encodeCallNumber({ version: 0, run: held.firstRun, sequence: 2000 });
    const places: Record<(typeof PLACES)[number], string> = {
      overview: "/main",
      runs: "/main/runs",
      run: `/main/runs/${held.firstRun}`,
      inspect: `/main/inspect/${callNumber}`,
      malformed: "/main/inspect/2VznWE2_",
      recovery: "/main/recovery",
      stopped: "/lists/recovery",
    };
    for (const place of PLACES) {
      await visit(places[place]);
      // A reload, so that nothing is left of the place before.
      await page.reload({ waitUntil: "load" });
      await heading(page).waitFor();
      await page.locator("main .pending").first().waitFor({ state: "detached" });
      if (place === "overview") await page.locator(".bars span").first().waitFor();
      await mustBeAccessible(page);
      await mustNotScrollSideways(page);
      await screenshot(page, `${place}-${suffix}`);
    }
  });
});

describe("the address of the console", () => {
  test("leads there without its last slash, and nothing else of the coordinator bears the policy of the page", async () => {
    const { url } = await serve(`sqlite:${join(await folderForTest(), "store.db")}`, "--create");
    const link = await fetch(`${url}/console`, { redirect: "manual" });
    expect([link.status, link.headers.get("location"), await link.text()]).toEqual([
      200,
      null,
      expect.stringContaining('<a href="console/">'),
    ]);
    const page = await fetch(`${url}/console/`);
    expect(page.headers.get("content-security-policy")).toMatch(/^default-src 'none';/);
    expect(page.headers.get("content-security-policy")).not.toContain("unsafe");
    const script = /src="\.\/(assets\/[^"]+\.js)"/.exec(await page.text())?.[1];
    const plain = await fetch(`${url}/console/${script}`, { headers: { "accept-encoding": "identity" } });
    const gzipped = await fetch(`${url}/console/${script}`, { headers: { "accept-encoding": "gzip" } });
    expect([plain.headers.get("content-encoding"), gzipped.headers.get("content-encoding")]).toEqual([null, "gzip"]);
    expect(await gzipped.text()).toBe(await plain.text());
    expect((await fetch(`${url}/healthz`)).headers.get("content-security-policy")).toBeNull();
    expect((await fetch(`${url}/console/../package.json`)).status).toBe(404);
    expect((await fetch(`${url}/console/%2e%2e/%2e%2e/package.json`)).status).toBe(404);
  });
});
