/**
 * Counts what one `client.next()` with an empty buffer crosses on Redis: own files and named functions, by precise coverage before and after the
 * call. Client, server and coordinator run in this process. `node scripts/lease-path.mjs [--list] [REDIS_URL]`: an empty Redis, by default a new
 * one; `--list` prints every function.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { createServer as createListener } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const REPOSITORY = fileURLToPath(new URL("..", import.meta.url));
const NAMESPACE = "main";
const dist = (path) => import(new URL(`../packages/${path}.js`, import.meta.url).href);

const { values, positionals } = parseArgs({ options: { list: { type: "boolean" } }, allowPositionals: true });
const directory = mkdtempSync(join(tmpdir(), "callnumber-path-"));
const redis = positionals[0] === undefined ? await startRedis(directory) : { url: positionals[0], stop() {} };
try {
  print(await functionsOfOneLease(redis.url));
} finally {
  await redis.stop();
  rmSync(directory, { recursive: true });
}

async function functionsOfOneLease(storeUrl) {
  const { Coordinator, createServer, openStore, parseStoreUrl } = await dist("coordinator/dist/index");
  const { checkpointsOf } = await dist("coordinator/dist/operator");
  const { createClient } = await dist("client/dist/index");
  const address = parseStoreUrl(storeUrl);
  const { store } = await openStore(address, { create: false });
  const { checkpointFileOf } = checkpointsOf(address, directory);
  const coordinator = new Coordinator({ store, name: "path", checkpointFileOf });
  await coordinator.initNamespace(NAMESPACE, { rate: 16 });
  const server = createServer({ coordinator, release: "0.0.0" });
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  const newClient = () => createClient({ coordinator: url, namespace: NAMESPACE, holder: { name: "path" } });
  // Opens the guard, the connections and what is loaded late.
  await fetch(`${url}/healthz`);
  const warm = newClient();
  await warm.next();
  const client = newClient();
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await session.post("Profiler.takePreciseCoverage");
  await client.next();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  session.disconnect();
  await Promise.all([warm.close(), client.close()]);
  await server.stop();
  await coordinator.stopHeartbeat();
  await store.close();
  const own = /\/packages\/([a-z]+)\/dist\/(.+)$/;
  return result.flatMap(({ url: file, functions }) => {
    const [, name, path] = file.startsWith("file:") ? (own.exec(file) ?? []) : [];
    if (name === undefined) return [];
    const called = functions.filter(({ functionName, ranges }) => functionName !== "" && (ranges[0]?.count ?? 0) > 0);
    return called.map(({ functionName }) => ({ package: name, file: `${name}/${path}`, functionName }));
  });
}

function print(called) {
  const rows = new Map();
  for (const one of called) rows.set(roomOf(one), [...(rows.get(roomOf(one)) ?? []), one]);
  const row = (name, of) => {
    const files = new Set(of.map(({ file }) => file)).size;
    console.log(`${name.padEnd(24)}${String(files).padStart(6)}${String(of.length).padStart(11)}`);
  };
  console.log(`${"room".padEnd(24)} files  functions`);
  for (const name of [...rows.keys()].sort()) row(name, rows.get(name));
  row("together", called);
  if (values.list) for (const { file, functionName } of called) console.log(`${file} ${functionName}`);
}

/** The package, and its folder where it has some. */
function roomOf({ file }) {
  const [name, folder, ...rest] = file.split("/");
  return rest.length === 0 ? name : `${name}/${folder}`;
}

async function startRedis(dir) {
  const port = await freePort();
  const args = ["--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes"];
  const child = spawn("redis-server", args.map(String), { cwd: REPOSITORY, stdio: "ignore" });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const isUp = () => {
    try {
      return (
        execFileSync("redis-cli", ["-p", String(port), "ping"], { stdio: ["ignore", "pipe", "ignore"] }).length > 0
      );
    } catch {
      return false;
    }
  };
  while (!isUp()) await delay(50);
  const stop = () => {
    child.kill();
    return exited;
  };
  return { url: `redis://127.0.0.1:${port}`, stop };
}

function freePort() {
  return new Promise((resolve) => {
    const listener = createListener().listen(0, "127.0.0.1", () => {
      const { port } = listener.address();
      listener.close(() => resolve(port));
    });
  });
}
