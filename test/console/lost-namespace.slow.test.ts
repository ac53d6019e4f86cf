/** A namespace that is lost while its console is open: the headline changes at once, and one banner has the message. */
import { pathOf } from "@callnumber/protocol/api";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { callnumber, serve } from "../processes/command.js";
import { command } from "../redis/redis-command.js";
import { ownServerUnavailable, startRedisServer } from "../redis/test-redis.js";
import { chromiumForFile, expectAccessible, expectHeading, newPage } from "./browser.js";
import { lease, openConsole, post } from "./consoles.js";
import { respondWithStoppedNamespace } from "./fixed-responses.js";

const browser = chromiumForFile();

const title = (page: Page) => page.locator("main .notice-title");
const MESSAGE = "is missing, but runs up to 2 were leased or skipped. Nothing is leased.";

/** Holds the response to each request that matches until it is released, as a slow network does. `held` are their paths. */
async function hold(page: Page, pattern: string) {
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const holding = { held: [] as string[], release };
  await page.route(pattern, async (route) => {
    const response = await route.fetch();
    holding.held.push(new URL(route.request().url()).pathname);
    await released;
    await route.fulfill({ response }).catch(() => {});
  });
  return holding;
}

/** Notes in `titles` each title that the page shows from now on. */
const NOTE_TITLES = `
  titles = [];
  new MutationObserver(() => {
    const title = document.querySelector("main .notice-title");
    titles.push(title === null ? "" : title.textContent.replace(/,.*/, ""));
  }).observe(document.body, { subtree: true, childList: true, characterData: true })`;

test("the console shows at once that the namespace is lost, once, with the command and its store", async ({ skip }) => {
  const unavailable = ownServerUnavailable();
  if (unavailable !== undefined) skip(unavailable);
  const redis = await startRedisServer();
  await callnumber(["init", "--store", redis.storeUrl]);
  const { url } = await serve(redis.storeUrl);
  const { storeId } = await lease(url, { name: "importer" });
  const page = await newPage(browser(), new URL(url).origin);
  await page.goto(`${url}/console/#/main`);
  await title(page).getByText("Leasing is active").waitFor();
  await page.getByText("1 holder, 1 live").waitFor();
  // No response from here on: the event alone changes the headline. Those that were underway when it came are older.
  const responses = await hold(page, "**/v1/namespaces**");
  await lease(url, { name: "importer" });
  const paths = ["/v1/namespaces", "/v1/namespaces/main/status"];
  await expect.poll(() => responses.held).toEqual(expect.arrayContaining(paths));
  await page.evaluate(NOTE_TITLES);
  await command(redis, "FLUSHALL");
  const holder = { name: "importer", host: "mail-1", pid: 1, labels: {} };
  const request = { runCount: 1, nonce: "nonce-of-this-request", holder, sentAtMs: Date.now() };
  await post(`${url}${pathOf("leases", { namespace: "main" })}`, { ...request, lastRun: null, proof: null });
  await title(page).getByText("Leasing is stopped").waitFor();
  responses.release();
  // Status, chart and holders: nothing of before is left, and the message is not repeated.
  await expect.poll(() => page.getByText(/^Not available: /).count()).toBe(3);
  const titles = await page.evaluate<readonly string[]>("titles");
  expect(titles).toContain("Leasing is stopped");
  expect(titles.slice(titles.indexOf("Leasing is stopped"))).not.toContain("Leasing is active");
  expect(await page.getByText(MESSAGE).count()).toBe(1);
  const text = await page.locator("main").innerText();
  expect(text).not.toContain("STORE_URL");
  expect(text).toContain('leasing stopped: namespace "main" is missing, but runs up to 2 were leased or skipped');
  await expectAccessible(page, "lost");
  for (const [name, heading] of [
    ["Runs", "Runs"],
    ["Inspect", "Inspect"],
    ["Recovery", "Recovery"],
  ] as const) {
    await page.getByRole("link", { name, exact: true }).click();
    await expectHeading(page, heading);
    await title(page).getByText("Leasing is stopped").waitFor();
    await expect.poll(() => page.getByText(MESSAGE).count()).toBe(1);
  }
  const { username, password } = new URL(redis.storeUrl);
  const shown = await page.locator("main").innerText();
  expect(shown).not.toContain("STORE_URL");
  expect(shown).not.toContain(password);
  expect(username).not.toBe("");
  await page
    .locator(".steps code")
    .getByText(
      new RegExp(`^callnumber recover --store '?redis://\\S+ --namespace main --store-id ${storeId} --min-run 0/2$`),
    )
    .first()
    .waitFor();
  await expectAccessible(page, "emptied");
});

test("a status request that fails changes the headline at once, and so does the list of namespaces after it", async () => {
  const { page, visit, url } = await openConsole(browser());
  await lease(url, { name: "importer" });
  await visit("/main");
  await title(page).getByText("Leasing is active").waitFor();
  const { release } = await hold(page, "**/v1/namespaces");
  const message = 'namespace "main" is missing, but runs up to 65735 were leased or skipped';
  await page.route("**/v1/namespaces/main/status", (route) =>
    route.fulfill({ status: 409, json: { code: "namespace_lost", message } }),
  );
  await lease(url, { name: "second" });
  await title(page).getByText("Whether runs are leased is not known").waitFor();
  await page.getByText("but runs up to 65735 were leased or skipped").waitFor();
  await page.getByText(/^Not available: /).waitFor();
  expect(await title(page).getByText("Leasing is active").count()).toBe(0);
  // The list is newer, and knows the state where the status can't be read.
  await page.unroute("**/v1/namespaces");
  await respondWithStoppedNamespace(page);
  release();
  await lease(url, { name: "third" });
  await title(page).getByText("Leasing is active").waitFor();
});

test("an event of an earlier state, which is sent again, changes no headline", async () => {
  const { page, visit, url } = await openConsole(browser());
  await lease(url, { name: "importer" });
  const event = { id: 1, atMs: 1_000, level: "warn", event: "stopped", namespace: "main", code: "namespace_lost" };
  const data = JSON.stringify({ ...event, fields: { explanation: "an earlier one" } });
  await page.route("**/v1/events?*", (route) =>
    route.fulfill({ contentType: "text/event-stream", body: `retry: 60000\n\nid: a-1\ndata: ${data}\n\n` }),
  );
  await visit("/main/recovery");
  await page.getByText("leasing stopped: an earlier one").first().waitFor();
  expect(await title(page).getByText("Leasing is stopped").count()).toBe(0);
});
