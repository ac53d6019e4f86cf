/**
 * Whether the memory of a coordinator grows with the leases that it has granted: a process of its own, on Redis. Ten million of
 * them: CALLNUMBER_BENCH_LEASES=10000000.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../packages/coordinator/src/stores/open-store.js";
import { parseStoreUrl } from "../packages/coordinator/src/stores/store-url.js";
import { initBackdated } from "../test/backdated.js";
import { startRedisServer } from "../test/redis/test-redis.js";
import { machineInWords } from "./machine.js";
import { figure } from "./quantiles.js";
import { publish } from "./report.js";

const LEASE_COUNT = Number(process.env["CALLNUMBER_BENCH_LEASES"] ?? 600_000);
const PROCESS = join(import.meta.dirname, "leasing-process.mjs");
/** What the first of them cost is the code itself, and pools that fill once. */
const WARM_UP_SHARE = 0.2;

interface Told {
  readonly leased: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
  readonly externalBytes: number;
}

test("a coordinator that leases and leases", async () => {
  const { url } = await startRedisServer();
  const { store } = await openStore(parseStoreUrl(url), { create: false });
  onTestFinished(() => store.close());
  await initBackdated(store, "bench", { ageDays: 365 });
  const child = spawn(process.execPath, ["--expose-gc", PROCESS, url, "bench", String(LEASE_COUNT)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "close");
  const told: Told[] = [];
  const beganAtMs = performance.now();
  const rows: string[][] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const now = JSON.parse(line) as Told;
    const perSecond = now.leased / ((performance.now() - beganAtMs) / 1_000);
    const figures = [now.rssBytes / 2 ** 20, now.heapBytes / 2 ** 10, now.externalBytes / 2 ** 10, perSecond];
    rows.push([now.leased.toLocaleString("en-US"), ...figures.map((one) => figure(one))]);
    told.push(now);
  }
  expect(await ended).toEqual([0, null]);
  const steady = told.filter(({ leased }) => leased >= WARM_UP_SHARE * LEASE_COUNT);
  const heap = slopeOf(steady.map(({ leased, heapBytes }) => [leased, heapBytes]));
  const rss = slopeOf(steady.map(({ leased, rssBytes }) => [leased, rssBytes]));
  publish({
    bench: "coordinator-memory",
    sections: [
      {
        heading: "A coordinator that leases and leases",
        sentences: [
          `${machineInWords()} A coordinator process on Redis, without HTTP, with 256 callers; at each tenth of the way nothing is under way and all garbage is collected. "Other" is what Node holds beside its heap; leases a second are those since the beginning.`,
          `The aim is that memory does not grow with the leases. After the first fifth, which loads code and fills pools, the line that fits best rises by ${figure(heap)} bytes of the heap and ${figure(rss)} bytes of RSS a lease.`,
        ],
        table: { columns: ["leases", "RSS, MiB", "heap, KiB", "other, KiB", "leases a second"], rows },
      },
    ],
  });
});

/** Of the line that fits the points best. */
function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanX, meanY] = [mean(points.map(([x]) => x)), mean(points.map(([, y]) => y))];
  const sums = points.map(([x, y]) => [(x - meanX) * (y - meanY), (x - meanX) ** 2] as const);
  return mean(sums.map(([product]) => product)) / mean(sums.map(([, square]) => square));
}
