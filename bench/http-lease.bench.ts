/**
 * What a lease over HTTP costs the coordinator's process when many ask at once: CPU, beside the same server with nothing behind
 * it, and leases a second, beside `INCR` of `redis-benchmark` without pipelining. In turns within each round, each server in a process
 * of its own; what counts is the ratio of a round. Profile a server: CALLNUMBER_BENCH_NODE_FLAGS="--cpu-prof".
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, openSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { inject, onTestFinished, test } from "vitest";
import type { Store } from "../packages/coordinator/src/store.js";
import { openStore } from "../packages/coordinator/src/stores/open-store.js";
import { isMemoryBacked, thisMachine } from "../packages/coordinator/src/stores/sqlite-machine.js";
import { SqliteStore } from "../packages/coordinator/src/stores/sqlite-store.js";
import { parseStoreUrl } from "../packages/coordinator/src/stores/store-url.js";
import { initBackdated } from "../test/backdated.js";
import { environmentFor } from "../test/redis/redis-binary.js";
import { type RedisServer, startRedisServer } from "../test/redis/test-redis.js";
import { callFor } from "./http-lease-callers.js";

const PROGRAM = fileURLToPath(new URL("./http-lease-server.mjs", import.meta.url));
const NAMESPACE = "bench";
const ROUND_COUNT = 7;
const CALLER_COUNT = 64;
const DURATION_MS = 800;
const WARM_UP_MS = 4_000;
const INCR_COUNT = 60_000;
const NODE_FLAGS = (process.env["CALLNUMBER_BENCH_NODE_FLAGS"] ?? "").split(" ").filter(Boolean);

/** One contender in one round. */
interface Round {
  /** User and system, of the server's process. */
  readonly cpuUs: number;
  readonly leasesPerS: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Contender {
  readonly name: string;
  readonly play: (durationMs: number) => Promise<Round>;
}

test(`a lease over HTTP, ${CALLER_COUNT} callers`, async () => {
  const everysec = await startRedisServer({ config: { appendonly: "yes", appendfsync: "everysec" } });
  const always = await startRedisServer({ config: { appendonly: "yes", appendfsync: "always" } });
  const contenders = [
    await server("constant, the same server", { kind: "constant" }),
    await redis("Redis, appendfsync everysec", everysec.url),
    await redis("Redis, appendfsync always", always.url),
    await embedded(),
    await server("constant, node:http alone", { kind: "node-http" }),
  ];
  for (const { play } of contenders) await play(WARM_UP_MS);
  const incrsPerS: number[] = [];
  const rounds = contenders.map((): Round[] => []);
  for (let round = 0; round < ROUND_COUNT; round++) {
    incrsPerS.push(incrPerS(everysec));
    for (const [index, { play }] of contenders.entries()) rounds[index]?.push(await play(DURATION_MS));
  }
  const what = `${ROUND_COUNT} rounds of ${DURATION_MS} ms; median (quartiles); log to a file, witness on disk, each holder proves its last run`;
  const heading = `${"server".padEnd(28)}${["CPU us a lease", "times constant", "leases/s", "share of INCR", "p50 ms", "p99 ms"].map((text) => text.padStart(21)).join("")}`;
  const rows = contenders.map(({ name }, index) =>
    rowOf(name, rounds[index] as Round[], rounds[0] as Round[], incrsPerS),
  );
  const incr = `redis-benchmark -t incr -c ${CALLER_COUNT}, on the server with everysec: ${spread(incrsPerS, 0)} a second`;
  console.log(["", `A lease over HTTP, ${CALLER_COUNT} callers (${what})`, heading, ...rows, incr].join("\n"));
});

function rowOf(name: string, rounds: readonly Round[], base: readonly Round[], incrsPerS: readonly number[]): string {
  const ratio = (pick: (round: Round) => number, of: (index: number) => number) =>
    rounds.map((round, index) => pick(round) / of(index));
  const columns = [
    spread(
      rounds.map(({ cpuUs }) => cpuUs),
      1,
    ),
    spread(
      ratio(
        ({ cpuUs }) => cpuUs,
        (index) => (base[index] as Round).cpuUs,
      ),
      2,
    ),
    spread(
      rounds.map(({ leasesPerS }) => leasesPerS),
      0,
    ),
    spread(
      ratio(
        ({ leasesPerS }) => leasesPerS,
        (index) => incrsPerS[index] as number,
      ),
      3,
    ),
    spread(
      rounds.map(({ p50Ms }) => p50Ms),
      1,
    ),
    spread(
      rounds.map(({ p99Ms }) => p99Ms),
      1,
    ),
  ];
  return `${name.padEnd(28)}${columns.map((text) => text.padStart(21)).join("")}`;
}

function spread(values: readonly number[], digits: number): string {
  const at = (share: number) => quantile(values, share).toFixed(digits);
  return `${at(0.5)} (${at(0.25)}-${at(0.75)})`;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}

async function redis(name: string, storeUrl: string): Promise<Contender> {
  const { store } = await openStore(parseStoreUrl(storeUrl), { create: false });
  return await coordinator(name, store, { storeUrl });
}

async function embedded(): Promise<Contender> {
  const path = join(await folder(), "store.db");
  const inMemory = thisMachine().markerFolders.find((one) => isMemoryBacked(one, thisMachine()));
  const markerFolder = await folder(inMemory);
  const store = new SqliteStore({ path, create: true, machine: { markerFolders: [markerFolder] } });
  return await coordinator("embedded store", store, { storeUrl: `sqlite:${path}`, markerFolder });
}

/** On a store that is new, and closed here. */
async function coordinator(name: string, store: Store, place: object): Promise<Contender> {
  // Or the clock line would end the load.
  await initBackdated(store, NAMESPACE);
  await store.close();
  return await server(name, { kind: "coordinator", witnessFolder: await folder(), ...place });
}

async function server(name: string, settings: object): Promise<Contender> {
  const log = openSync(join(await folder(), "log"), "w");
  const words = [...NODE_FLAGS, PROGRAM, JSON.stringify(settings)];
  const child = spawn(process.execPath, words, { stdio: ["ignore", log, "inherit", "ipc"] });
  onTestFinished(async () => {
    const ended = once(child, "exit");
    child.disconnect();
    await ended;
  });
  const [{ url }] = (await once(child, "message")) as [{ url: string }];
  return { name, play: (durationMs) => play(child, url, durationMs) };
}

async function play(child: ChildProcess, url: string, durationMs: number): Promise<Round> {
  const { run, end } = await callFor(url, { namespace: NAMESPACE, callerCount: CALLER_COUNT, durationMs });
  const before = await cpuUsOf(child);
  const { leaseCount, durationMs: tookMs, latenciesMs } = await run();
  const cpuUs = ((await cpuUsOf(child)) - before) / leaseCount;
  end();
  const leasesPerS = (leaseCount * 1000) / tookMs;
  return { cpuUs, leasesPerS, p50Ms: quantile(latenciesMs, 0.5), p99Ms: quantile(latenciesMs, 0.99) };
}

async function cpuUsOf(child: ChildProcess): Promise<number> {
  child.send("usage");
  const [{ cpuUsage }] = (await once(child, "message")) as [{ cpuUsage: NodeJS.CpuUsage }];
  return cpuUsage.user + cpuUsage.system;
}

function incrPerS({ host, port }: RedisServer): number {
  const { binary } = inject("redis");
  if (binary === undefined) throw new Error("redis-benchmark comes with a redis-server, and none is here");
  const beside = join(dirname(binary.executable), "redis-benchmark");
  const program = existsSync(beside) ? beside : "redis-benchmark";
  const words = ["-h", host, "-p", port, "-t", "incr", "-c", CALLER_COUNT, "-n", INCR_COUNT, "--csv"].map(String);
  const text = execFileSync(program, words, { encoding: "utf8", env: environmentFor(binary.libraryPath) });
  return Number(/^"INCR","([\d.]+)"/m.exec(text)?.[1]);
}

async function folder(within = tmpdir()): Promise<string> {
  const path = await mkdtemp(join(within, "callnumber-bench-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}
