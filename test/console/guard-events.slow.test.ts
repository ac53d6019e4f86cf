/** What happens to a real store appears on the page without a reload. */
import { join } from "node:path";
import { pathOf } from "@callnumber/protocol/wire";
import { Redis } from "ioredis";
import { test } from "vitest";
import { removeRestartMarker } from "../../packages/coordinator/src/stores/sqlite/restart-marker.js";
import { callnumber, folderForTest, serve, serveProcess } from "../processes/command.js";
import { ownServerUnavailable, startRedisServer } from "../redis/test-redis.js";
import { chromiumForFile, expectAccessible, newPage } from "./browser.js";
import { lease, post } from "./consoles.js";

const browser = chromiumForFile();

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

test("the console shows that the store was emptied, and the command with the remembered store id", async ({ skip }) => {
  const unavailable = ownServerUnavailable();
  if (unavailable !== undefined) skip(unavailable);
  const { url: testerUrl, storeUrl } = await startRedisServer();
  await callnumber(["init", "--store", storeUrl]);
  const { url } = await serve(storeUrl);
  const { storeId } = await lease(url, { name: "importer" });
  const page = await newPage(browser(), new URL(url).origin);
  await page.goto(`${url}/console/#/main`);
  await page.locator(".notice-title", { hasText: "Leasing is active" }).waitFor();
  const redis = new Redis(testerUrl);
  await redis.flushall();
  redis.disconnect();
  // An importer's request is rejected; the page shows why.
  const holder = { name: "importer", host: "mail-1", pid: 1, labels: {} };
  const request = { runCount: 1, nonce: "nonce-of-this-request", holder, sentAtMs: Date.now() };
  await post(`${url}${pathOf("leases", { namespace: "main" })}`, { ...request, lastRun: null, receipt: null });
  await page
    .locator(".events")
    .getByText(/^leasing stopped: /)
    .waitFor();
  await page.getByRole("link", { name: "Recovery", exact: true }).click();
  await page.locator(".notice-title", { hasText: "Leasing is stopped" }).waitFor();
  await page
    .locator(".steps code")
    .getByText(
      new RegExp(`^callnumber recover --store '?redis://\\S+ --namespace main --store-id ${storeId} --min-run 1$`),
    )
    .first()
    .waitFor();
  await expectAccessible(page, "emptied");
});
