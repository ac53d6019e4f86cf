/** The operators' page in a real Chromium, before a real coordinator with real leases: what happens appears without a reload. */
import { join } from "node:path";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { removeRestartMarker } from "../../packages/coordinator/src/stores/sqlite/restart-marker.js";
import { callnumber, folderForTest, serve, serveProcess } from "../processes/command.js";
import { chromiumForFile, expectAccessible, expectHeading, heading, newPage, untilLoaded, WINDOWS } from "./browser.js";
import { lease, openConsole, report } from "./consoles.js";
import { respondWithAlarms, respondWithHistory, respondWithStoppedNamespace } from "./fixed-responses.js";

const browser = chromiumForFile();

const rows = (page: Page) => page.locator("table.leases tbody tr");
const focusedText = (page: Page) => page.evaluate<string>("document.activeElement.textContent.trim()");

test("the console of a new store shows a command that begins, and each lease at once, also in the list of runs", async () => {
  const { page, visit, url } = await openConsole(browser());
  // Without its timer the page repeats a request only because of an event.
  await page.addInitScript("globalThis.setInterval = () => 0");
  await visit("/main");
  await page.getByText("No run was leased yet").waitFor();
  const line = await page.locator(".beginning .command code").textContent();
  expect(line).toBe(`callnumber next --coordinator ${url} --namespace main`);
  expect((await callnumber((line as string).split(" ").slice(1))).code).toBe(0);
  await page.getByText("No run was leased yet").waitFor({ state: "detached" });
  await page.getByText("run 1 leased to").waitFor();
  await visit("/main/runs");
  await expect.poll(() => rows(page).count()).toBe(1);
  const { firstRun } = await lease(url, { name: "second", runCount: 3 });
  await expect.poll(() => rows(page).count()).toBe(2);
  expect(await rows(page).first().textContent()).toContain(`${firstRun}-${firstRun + 2}`);
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByText(`runs ${firstRun}-${firstRun + 2} leased to second`).waitFor();
  await page
    .locator(".figures")
    .getByText(String(firstRun + 2), { exact: true })
    .first()
    .waitFor();
});

test("the runs page pages through the ledger and back", async () => {
  const { page, visit, url } = await openConsole(browser());
  // More than a page; two at once, because a young store has little room.
  for (let count = 0; count < 53; count++) await lease(url, { name: `importer-${count}` });
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

test("the page of a run shows every field, each run of its lease, and the leases next to it", async () => {
  const { page, visit, url } = await openConsole(browser());
  await lease(url, { name: "before" });
  const held = await lease(url, {
    name: "importer",
    host: "mail-7",
    runCount: 3,
    labels: { archive: "lists", team: "a" },
  });
  await report(url, held, 8191, "open");
  await visit(`/main/runs/${held.firstRun}`);
  await page.getByText("8,192 of 16,384 numbers, so far").waitFor();
  const main = await page.locator("main").innerText();
  const runs = `${held.firstRun}-${held.firstRun + 2}`;
  for (const part of ["importer", "mail-7", "4711", "archive=lists, team=a", runs]) expect(main).toContain(part);
  expect(await page.locator(".run-bars li").count()).toBe(3);
  await page.getByRole("link", { name: `Before: run ${held.firstRun - 1}` }).click();
  await page.getByText("before", { exact: true }).waitFor();
  await visit("/main/runs/900000");
  await page.getByText("No lease has this run").waitFor();
});

test("the inspect page finds a number in a URL, and shows who made it", async () => {
  const { page, visit, url } = await openConsole(browser());
  const held = await lease(url, { name: "importer", labels: { archive: "lists" } });
  await report(url, held, 5000, "open");
  const callNumber = encodeCallNumber({ version: 0, run: held.firstRun, sequence: 345 });
  await visit("/main/inspect");
  await page.getByLabel("A call number").fill(`https://lists.example.org/message/${callNumber}?page=2`);
  await page.getByText("Leased, and reported as made").waitFor();
  await page.getByText("this one is sequence 345").first().waitFor();
  await expect.poll(() => page.url()).toContain(`/inspect/${callNumber}`);
  await expect.poll(() => page.locator(".parts dd").allTextContents()).toEqual(["0", String(held.firstRun), "345"]);
  const bits = await page.locator(".bits").first().textContent();
  expect(bits).toBe((held.firstRun * 2 ** 14 + 345).toString(2).padStart(47, "0"));
  const beyond = encodeCallNumber({ version: 0, run: held.firstRun, sequence: 9000 });
  await visit(`/main/inspect/${beyond}`);
  await page.getByText("Leased, but not reported").waitFor();
  await visit(`/main/inspect/${encodeCallNumber({ version: 0, run: 99_000, sequence: 1 })}`);
  await page.getByText("Never leased", { exact: true }).waitFor();
  await visit("/main/inspect/2VznWE2_");
  expect(await page.locator(".spelling .wrong").textContent()).toBe("_");
  await page.getByLabel("A call number").fill(`${callNumber} or ${beyond}`);
  await page.getByText("Choose a call number").waitFor();
  await page.getByRole("link", { name: beyond }).click();
  await page.getByText("Leased, but not reported").waitFor();
});

test("the console can be used by keyboard alone", async () => {
  const { page, visit, url } = await openConsole(browser());
  for (const name of ["one", "two", "three"]) await lease(url, { name });
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

test("the console shows that the coordinator is gone and how old everything is, decodes anyway, and reconnects", async () => {
  const store = `sqlite:${join(await folderForTest(), "store.db")}`;
  const first = await serveProcess(store, "--create");
  const page = await newPage(browser(), new URL(first.url).origin);
  await lease(first.url, { name: "importer" });
  await page.goto(`${first.url}/console/#/main`);
  await page.locator(".notice-title", { hasText: "Leasing is active" }).waitFor();
  await first.stop("SIGKILL");
  await page.locator(".notice-title", { hasText: "Leasing was active" }).waitFor();
  expect(await page.locator(".notice-title", { hasText: "Leasing is active" }).count()).toBe(0);
  await page.locator(".connection.disconnected").getByText("The coordinator does not answer").waitFor();
  expect(await page.locator(".connection").getAttribute("role")).toBe("status");
  await page
    .getByText(/^As of /)
    .first()
    .waitFor();
  await page.getByRole("link", { name: "Inspect", exact: true }).click();
  await page.getByLabel("A call number").fill("2VznWE2i");
  await page.getByText("No response of the coordinator").waitFor();
  await page.getByRole("heading", { name: "What it is made of" }).waitFor();
  await expect.poll(() => page.locator(".parts dd").allTextContents()).toEqual(["0", "99", "345"]);
  await serve(store, "--port", new URL(first.url).port);
  await page.locator(".connection.disconnected").waitFor({ state: "detached" });
  await expect.poll(() => page.locator(".stale").count()).toBe(0);
});

test("the console claims to be live only while the coordinator answers, also where one that hangs keeps its connections open", async () => {
  const store = `sqlite:${join(await folderForTest(), "store.db")}`;
  const { url, child } = await serveProcess(store, "--create");
  const page = await newPage(browser(), new URL(url).origin);
  // Sooner than in a real page: requests are repeated, and given up.
  await page.addInitScript(`
    const [repeat, timeout] = [setInterval, AbortSignal.timeout.bind(AbortSignal)];
    globalThis.setInterval = (act, ms) => repeat(act, ms / 15);
    AbortSignal.timeout = (ms) => timeout(ms / 10);
  `);
  await page.goto(`${url}/console/#/main`);
  const state = page.locator(".connection.connected");
  await state.getByText("Live: changes appear automatically").waitFor();
  child.kill("SIGSTOP");
  await state.getByText("The last request failed: what is shown is from before").waitFor();
  expect(await page.getByText("Live: ").count()).toBe(0);
  child.kill("SIGCONT");
  await state.getByText("Live: changes appear automatically").waitFor();
  await expect.poll(() => page.locator(".stale").count()).toBe(0);
});

test("the console shows a recovery: its reason, and which runs it skipped", async () => {
  const path = join(await folderForTest(), "store.db");
  const first = await serveProcess(`sqlite:${path}`, "--create");
  await lease(first.url, { name: "importer" });
  const page = await newPage(browser(), new URL(first.url).origin);
  await page.goto(`${first.url}/console/#/main/recovery`);
  await page.getByText("Nothing to do: ").waitFor();
  await first.stop("SIGKILL");
  // As after a power loss: the machine's memory is another one.
  removeRestartMarker(path);
  await serve(`sqlite:${path}`, "--port", new URL(first.url).port);
  await page.getByText(/^recovered \(epoch changed\): skipped from run 1 to run [\d,]+/).waitFor();
  await page.getByText(/^recovering: /).waitFor();
  await page.getByText("Nothing to do: ").waitFor();
});

test("the recovery page shows what is wrong, and the command with the store id filled in", async () => {
  const { page, visit } = await openConsole(browser());
  await respondWithStoppedNamespace(page);
  await visit("/main/recovery");
  await page.getByText("Nothing to do: ").waitFor();
  await visit("/lists/recovery");
  await page.locator(".notice-title", { hasText: "Leasing is stopped" }).waitFor();
  await expect
    .poll(() => page.locator(".steps code").allTextContents())
    .toEqual([
      expect.stringMatching(
        /^callnumber recover --store STORE_URL --namespace lists --store-id 519e69f5-\S+ --min-run 0\/65735$/,
      ),
    ]);
  await page.getByText("STORE_URL is what the coordinator was started with").waitFor();
  // Whether the browser allows it or not.
  await page
    .getByRole("button", { name: /^Copy: / })
    .first()
    .click();
  await page.getByText(/^(Copied|Select it, and copy by hand)$/).waitFor();
  await visit("/lists");
  await page.getByRole("link", { name: "What happened, and what to do" }).click();
  await expectHeading(page, "Recovery");
});

test("the console repeats a rejected request at most once in five seconds", async () => {
  const { page, visit } = await openConsole(browser());
  const requested: string[] = [];
  page.on("request", (request) => requested.push(new URL(request.url()).pathname));
  await visit("/missing");
  await page.getByText("Whether runs are leased is not known").waitFor();
  const count = () => requested.filter((path) => path.endsWith("/missing/status")).length;
  const before = count();
  // The stream reports each rejection; if it counted as a change, there would be one more request each second.
  await page.waitForTimeout(5_000);
  expect(count() - before).toBeLessThanOrEqual(1);
});

test("the console works behind a path that a proxy puts before it", async () => {
  const { url } = await openConsole(browser());
  const page = await newPage(browser(), "http://proxy.test");
  await page.route("http://proxy.test/**", async (route) => {
    const { pathname, search } = new URL(route.request().url());
    expect(pathname.startsWith("/numbers/")).toBe(true);
    const response = await fetch(`${url}${pathname.replace("/numbers", "")}${search}`, {
      redirect: "manual",
      headers: { "accept-encoding": "identity" },
    });
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
      await response.body?.cancel();
      await route.fulfill({ contentType: "text/event-stream", body: "retry: 60000\n\n" });
      return;
    }
    const headers = Object.fromEntries(response.headers);
    await route.fulfill({ status: response.status, headers, body: Buffer.from(await response.arrayBuffer()) });
  });
  await page.goto("http://proxy.test/numbers/console/#/main");
  await page.locator(".notice-title", { hasText: "Leasing is active" }).waitFor();
});

test.each(WINDOWS)(
  "every page is accessible, fits the window, and follows the colors of the system, %s",
  async (name, options) => {
    const { page, visit, url } = await openConsole(browser(), options);
    await visit("/main");
    await page.getByText("No run was leased yet").waitFor();
    await expectAccessible(page, `empty ${name}`);
    const background = () => page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
    const ownBackground = await background();
    await page.emulateMedia({ colorScheme: options.colorScheme === "dark" ? "light" : "dark" });
    expect(await background()).not.toBe(ownBackground);
    await page.emulateMedia({ colorScheme: options.colorScheme });
    const host = "batch-17.berlin.example.org";
    const labels = { archive: "lists" };
    for (const holder of ["list-importer", "backfill", "as-long-a-name-as-a-holder-may-have".padEnd(64, "-x")])
      await lease(url, { name: holder, host, labels });
    const held = await lease(url, { name: "list-importer", runCount: 12, labels });
    await report(url, held, 9000, "open");
    await respondWithStoppedNamespace(page);
    await respondWithAlarms(page);
    await respondWithHistory(page);
    const callNumber = encodeCallNumber({ version: 0, run: held.firstRun, sequence: 2000 });
    for (const [pageName, place] of [
      ["overview", "/main"],
      ["runs", "/main/runs"],
      ["run", `/main/runs/${held.firstRun}`],
      ["inspect", `/main/inspect/${callNumber}`],
      ["malformed", "/main/inspect/2VznWE2_"],
      ["recovery", "/main/recovery"],
      ["stopped", "/lists/recovery"],
    ] as const) {
      await visit(place);
      // A reload, so that nothing is left of the page before.
      await page.reload({ waitUntil: "load" });
      await heading(page).waitFor();
      await untilLoaded(page);
      if (pageName === "overview") {
        await page.locator(".chart rect").first().waitFor();
        // Alarms before anything else, the worst first.
        const notices = await page.locator("main .notice-title").allTextContents();
        expect(notices.slice(0, 2)).toEqual(["Act now: holder restarts", "Warning: runs used 80"]);
      }
      await expectAccessible(page, `${pageName} ${name}`);
    }
  },
);
