/** What befalls a real store is seen on the page as it happens, with nobody reloading anything. */
import { join } from "node:path";
import { pathOf } from "@callnumber/protocol/wire";
import { Redis } from "ioredis";
import { describe, test } from "vitest";
import { removeRestartMarker } from "../../packages/coordinator/src/stores/sqlite/restart-marker.js";
import { callnumber, folderForTest, serve, serveProcess } from "../processes/command.js";
import { ownServerUnavailable, startRedisServer } from "../redis/test-redis.js";
import { mustBeAccessible } from "./accessibility.js";
import { CHROMIUM, chromiumForFile, newPage, screenshot } from "./browser.js";
import { lease } from "./leases-for-console.js";

const browser = chromiumForFile();

describe.skipIf(CHROMIUM === undefined)("the page", () => {
  test("tells a doubt that was settled: what it was, and from where to where it jumped", async () => {
    const path = join(await folderForTest(), "store.db");
    const first = await serveProcess(`sqlite:${path}`, "--create");
    await lease(first.url, { name: "importer" });
    const { page } = await newPage(browser(), new URL(first.url).origin);
    await page.goto(`${first.url}/console/#/main/recovery`);
    await page.getByText("Nothing to do: ").waitFor();
    await first.stop("SIGKILL");
    // As after a power loss: the machine's memory is another one.
    removeRestartMarker(path);
    await serve(`sqlite:${path}`, "--port", new URL(first.url).port);
    await page.getByText(/^recovered \(epoch changed\): skipped from run 1 to run [\d,]+/).waitFor();
    await page.getByText(/^recovering: /).waitFor();
    await page.getByText("Nothing to do: ").waitFor();
    await screenshot(page, "after-a-jump");
  });

  test("tells that the store was emptied, and what to type with the store id that is remembered", async ({ skip }) => {
    const unavailable = ownServerUnavailable();
    if (unavailable !== undefined) skip(unavailable);
    const { url: testerUrl, storeUrl } = await startRedisServer();
    await callnumber(["init", "--store", storeUrl]);
    const { url } = await serve(storeUrl);
    const { storeId } = await lease(url, { name: "importer" });
    const { page } = await newPage(browser(), new URL(url).origin);
    await page.goto(`${url}/console/#/main`);
    await page.locator(".notice-title", { hasText: "Leasing is active" }).waitFor();
    const redis = new Redis(testerUrl);
    await redis.flushall();
    redis.disconnect();
    // An importer asks, and is refused; whoever watches sees why.
    await fetch(`${url}${pathOf("leases", { namespace: "main" })}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        runCount: 1,
        nonce: "nonce-of-this-request",
        holder: { name: "importer", host: "mail-1", pid: 1, labels: {} },
        lastRun: null,
        receipt: null,
        sentAtMs: Date.now(),
      }),
    });
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
    await mustBeAccessible(page);
    await screenshot(page, "emptied");
  });
});
