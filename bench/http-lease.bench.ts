/**
 * What a lease over HTTP costs the coordinator's process with 64 callers: CPU compared with a plain Fastify and zod server without
 * hooks, with and without the same log line, and with `node:http` alone; and leases a second compared with `redis-benchmark INCR`. Each
 * server is a process of its own.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, openSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { inject, onTestFinished, test } from "vitest";
import { folderForTest } from "../test/processes/command.js";
import { environmentFor } from "../test/redis/redis-binary.js";
import { TESTER_LOGIN } from "../test/redis/shipped-users.js";
import { type RedisServer, startRedisServer } from "../test/redis/test-redis.js";
import { createNamespace, NAMESPACE } from "./coordinators.js";
import { describeMachine, formatSpread, inRounds, median, quantile, ratios, roundCount, size } from "./harness.js";
import { connectCallers } from "./http-lease-callers.js";
import { publish } from "./report.js";

const PROGRAM = fileURLToPath(new URL("./http-lease-server.mjs", import.meta.url));
const ROUND_COUNT = roundCount(7);
const CALLER_COUNT = 64;
const DURATION_MS = size(800, 200);
const WARM_UP_MS = size(4_000, 200);
const INCR_COUNT = size(60_000, 5_000);

const COLUMNS = [
  "server",
  "CPU, µs a lease",
  "times Fastify",
  "times Fastify with its log line",
  "times node:http",
  "leases a second",
  "share of INCR",
  "p50, ms",
  "p99, ms",
];

/** One server in one round. */
interface Load {
  /** User and system time of the server's process. */
  readonly cpuUs: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface Server {
  readonly name: string;
  readonly load: (durationMs: number) => Promise<Load>;
}

test(`a lease over HTTP, ${CALLER_COUNT} callers`, async () => {
  const directory = await folderForTest();
  const redis = await startRedisServer({ config: { appendonly: "yes", appendfsync: "everysec" } });
  const start = async (name: string, settings: object) => await startServer(directory, name, settings);
  const coordinator = async (name: string, storeUrl: string) => {
    await createNamespace(storeUrl);
    const checkpointDirectory = await mkdtemp(join(directory, "checkpoint-"));
    return await start(name, { kind: "coordinator", storeUrl, checkpointDirectory });
  };
  const servers = [
    await start("Fastify and zod", { kind: "fastify" }),
    await start("Fastify and zod, with the log line", { kind: "fastify-logged" }),
    await start("node:http alone", { kind: "node-http" }),
    await coordinator("coordinator on Redis", redis.url),
    await coordinator("coordinator, embedded store", `sqlite:${join(directory, "store.db")}`),
  ];
  for (const { load } of servers) await load(WARM_UP_MS);
  const incr = async (): Promise<Load> => ({ cpuUs: 0, perSecond: incrPerSecond(redis), p50Ms: 0, p99Ms: 0 });
  const loads = servers.map((server) => () => server.load(DURATION_MS));
  const rounds = await inRounds([...loads, incr], ROUND_COUNT);
  const figures = (index: number, figure: keyof Load) => (rounds[index] ?? []).map((load) => load[figure]);
  const incrs = figures(servers.length, "perSecond");
  const rows = servers.map(({ name }, index) => {
    const cpuUs = figures(index, "cpuUs");
    const perSecond = figures(index, "perSecond");
    const timesBases = [0, 1, 2].map((base) => formatSpread(ratios(cpuUs, figures(base, "cpuUs"))));
    const shareOfIncr = formatSpread(ratios(perSecond, incrs));
    const latencies = [formatSpread(figures(index, "p50Ms")), formatSpread(figures(index, "p99Ms"))];
    return [name, formatSpread(cpuUs)].concat(timesBases, formatSpread(perSecond), shareOfIncr, latencies);
  });
  publish("http-lease", {
    heading: `A lease over HTTP, ${CALLER_COUNT} callers`,
    sentences: [
      `${describeMachine()} ${ROUND_COUNT} rounds of ${DURATION_MS} ms for each server, in turns; CPU is user and system time of its process. Medians and quartiles, ratios within a round. Redis has appendfsync everysec. The log goes to a file, the checkpoint is on disk, each holder proves its last run.`,
      `INCR is \`redis-benchmark -t incr -c ${CALLER_COUNT}\` without pipelining, on the same Redis: ${formatSpread(incrs)} a second.`,
    ],
    table: { columns: COLUMNS, rows },
  });
});

async function startServer(directory: string, name: string, settings: object): Promise<Server> {
  const log = openSync(join(await mkdtemp(join(directory, "log-")), "log"), "w");
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify(settings)], {
    stdio: ["ignore", log, "inherit", "ipc"],
  });
  onTestFinished(async () => {
    const exited = once(child, "exit");
    child.disconnect();
    await exited;
  });
  const [{ url }] = (await once(child, "message")) as [{ url: string }];
  return { name, load: (durationMs) => load(child, url, durationMs) };
}

async function load(child: ChildProcess, url: string, durationMs: number): Promise<Load> {
  const callers = await connectCallers(url, { namespace: NAMESPACE, callerCount: CALLER_COUNT });
  const before = await cpuUsOf(child);
  const startedAtMs = performance.now();
  const latenciesMs = await callers.callFor(durationMs);
  const tookMs = performance.now() - startedAtMs;
  const cpuUs = ((await cpuUsOf(child)) - before) / latenciesMs.length;
  callers.close();
  const perSecond = (latenciesMs.length * 1000) / tookMs;
  return { cpuUs, perSecond, p50Ms: median(latenciesMs), p99Ms: quantile(latenciesMs, 0.99) };
}

async function cpuUsOf(child: ChildProcess): Promise<number> {
  child.send("usage");
  const [{ cpuUsage }] = (await once(child, "message")) as [{ cpuUsage: NodeJS.CpuUsage }];
  return cpuUsage.user + cpuUsage.system;
}

function incrPerSecond({ host, port }: RedisServer): number {
  const { binary } = inject("redis");
  if (binary === undefined) throw new Error("redis-benchmark comes with a redis-server, and none is here");
  const sibling = join(dirname(binary.executable), "redis-benchmark");
  const program = existsSync(sibling) ? sibling : "redis-benchmark";
  const login = ["--user", TESTER_LOGIN.username, "-a", TESTER_LOGIN.password];
  const args = ["-h", host, "-p", port, "-t", "incr", "-c", CALLER_COUNT, "-n", INCR_COUNT, "--csv"].map(String);
  const env = environmentFor(binary.libraryPath);
  const output = execFileSync(program, [...login, ...args], { encoding: "utf8", env });
  return Number(/^"INCR","([\d.]+)"/m.exec(output)?.[1]);
}
