/** A real Chromium for tests: Debian's, or one that is on PATH; never one that is downloaded. And what every page must pass. */
import { existsSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { env } from "node:process";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished } from "vitest";

/** Debian's wrapper prints a shell error, so its binary comes first. */
const PATHS = [
  "/usr/lib/chromium/chromium",
  ...(env["PATH"] ?? "")
    .split(delimiter)
    .flatMap((folder) => ["chromium", "chromium-browser", "google-chrome"].map((name) => join(folder, name))),
];

const CHROMIUM = PATHS.find((path) => existsSync(path));

/**
 * One browser for all tests of a file; `args` are its own. Call the result in a test. Where there is no Chromium, the tests of the file are
 * skipped.
 */
export function chromiumForFile(...args: readonly string[]): () => Browser {
  let browser: Browser | undefined;
  const asRoot = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  beforeAll(async () => {
    if (CHROMIUM === undefined) return;
    browser = await chromium.launch({ executablePath: CHROMIUM, args: [...asRoot, ...args] });
  });
  beforeEach((context) => {
    context.skip(CHROMIUM === undefined, "no Chromium at /usr/lib/chromium/chromium or on PATH");
  });
  afterAll(() => browser?.close());
  return () => browser as Browser;
}

export const PHONE = { width: 390, height: 844 } as const;
const DESK = { width: 1440, height: 900 } as const;

/** Both colors in the narrow and in the wide window. */
export const WINDOWS = [
  ["light at 390 pixels", { viewport: PHONE, colorScheme: "light" }],
  ["dark at 390 pixels", { viewport: PHONE, colorScheme: "dark" }],
  ["light at 1,440 pixels", { viewport: DESK, colorScheme: "light" }],
  ["dark at 1,440 pixels", { viewport: DESK, colorScheme: "dark" }],
] as const;

/**
 * Opens a page in a browser context of its own; both end with the test. Then it fails when the page had an error, was denied something by its
 * policy, or sent a request to any origin but `origin`.
 */
export async function newPage(browser: Browser, origin: string, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: DESK, reducedMotion: "reduce", ...options });
  // How long a page takes on a busy machine decides nothing: the limit of the test ends one that never comes.
  context.setDefaultTimeout(0);
  const page = await context.newPage();
  const faults: string[] = [];
  onTestFinished(async () => {
    await context.close();
    expect(faults).toEqual([]);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // The browser itself logs each failed request; what the page shows of it is tested.
    const isFailedRequest = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isFailedRequest) faults.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) faults.push(`request to another origin: ${request.url()}`);
  });
  // As text: what runs in the page knows nothing of Node.
  await page.addInitScript(
    'addEventListener("securitypolicyviolation", (event) => console.error("policy:", event.violatedDirective, event.blockedURI))',
  );
  return page;
}

export const heading = (page: Page) => page.getByRole("heading", { level: 1 });

export const expectHeading = (page: Page, text: string) => expect.poll(() => heading(page).textContent()).toBe(text);

/** Resolves when the page has shown what it loads. */
export const untilLoaded = (page: Page) => page.locator("main .pending").first().waitFor({ state: "detached" });

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary?: string }[];
}

/**
 * Expects that every rule of axe-core holds, and that the page is not wider than the window. `name`: of the screenshot, which is taken only
 * with `CALLNUMBER_SCREENSHOTS=FOLDER`.
 */
export async function expectAccessible(page: Page, name: string): Promise<void> {
  // Through the debugger: the policy of the page allows no foreign script.
  if (!(await page.evaluate<boolean>("typeof axe !== 'undefined'"))) await page.evaluate(AXE);
  const violations = await page.evaluate<Violation[]>("axe.run().then(({ violations }) => violations)");
  const reports = violations.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join("; ")}`,
  );
  expect(reports, page.url()).toEqual([]);
  const widths = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]";
  const [content, visible] = await page.evaluate<[number, number]>(widths);
  expect(content, `${page.url()} is wider than the window`).toBeLessThanOrEqual(visible);
  const folder = env["CALLNUMBER_SCREENSHOTS"];
  if (folder === undefined) return;
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name.replaceAll(/[ ,]+/g, "-")}.png`), fullPage: true });
}
