/**
 * What a lease over HTTP costs the coordinator's process when many ask at once: CPU, beside the same server with nothing behind
 * it, without and with the log line of a lease, and leases a second, beside `INCR` of `redis-benchmark` without pipelining. In turns within each round, each server in a process
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
import { openStore } from "../packages/coordinator/src/stores/open-store.js";
import { isMemoryBacked, thisMachine } from "../packages/coordinator/src/stores/sqlite/machine.js";
import { SqliteStore } from "../packages/coordinator/src/stores/sqlite/store.js";
import type { Store } from "../packages/coordinator/src/stores/store.js";
import { parseStoreUrl } from "../packages/coordinator/src/stores/store-url.js";
import { initBackdated } from "../test/backdated.js";
import { environmentFor } from "../test/redis/redis-binary.js";
import { TESTER_LOGIN } from "../test/redis/shipped-users.js";
import { type RedisServer, startRedisServer } from "../test/redis/test-redis.js";
import { callFor } from "./http-lease-callers.js";
import { machineInWords } from "./machine.js";
import { quantile, spreadInWords } from "./quantiles.js";
import { publish } from "./report.js";

const PROGRAM = fileURLToPath(new URL("./http-lease-server.mjs", import.meta.url));
const NAMESPACE = "bench";
/** What we aim at: a lease's CPU, times that of the same server with nothing behind it. */
const AIM_TIMES_CONSTANT = 1.25;
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
  const coordinators = [
    await redis("Redis, appendfsync everysec", everysec.url),
    await redis("Redis, appendfsync always", always.url),
    await embedded(),
  ];
  const contenders = [
    await server("constant, the same server", { kind: "constant" }),
    await server("constant, with its log line", { kind: "constant-logged" }),
    ...coordinators,
    await server("constant, node:http alone", { kind: "node-http" }),
  ];
  for (const { play } of contenders) await play(WARM_UP_MS);
  const incrsPerS: number[] = [];
  const rounds = contenders.map((): Round[] => []);
  for (let round = 0; round < ROUND_COUNT; round++) {
    incrsPerS.push(incrPerS(everysec));
    for (const [index, { play }] of contenders.entries()) rounds[index]?.push(await play(DURATION_MS));
  }
  const [constant, logged] = rounds as [Round[], Round[]];
  const rows = contenders.map(({ name }, index) => {
    const own = rounds[index] as Round[];
    return [
      name,
      spreadInWords(own.map(({ cpuUs }) => cpuUs)),
      spreadInWords(timesCpu(own, constant)),
      spreadInWords(timesCpu(own, logged)),
      spreadInWords(own.map(({ leasesPerS }) => leasesPerS)),
      spreadInWords(own.map(({ leasesPerS }, round) => leasesPerS / (incrsPerS[round] as number))),
      spreadInWords(own.map(({ p50Ms }) => p50Ms)),
      spreadInWords(own.map(({ p99Ms }) => p99Ms)),
    ];
  });
  const reached = coordinators.map((one) => {
    const own = rounds[contenders.indexOf(one)] as Round[];
    return `${one.name}: ${spreadInWords(timesCpu(own, constant))}`;
  });
  publish({
    bench: "http-lease",
    sections: [
      {
        heading: `A lease over HTTP, ${CALLER_COUNT} callers`,
        sentences: [
          `${machineInWords()} ${ROUND_COUNT} rounds of ${DURATION_MS} ms for each server, which is a process of its own; CPU is user and system time of that process. Medians and quartiles, ratios within a round. The log goes to a file, the witness lies on disk, each holder proves its last run. INCR is redis-benchmark -t incr -c ${CALLER_COUNT} without pipelining, on the server with everysec: ${spreadInWords(incrsPerS)} a second.`,
          `The aim is ${AIM_TIMES_CONSTANT} times the CPU of the constant server. Reached by ${reached.join("; by ")}. The log line alone makes it ${spreadInWords(timesCpu(logged, constant))}.`,
        ],
        table: {
          columns: [
            "server",
            "CPU, µs a lease",
            "times constant",
            "times constant with its log line",
            "leases a second",
            "share of INCR",
            "p50, ms",
            "p99, ms",
          ],
          rows,
        },
      },
    ],
  });
});

function timesCpu(rounds: readonly Round[], base: readonly Round[]): number[] {
  return rounds.map(({ cpuUs }, round) => cpuUs / (base[round] as Round).cpuUs);
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
  const login = ["--user", TESTER_LOGIN.username, "-a", TESTER_LOGIN.password];
  const words = ["-h", host, "-p", port, "-t", "incr", "-c", CALLER_COUNT, "-n", INCR_COUNT, "--csv"].map(String);
  const text = execFileSync(program, [...login, ...words], {
    encoding: "utf8",
    env: environmentFor(binary.libraryPath),
  });
  return Number(/^"INCR","([\d.]+)"/m.exec(text)?.[1]);
}

async function folder(within = tmpdir()): Promise<string> {
  const path = await mkdtemp(join(within, "callnumber-bench-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}
