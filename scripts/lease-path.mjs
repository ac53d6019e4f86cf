/**
 * Counts what one `client.next()` with an empty buffer crosses on Redis: own files and named functions, by precise coverage before and after the
 * call. Client, server and coordinator run in this process. `node scripts/lease-path.mjs [--list] [REDIS_URL]`: an empty Redis, by default a new
 * one, found as the tests find theirs; `--list` prints every function.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";

const TEST_REDIS = fileURLToPath(new URL("../test/redis", import.meta.url));
const NAMESPACE = "main";
const LOOK_EVERY_MS = 100;
const dist = (path) => import(new URL(`../packages/${path}.js`, import.meta.url).href);

const { values, positionals } = parseArgs({ options: { list: { type: "boolean" } }, allowPositionals: true });
const directory = mkdtempSync(join(tmpdir(), "callnumber-path-"));
let redis;
try {
  redis = positionals[0] === undefined ? await startRedis() : { url: positionals[0] };
  print(await Promise.race([functionsOfOneLease(redis.url), ...(redis.pid === undefined ? [] : [whenGone(redis)])]));
} catch (error) {
  console.error(`npm run path: ${error.message}`);
  process.exitCode = 1;
} finally {
  await redis?.dispose?.();
  rmSync(directory, { recursive: true });
}
// A client that was given up still waits for its lease.
process.exit();

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

/** @throws Error that says why there is no Redis here, or how it ended. */
async function startRedis() {
  const { launchRedisServer, redisBinaryOnPath, unpackDebianRedis } = await testRedis();
  const onPath = redisBinaryOnPath(process.env.PATH ?? "");
  const binary = typeof onPath === "string" ? await unpackDebianRedis() : onPath;
  if (typeof binary === "string") throw new Error(`no Redis can be started: ${onPath}; ${binary}`);
  return await launchRedisServer(binary, { config: { appendonly: "yes" }, openBecause: "rights are not counted" });
}

/** Never resolves. @throws Error once the server has ended: a client would wait for it without end. */
function whenGone({ pid }) {
  return new Promise((_, reject) => {
    const look = () => {
      try {
        process.kill(pid, 0);
      } catch {
        clearInterval(timer);
        reject(new Error("Redis ended before the lease was counted"));
      }
    };
    const timer = setInterval(look, LOOK_EVERY_MS);
  });
}

/** What the tests start a Redis with. Each module finds its files as if it were still in its own directory. */
async function testRedis() {
  const placed = ({ path }) => {
    const url = JSON.stringify(pathToFileURL(path).href);
    return { contents: readFileSync(path, "utf8").replaceAll("import.meta.url", url), loader: "ts" };
  };
  const contents = 'export * from "./redis-binary.js"; export * from "./redis-server.js";';
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: TEST_REDIS, loader: "ts" },
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    plugins: [{ name: "places", setup: ({ onLoad }) => onLoad({ filter: /\.ts$/ }, placed) }],
  });
  return await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
}
