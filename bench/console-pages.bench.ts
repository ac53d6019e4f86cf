/** Whether a page of the console takes longer when the ledger is long: the same pages, in a real browser, of a fresh ledger and a long one. */
import type { Browser, Page } from "playwright-core";
import { afterAll, onTestFinished, test } from "vitest";
import { CHROMIUM, launchChromium, newPage, WITHOUT_CHROMIUM } from "../test/console/browser.js";
import type { RunningCoordinator } from "../test/processes/command.js";
import { callNumberWithin, runWithin } from "./filled-ledgers.js";
import { machineInWords } from "./machine.js";
import { quantile, spreadInWords } from "./quantiles.js";
import { publish, type Section } from "./report.js";
import { servedOnRedis, servedOnSqlite } from "./served-ledgers.js";

const SIZES = [1_000, Number(process.env["CALLNUMBER_BENCH_LEASES"] ?? 1_000_000)];
const NAMESPACE = "main";
const ROUND_COUNT = 15;

interface LookedAt {
  readonly size: number;
  readonly url: string;
  readonly page: Page;
}

interface Place {
  readonly name: string;
  readonly address: (size: number) => string;
  /** Stands there when the page has all that it asked for. */
  readonly isThere: (page: Page) => Promise<unknown>;
}

const PLACES: readonly Place[] = [
  {
    name: "overview, with its chart and the busiest holders",
    address: () => "#/main",
    isThere: async (page) => {
      await page.locator("table.holders").getByRole("link").first().waitFor();
      await page.locator("canvas").first().waitFor();
    },
  },
  {
    name: "runs, the newest",
    address: () => "#/main/runs",
    isThere: (page) => page.locator("tbody").getByRole("link").first().waitFor(),
  },
  {
    name: "runs of one holder out of 20",
    address: () => "#/main/runs?holder=importer-3",
    isThere: (page) => page.locator("tbody").getByRole("link").first().waitFor(),
  },
  {
    name: "a random run",
    address: (size) => `#/main/runs/${runWithin(size)}`,
    isThere: (page) => page.getByText("numbers").first().waitFor(),
  },
  {
    name: "inspect, a random call number",
    address: (size) => `#/main/inspect/${callNumberWithin(size)}`,
    isThere: (page) => page.getByText("Leased, and reported as made").waitFor(),
  },
  {
    name: "doubt and recovery",
    address: () => "#/main/recovery",
    isThere: (page) => page.getByText("Nothing to do.").waitFor(),
  },
];

const sections: Section[] = [];

afterAll(() => publish({ bench: "console-pages", sections }));

test("the console of embedded stores", async ({ skip }) => {
  if (CHROMIUM === undefined) skip(WITHOUT_CHROMIUM);
  sections.push(await measured("The console of an embedded store", await servedOnSqlite(NAMESPACE, SIZES)));
});

test("the console of Redis", async ({ skip }) => {
  if (CHROMIUM === undefined) skip(WITHOUT_CHROMIUM);
  sections.push(await measured("The console of Redis", await servedOnRedis(NAMESPACE, SIZES)));
});

async function measured(heading: string, coordinators: readonly RunningCoordinator[]): Promise<Section> {
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  const lookedAt = await Promise.all(
    coordinators.map(({ url }, index) => opened(browser, url, SIZES[index] as number)),
  );
  const rows: string[][] = [];
  for (const place of PLACES) {
    const times = lookedAt.map((): number[] => []);
    // The first round fills the caches of all.
    for (let round = 0; round <= ROUND_COUNT; round++) {
      for (const [index, each] of lookedAt.entries()) {
        const tookMs = await shownAfterMs(each, place);
        if (round > 0) times[index]?.push(tookMs);
      }
    }
    const baseMs = quantile(times[0] ?? [], 0.5);
    for (const [index, { size }] of lookedAt.entries()) {
      const own = times[index] ?? [];
      const ratios = own.map((tookMs) => tookMs / baseMs);
      rows.push([
        index === 0 ? place.name : "",
        size.toLocaleString("en-US"),
        spreadInWords(own),
        spreadInWords(ratios),
      ]);
    }
  }
  return {
    heading,
    sentences: [
      `${machineInWords()} Each page is loaded anew in Chromium, in turns, ${ROUND_COUNT} times: from the address until what it asks the coordinator for stands there; medians and quartiles; ratios to the median of the fresh ledger.`,
    ],
    table: { columns: ["page", "leases", "ms", "ratio"], rows },
  };
}

async function opened(browser: Browser, url: string, size: number): Promise<LookedAt> {
  const { page } = await newPage(browser, new URL(url).origin);
  return { size, url, page };
}

async function shownAfterMs({ url, page, size }: LookedAt, { address, isThere }: Place): Promise<number> {
  await page.goto("about:blank");
  const beginMs = performance.now();
  await page.goto(`${url}/console/${address(size)}`);
  await isThere(page);
  return performance.now() - beginMs;
}
