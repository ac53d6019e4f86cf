/**
 * Whether a crowd is served: a thousand importers that start within a second, next to other programs that want the processors; and importers
 * that wait for a coordinator that stalls. A lease to a client that has left wastes its runs. Targets: all have a number within 60 s next to 24
 * loops, with at most 1.1 runs leased for each; a stall of 8 s wastes at most 10 %.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createClient } from "@callnumber/client";
import { onTestFinished, test } from "vitest";
import { folderForTest, type ServingProcess, serveProcess } from "../test/processes/command.js";
import { startRedisServer } from "../test/redis/test-redis.js";
import { createNamespace, NAMESPACE } from "./coordinators.js";
import { describeMachine, formatSpread, inRounds, quantile, roundCount, size } from "./harness.js";
import { publish } from "./report.js";

const PROGRAM = fileURLToPath(new URL("./crowd-importers.mjs", import.meta.url));
const ROUND_COUNT = roundCount(3);
const PROCESS_COUNT = 4;
const CLIENT_COUNT = size(1_000, 40);
const START_MS = 1_000;
const END_MS = size(60_000, 20_000);
const LOOP_COUNTS = [0, 8, 24].map((count) => size(count, count / 8));
const STALLED_CLIENT_COUNT = size(300, 40);
const STALL_MS = size(8_000, 6_000);

const COLUMNS = ["store", "next to", "have a number", "p50, ms", "p99, ms", "runs leased a client", "wasted, %"];

interface Crowd {
  /** How long each client waited that has a number, ms. */
  readonly waitsMs: readonly number[];
  readonly leasedRunCount: number;
}

test("a crowd of importers", async () => {
  const directory = await folderForTest();
  const redis = await startRedisServer({ config: { appendonly: "yes", appendfsync: "everysec" } });
  const situations: {
    readonly cells: string[];
    readonly clientCount: number;
    readonly measure: () => Promise<Crowd>;
  }[] = [];
  for (const [name, storeUrl] of [
    ["Redis", redis.url],
    ["embedded", `sqlite:${join(directory, "store.db")}`],
  ] as const) {
    await createNamespace(storeUrl);
    const checkpoint = await mkdtemp(join(directory, "checkpoint-"));
    const coordinator = await serveProcess(storeUrl, "--checkpoint-dir", checkpoint);
    for (const loopCount of LOOP_COUNTS) {
      const measure = () => nextToLoops(coordinator, loopCount);
      situations.push({ cells: [name, `${loopCount} loops`], clientCount: CLIENT_COUNT, measure });
    }
    const cells = [name, `a stall of ${STALL_MS / 1000} s`];
    situations.push({ cells, clientCount: STALLED_CLIENT_COUNT, measure: () => whileStalled(coordinator) });
  }
  const rounds = await inRounds(
    situations.map(({ measure }) => measure),
    ROUND_COUNT,
  );
  publish("crowd", {
    heading: "A crowd of importers",
    sentences: [
      `${describeMachine()} ${CLIENT_COUNT} clients in ${PROCESS_COUNT} processes start within ${START_MS / 1000} s and want one number each, next to programs that only loop; or ${STALLED_CLIENT_COUNT} clients while \`callnumber serve\` is stopped. A client counts if it has a number after ${END_MS / 1000} s; percentiles of those that have. A run is wasted when no client generates a number of it. ${ROUND_COUNT} rounds: the fewest clients with a number; all other figures are medians and quartiles.`,
    ],
    table: {
      columns: COLUMNS,
      rows: situations.map(({ cells, clientCount }, index) =>
        cells.concat(figuresOf(rounds[index] ?? [], clientCount)),
      ),
    },
  });
});

async function nextToLoops(coordinator: ServingProcess, loopCount: number): Promise<Crowd> {
  const loops = Array.from({ length: loopCount }, () => startChild(["-e", "for (;;);"]));
  const crowd = await startCrowd(coordinator, CLIENT_COUNT);
  const result = await crowd.end();
  for (const loop of loops) loop.kill("SIGKILL");
  return result;
}

async function whileStalled(coordinator: ServingProcess): Promise<Crowd> {
  const crowd = await startCrowd(coordinator, STALLED_CLIENT_COUNT, () => coordinator.send("SIGSTOP"));
  await sleep(STALL_MS);
  coordinator.send("SIGCONT");
  return await crowd.end();
}

/** Starts the clients, all of them after `before`. */
async function startCrowd(coordinator: ServingProcess, clientCount: number, before: () => void = () => {}) {
  await warmUp(coordinator);
  const leasedBefore = await leasedRunCountOf(coordinator);
  const settings = { url: coordinator.url, namespace: NAMESPACE, startMs: START_MS, endMs: END_MS };
  const importers = Array.from({ length: PROCESS_COUNT }, () =>
    startChild([PROGRAM, JSON.stringify({ ...settings, count: clientCount / PROCESS_COUNT })]),
  );
  await Promise.all(importers.map((importer) => once(importer, "message")));
  before();
  const finished = importers.map((importer) => once(importer, "message") as Promise<[number[]]>);
  for (const importer of importers) importer.send("start");
  return {
    async end(): Promise<Crowd> {
      const waitsMs = (await Promise.all(finished)).flatMap(([waits]) => waits);
      // What is in flight is leased, too.
      await sleep(START_MS);
      for (const importer of importers) importer.disconnect();
      return { waitsMs, leasedRunCount: (await leasedRunCountOf(coordinator)) - leasedBefore };
    },
  };
}

function figuresOf(crowds: readonly Crowd[], clientCount: number): string[] {
  const served = Math.min(...crowds.map(({ waitsMs }) => waitsMs.length));
  const spread = (figure: (crowd: Crowd) => number) => formatSpread(crowds.map(figure));
  return [
    `${served.toLocaleString("en-US")} of ${clientCount.toLocaleString("en-US")}`,
    spread(({ waitsMs }) => quantile(waitsMs, 0.5)),
    spread(({ waitsMs }) => quantile(waitsMs, 0.99)),
    spread(({ leasedRunCount }) => leasedRunCount / clientCount),
    spread(({ leasedRunCount, waitsMs }) => (100 * (leasedRunCount - waitsMs.length)) / leasedRunCount),
  ];
}

/** A coordinator recovers its store, if it must, before the crowd comes. */
async function warmUp({ url }: ServingProcess): Promise<void> {
  const client = createClient({ coordinator: url, namespace: NAMESPACE, holder: { name: "warm-up" } });
  await client.next();
  await client.close();
}

async function leasedRunCountOf({ url }: ServingProcess): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const [, count] = new RegExp(`^callnumber_runs_leased_total{namespace="${NAMESPACE}"} (\\d+)$`, "m").exec(text) ?? [];
  if (count === undefined) throw new Error("the metrics have no count of runs");
  return Number(count);
}

/** A Node that ends with the test at the latest. */
function startChild(args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}
