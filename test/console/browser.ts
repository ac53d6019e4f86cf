/** A real Chromium for tests: Debian's, or whichever is on PATH; never one that is fetched. */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { env } from "node:process";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";

/** Debian's wrapper prints a shell error, so its binary comes first. */
const PLACES = [
  "/usr/lib/chromium/chromium",
  ...(env["PATH"] ?? "")
    .split(delimiter)
    .flatMap((folder) => ["chromium", "chromium-browser", "google-chrome"].map((name) => join(folder, name))),
];

/** Undefined where there is none: the tests say so and are left out. */
export const CHROMIUM = PLACES.find((path) => existsSync(path));

export const WITHOUT_CHROMIUM = "no Chromium at /usr/lib/chromium/chromium or on PATH: the console is not tested";

/** `args`: words for it, beside those of every test. Whoever launches it closes it. */
async function launchChromium(...args: readonly string[]): Promise<Browser> {
  const asRoot = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return await chromium.launch({ executablePath: CHROMIUM as string, args: [...asRoot, ...args] });
}

/** One for all tests of a file, where there is one at all. What is answered is to be called in a test: before the first there is none. */
export function chromiumForFile(...args: readonly string[]): () => Browser {
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (CHROMIUM !== undefined) browser = await launchChromium(...args);
  });
  afterAll(() => browser?.close());
  return () => browser as Browser;
}

/** What every place of the page says of itself. */
export const heading = (page: Page) => page.getByRole("heading", { level: 1 });

/** Resolves when the page is at the place with this heading. */
export const mustStandAt = (page: Page, text: string) => expect.poll(() => heading(page).textContent()).toBe(text);

export interface Watched {
  readonly page: Page;
  /** What a page must never do, as it was seen: faults, refused policy, requests to anywhere else. */
  readonly wrongs: () => readonly string[];
}

export const PHONE = { width: 390, height: 844 } as const;
export const DESK = { width: 1440, height: 900 } as const;

/** A page in a browser of its own memory. `origin` is the only place it may ask. Ends with the test. */
export async function newPage(browser: Browser, origin: string, options: BrowserContextOptions = {}): Promise<Watched> {
  const context: BrowserContext = await browser.newContext({ viewport: DESK, reducedMotion: "reduce", ...options });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const wrongs: string[] = [];
  page.on("pageerror", (error) => wrongs.push(`fault: ${error.message}`));
  page.on("console", (message) => {
    // A browser says each failed request itself; what the page makes of it is tested by what it shows.
    const isFailedRequest = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isFailedRequest) wrongs.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== origin) wrongs.push(`asked elsewhere: ${request.url()}`);
  });
  // As text: what runs in the page is no program of ours, and knows nothing of Node.
  await page.addInitScript(
    'addEventListener("securitypolicyviolation", (event) => console.error("policy:", event.violatedDirective, event.blockedURI))',
  );
  return { page, wrongs: () => wrongs };
}

/** The page is not wider than the window. */
export async function mustNotScrollSideways(page: Page): Promise<void> {
  const widths = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]";
  const [content, seen] = await page.evaluate<[number, number]>(widths);
  expect(content, `${page.url()} is wider than the window`).toBeLessThanOrEqual(seen);
}

/** Only when asked for: `CALLNUMBER_SCREENSHOTS=folder`. */
export async function screenshot(page: Page, name: string): Promise<void> {
  const folder = env["CALLNUMBER_SCREENSHOTS"];
  if (folder === undefined) return;
  await mkdir(folder, { recursive: true });
  const path = join(folder, `${name}.png`);
  await page.screenshot({ path, fullPage: true });
  console.log(`screenshot: ${path}`);
}
