/** The console of a coordinator that requires tokens, in a real Chromium: signing in and out, and what the page does when it may not read. */
import { readFile } from "node:fs/promises";
import { pathOf } from "@callnumber/protocol/api";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Coordinator } from "../../packages/coordinator/src/coordinator.js";
import { holder } from "../../packages/coordinator/test/commands-for-test.js";
import { leaseRequest } from "../../packages/coordinator/test/served.js";
import { chromiumForFile, expectAccessible, expectHeading, untilLoaded, WINDOWS } from "./browser.js";
import { IMPORTER, OF_LISTS, OPERATOR, openConsoleWithTokens, READER, signIn } from "./consoles.js";

const browser = chromiumForFile();

const leaseTo = (coordinator: Coordinator, name: string) =>
  coordinator.lease("main", leaseRequest({ holder: { ...holder, name } }));
const token = (page: Page) => page.getByLabel("Token");
/** All that a page can keep apart from the session storage, and all that it shows. */
const KEPT =
  "JSON.stringify([{ ...localStorage }, document.cookie, history.state, location.href, document.documentElement.outerHTML])";

test("the sign-in page explains a wrong token, keeps the right one in its tab alone, and opens the URL", async () => {
  const { page, visit } = await openConsoleWithTokens(browser());
  const requested: string[] = [];
  page.on("request", (request) => requested.push(new URL(request.url()).pathname));
  await visit("/main/runs?holder=importer");
  await expectHeading(page, "Sign in");
  // Nothing else is requested before the page may read.
  expect(requested.filter((path) => path.startsWith("/v1/"))).toEqual(["/v1/namespaces"]);
  await expect.poll(() => page.evaluate("document.activeElement.id")).toBe("token");
  expect(await token(page).getAttribute("type")).toBe("password");
  await page.keyboard.type(`${READER}x`);
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("No such token is known here").waitFor();
  expect(await token(page).getAttribute("aria-invalid")).toBe("true");
  // Selected: what is typed next replaces it.
  await page.keyboard.type(IMPORTER);
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("This token is for importers").waitFor();
  await page.keyboard.insertText(` ${READER}\t`);
  await page.keyboard.press("Enter");
  await expectHeading(page, "Runs");
  expect(page.url()).toMatch(/#\/main\/runs\?holder=importer$/);
  expect(await page.getByLabel("Holder", { exact: true }).inputValue()).toBe("importer");
  expect(await page.evaluate<string>(KEPT)).not.toContain(READER);
  expect(await page.context().cookies()).toEqual([]);
  await page.getByText("This tab remembers the token").waitFor();
  await page.reload();
  await expectHeading(page, "Runs");
  expect(page.url()).toMatch(/#\/main\/runs\?holder=importer$/);
  const other = await page.context().newPage();
  await other.goto(page.url());
  await expectHeading(other, "Sign in");
});

test("the console shows nothing after signing out, and the history leads back to nothing", async () => {
  const { page, visit } = await openConsoleWithTokens(browser());
  await visit("/main");
  await signIn(page, OPERATOR);
  await expectHeading(page, "Overview");
  await page.getByRole("link", { name: "Runs", exact: true }).click();
  await expectHeading(page, "Runs");
  await page.getByRole("button", { name: "Sign out" }).click();
  await expectHeading(page, "Sign in");
  expect(await page.evaluate("sessionStorage.length")).toBe(0);
  await page.reload();
  await expectHeading(page, "Sign in");
  await page.goBack();
  await expectHeading(page, "Sign in");
  expect(await page.locator("body").innerText()).not.toContain("High-water mark");
});

test("the console follows events, exports, survives a restart, and asks for a token again when it is revoked", async () => {
  const { page, visit, revoke, coordinator, restart } = await openConsoleWithTokens(browser());
  await visit("/main/runs");
  await signIn(page, OPERATOR);
  await expectHeading(page, "Runs");
  const begun = page.waitForEvent("download");
  await page.getByRole("link", { name: "NDJSON", exact: true }).click();
  expect(await readFile(await (await begun).path(), "utf8")).toContain('"end":true');
  await restart();
  await page.getByRole("link", { name: "Overview", exact: true }).click();
  await page.locator(".connection.connected").waitFor({ state: "attached" });
  await leaseTo(coordinator, "one");
  await page.getByText("run 1 leased to one").waitFor();
  revoke(OPERATOR);
  await leaseTo(coordinator, "two");
  await expectHeading(page, "Sign in");
  expect(await page.evaluate("sessionStorage.length")).toBe(0);
  await signIn(page, OPERATOR);
  await page.getByRole("alert").getByText("No such token is known here").waitFor();
});

test("the console opens at a namespace that the token grants access to, and rejects others", async () => {
  const { page, visit } = await openConsoleWithTokens(browser());
  await visit("");
  await signIn(page, OF_LISTS);
  await expectHeading(page, "Overview");
  await expect.poll(() => page.url()).toMatch(/#\/lists$/);
  await page.getByRole("combobox", { name: "Namespace" }).waitFor({ state: "detached" });
  await page.evaluate("location.hash = '#/main/runs'");
  await page.getByText("The token does not grant access to this").waitFor();
  await expectAccessible(page, "other namespace");
  await page.getByRole("combobox", { name: "Namespace" }).selectOption("lists");
  await page.getByText("No run was leased yet.").waitFor();
  expect(page.url()).toMatch(/#\/lists\/runs$/);
});

test.each([
  ["overloaded", 503],
  ["rate_limited", 429],
])("the console waits after %s, shows that, and continues automatically", async (code, status) => {
  const { page, visit } = await openConsoleWithTokens(browser());
  let rejections = 0;
  await page.route(`**${pathOf("runs", { namespace: "lists" })}?*`, (route) => {
    rejections++;
    if (rejections > 1) return route.continue();
    return route.fulfill({ status, json: { code, message: "too much is asked", retryAfterMs: 3_000 } });
  });
  await visit("/lists/runs");
  await signIn(page, READER);
  await page.getByText("in 3 seconds").waitFor();
  expect(rejections).toBe(1);
  await page.getByText("No run was leased yet.").waitFor();
  expect(rejections).toBe(2);
});

test("the console asks for a token at each load where the browser keeps nothing of pages", async () => {
  const { page, visit } = await openConsoleWithTokens(browser());
  await page.addInitScript(
    "Object.defineProperty(globalThis, 'sessionStorage', { get() { throw new DOMException('denied', 'SecurityError'); } })",
  );
  await visit("/main");
  await signIn(page, READER);
  await expectHeading(page, "Overview");
  await page.reload();
  await expectHeading(page, "Sign in");
});

test("the console works in several tabs at once", async () => {
  const { page, visit, url, coordinator } = await openConsoleWithTokens(browser());
  await visit("/main");
  await signIn(page, READER);
  const tabs = [page];
  for (let count = 0; count < 3; count++) {
    const tab = await page.context().newPage();
    await tab.goto(`${url}/console/#/main`);
    await signIn(tab, READER);
    tabs.push(tab);
  }
  await leaseTo(coordinator, "one");
  for (const tab of tabs) await tab.getByText("run 1 leased to one").waitFor();
});

test.each([WINDOWS[0], WINDOWS[3]])("the sign-in page is accessible and fits the window, %s", async (name, options) => {
  const { page, visit } = await openConsoleWithTokens(browser(), options);
  await visit("/lists");
  await expectHeading(page, "Sign in");
  await expectAccessible(page, `sign-in ${name}`);
  await signIn(page, IMPORTER);
  await page.getByRole("alert").getByText("for importers").waitFor();
  await expectAccessible(page, `sign-in-wrong ${name}`);
  await signIn(page, OF_LISTS);
  await expectHeading(page, "Overview");
  await untilLoaded(page);
  await expectAccessible(page, `signed-in ${name}`);
});
