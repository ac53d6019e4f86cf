/** The console's own door in a real Chromium: signing in and out, and what the page does when it may not ask. */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { pathOf } from "@callnumber/protocol/wire";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { mustBeAccessible } from "./accessibility.js";
import { CHROMIUM, chromiumForFile, DESK, mustNotScrollSideways, mustStandAt, PHONE, screenshot } from "./browser.js";
import { IMPORTER, OF_LISTS, OPERATOR, openClosedConsole, READER, signIn } from "./closed-console.js";

const browser = chromiumForFile();

const token = (page: Page) => page.getByLabel("Token");
/** All that a page can keep, and all that it shows. */
const KEPT =
  "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, history.state, location.href, document.documentElement.outerHTML])";

describe.skipIf(CHROMIUM === undefined)("the door of the console", () => {
  test("is opened by keyboard, tells what is wrong with a token, and leads where somebody wanted to go", async () => {
    const { page, visit } = await openClosedConsole(browser());
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await visit("/main/runs?holder=importer");
    await mustStandAt(page, "Sign in");
    // Nothing is asked for before somebody may.
    expect(asked.filter((path) => path.startsWith("/v1/"))).toEqual([]);
    await expect.poll(() => page.evaluate("document.activeElement.id")).toBe("token");
    expect(await token(page).getAttribute("type")).toBe("password");
    await page.keyboard.type(`${READER}x`);
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("No such token is known here").waitFor();
    expect(await token(page).getAttribute("aria-invalid")).toBe("true");
    // Selected: what is typed next is instead of it.
    await page.keyboard.type(IMPORTER);
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("This token is for importers").waitFor();
    await page.keyboard.insertText(` ${READER}\t`);
    await page.keyboard.press("Enter");
    await mustStandAt(page, "Runs");
    expect(page.url()).toMatch(/#\/main\/runs\?holder=importer$/);
    expect(await page.getByLabel("Holder", { exact: true }).inputValue()).toBe("importer");
    await page.getByText("Signed in with token 00000000").waitFor();
    await page.reload();
    await mustStandAt(page, "Runs");
    expect(await page.evaluate<string>(KEPT)).not.toContain(READER);
    expect(await page.evaluate("document.cookie")).toBe("");
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict", path: "/" });
    expect(await page.evaluate<string>(KEPT)).not.toContain(cookie?.value);
  });

  test("is closed behind who signs out: nothing is left in the page, and none of its history leads back", async () => {
    const { page, visit, url } = await openClosedConsole(browser());
    await visit("/main");
    await signIn(page, OPERATOR);
    await mustStandAt(page, "Overview");
    await visit("/main/runs");
    const [cookie] = await page.context().cookies();
    await page.getByRole("button", { name: "Sign out" }).click();
    await mustStandAt(page, "Sign in");
    expect(await page.context().cookies()).toEqual([]);
    await page.goBack();
    await mustStandAt(page, "Sign in");
    expect(await page.locator("body").innerText()).not.toContain("High-water mark");
    const old = await fetch(`${url}${OPERATOR_ROUTES.namespaces}`, {
      headers: { cookie: `${cookie?.name}=${cookie?.value}`, "sec-fetch-site": "same-origin" },
    });
    expect(old.status).toBe(401);
  });

  test("says that somebody is signed in no more, shows nothing more, and keeps where they were", async () => {
    const { page, visit, tokens, startAgain } = await openClosedConsole(browser());
    await visit("/main/recovery/store_emptied");
    await signIn(page, READER);
    await mustStandAt(page, "Doubt and recovery");
    await startAgain();
    await mustStandAt(page, "Sign in");
    await page.getByText("the coordinator was started again").waitFor();
    expect(await page.locator("main").innerText()).not.toContain("Leasing is open");
    await mustBeAccessible(page);
    await screenshot(page, "signed-in-no-more");
    await signIn(page, OPERATOR);
    await mustStandAt(page, "Doubt and recovery");
    expect(page.url()).toMatch(/#\/main\/recovery\/store_emptied$/);
    tokens.revoke(OPERATOR);
    await page.reload();
    await mustStandAt(page, "Sign in");
    await signIn(page, OPERATOR);
    await page.getByRole("alert").getByText("No such token is known here").waitFor();
  });

  test("leads to what a token is good for, and says so of what it is not", async () => {
    const { page, visit } = await openClosedConsole(browser());
    await visit("");
    await signIn(page, OF_LISTS);
    await mustStandAt(page, "Overview");
    await expect.poll(() => page.url()).toMatch(/#\/lists$/);
    const refused: string[] = [];
    page.on("response", (response) => response.status() === 403 && refused.push(response.url()));
    await visit("/main/runs");
    await mustStandAt(page, "Not open to you");
    await page.getByText("Your token is not good for main").waitFor();
    await mustBeAccessible(page);
    await screenshot(page, "not-open");
    await page.locator("main").getByRole("link", { name: "lists" }).click();
    await mustStandAt(page, "Runs");
    expect(page.url()).toMatch(/#\/lists\/runs$/);
    // What is known to be refused is not asked for.
    expect(refused).toEqual([]);
  });

  test.each(["overloaded", "rate_limited"])(
    "waits when it is told %s, says so, and goes on by itself",
    async (code) => {
      const { page, visit } = await openClosedConsole(browser());
      await visit("/main");
      await signIn(page, READER);
      await mustStandAt(page, "Overview");
      let refusals = 0;
      const status = code === "overloaded" ? 503 : 429;
      await page.route(`**${pathOf("runs", { namespace: "lists" })}?*`, (route) => {
        refusals++;
        if (refusals > 1) return route.continue();
        return route.fulfill({ status, json: { code, message: "too much is asked", retryAfterMs: 3_000 } });
      });
      await visit("/lists/runs");
      await page.getByText("Asked again by itself, in 3 seconds").waitFor();
      expect(refusals).toBe(1);
      await page.getByText("No run was leased yet.").waitFor();
      expect(refusals).toBe(2);
    },
  );

  test("says when there were too many attempts, and lets in who has a good token all the same", async () => {
    const { page, visit } = await openClosedConsole(browser());
    await visit("/main");
    for (let count = 0; count < 10; count++) {
      const answered = page.waitForResponse(`**${OPERATOR_ROUTES.session}`);
      await signIn(page, "wrong");
      await answered;
    }
    await signIn(page, "wrong");
    await page
      .getByRole("alert")
      .getByText(/^Too many attempts.* \(\d+ seconds?\)$/)
      .waitFor();
    await mustStandAt(page, "Sign in");
    await signIn(page, READER);
    await mustStandAt(page, "Overview");
  });

  test.each([
    ["light at 390 pixels", { viewport: PHONE, colorScheme: "light" }],
    ["dark at 390 pixels", { viewport: PHONE, colorScheme: "dark" }],
    ["light at 1,440 pixels", { viewport: DESK, colorScheme: "light" }],
    ["dark at 1,440 pixels", { viewport: DESK, colorScheme: "dark" }],
  ] as const)("is open to everybody and fits the window, %s", async (name, options) => {
    const { page, visit } = await openClosedConsole(browser(), options);
    const suffix = name.replaceAll(/[ ,]/g, "-");
    const look = async (what: string) => {
      await mustBeAccessible(page);
      await mustNotScrollSideways(page);
      await screenshot(page, `${what}-${suffix}`);
    };
    await visit("/main");
    await mustStandAt(page, "Sign in");
    await look("sign-in");
    await signIn(page, IMPORTER);
    await page.getByRole("alert").getByText("for importers").waitFor();
    await look("sign-in-wrong");
    await signIn(page, OF_LISTS);
    await mustStandAt(page, "Not open to you");
    await look("not-open");
    await visit("/lists");
    await mustStandAt(page, "Overview");
    await page.locator("main .pending").first().waitFor({ state: "detached" });
    await look("signed-in");
  });
});
