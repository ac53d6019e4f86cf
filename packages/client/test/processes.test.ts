/** Copies of a process and threads of one: a real V8 startup snapshot, started more than once, and worker threads. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import { decodeCallNumber, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient } from "../src/index.js";
import { ScriptedSource } from "./scripted-source.js";

/**
 * `bare` is a counter without any guard: the copies do repeat it. `early` uses the client before anything else runs in a copy.
 * The test chooses the pid of the copy: one of its own, or the same as the original, as in two containers.
 */
const MAIN = `
const { startupSnapshot } = require("node:v8");
const original = process.pid;
const reports = [], alarms = [], requests = [];
let mark = 0, bare = 0, early;
const source = {
  async lease(namespace, request) {
    requests.push(request);
    mark += request.runCount;
    return { namespace, storeId: "store-1", version: 0, firstRun: mark - request.runCount + 1, runCount: request.runCount,
      leasedAtMs: 1, nonce: request.nonce, proof: "r".repeat(43) };
  },
  async report(namespace, run, report) { reports.push({ run, ...report }); },
};
const code = (error) => error.code ?? String(error);
const attempt = (call) => { try { return call(); } catch (error) { return code(error); } };

startupSnapshot.addDeserializeCallback(() => {
  if (process.argv.includes("pid-of-the-original")) Object.defineProperty(process, "pid", { value: original });
  early = attempt(() => client.nextSync());
});
const hooks = { onStopped: (error) => alarms.push(error.code) };
const client = createClient({ source, holder: { name: "original" }, spareRuns: 1, hooks });
const closed = createClient({ source, holder: { name: "closed in time" }, hooks });
const made = [];
(async () => {
  made.push(...await client.take(3), client.nextSync());
  bare += made.length;
  await closed.next();
  await closed.close();
  reports.length = 0;
  console.log(JSON.stringify({ made, bare, alarms, pid: process.pid }));
})();

startupSnapshot.setDeserializeMainFunction(async () => {
  const asked = requests.length;
  const outcomes = [early, attempt(() => client.nextSync())];
  for (const call of [() => client.next(), () => client.take(2), () => client[Symbol.asyncIterator]().next()])
    outcomes.push(await call().catch(code));
  const ofTheClosed = attempt(() => closed.nextSync());
  await client.close();
  const askedInCopy = requests.length - asked;
  const fresh = createClient({ source, holder: { name: "copy" } });
  const own = [await fresh.next(), fresh.nextSync()];
  const holderPid = requests.at(-1).holder.pid;
  console.log(JSON.stringify({ outcomes, ofTheClosed, reports, alarms, askedInCopy, bare: bare++, own, holderPid, pid: process.pid }));
});
`;

const node = promisify(execFile);
let folder: string;
let blob: string;
let original: { made: string[]; bare: number; alarms: string[]; pid: number };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "callnumber-test-"));
  blob = join(folder, "snapshot.blob");
  const script = join(folder, "entry.js");
  await writeFile(script, await oneScript(join(folder, "compiled"), MAIN));
  const { stdout } = await node(process.execPath, ["--snapshot-blob", blob, "--build-snapshot", script]);
  original = JSON.parse(stdout);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

async function startCopy(...parameters: string[]) {
  const { stdout } = await node(process.execPath, ["--snapshot-blob", blob, ...parameters]);
  return JSON.parse(stdout);
}

test("a client in the original of a startup snapshot makes its numbers", () => {
  expect(original.made.map((text) => decodeCallNumber(text).sequence)).toEqual([0, 1, 2, 3]);
  expect(original.alarms).toEqual([]);
});

test.each([
  ["with a pid of its own", []],
  ["with the pid of the original", ["pid-of-the-original"]],
])(
  "a copy %s generates no number with the snapshot's client, requests nothing and reports nothing",
  async (_, parameters) => {
    const copies = [await startCopy(...parameters), await startCopy(...parameters)];
    for (const copy of copies) {
      expect(copy.pid === original.pid).toBe(parameters.length > 0);
      expect(copy.outcomes).toEqual(Array.from({ length: 5 }, () => "process_cloned"));
      expect(copy.askedInCopy).toBe(0);
      expect(copy.reports).toEqual([]);
      // The control: a counter without a guard goes on where the original was, in each copy.
      expect(copy.bare).toBe(original.bare);
    }
  },
);

test("a copy calls onStopped once, and not for a client that was closed in time", async () => {
  const copy = await startCopy();
  expect(copy.alarms).toEqual(["process_cloned"]);
  expect(copy.ofTheClosed).toBe("client_closed");
});

test("a client made after the start of a copy works, and names the process that it is in", async () => {
  const copy = await startCopy();
  expect(copy.own.map((text: string) => decodeCallNumber(text).sequence)).toEqual([0, 1]);
  expect(copy.holderPid).toBe(copy.pid);
});

const THREAD_COUNT = 4;
const COUNT = 3 * SEQUENCE_COUNT;

async function madeInThread(counter: Int32Array): Promise<string[]> {
  const thread = new Worker(join(import.meta.dirname, "generating-thread.mjs"), {
    workerData: { counter, count: COUNT },
  });
  const [made] = (await once(thread, "message")) as [string[]];
  await thread.terminate();
  return made;
}

const newCounter = () => new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

test("threads of one process never generate a number twice, because each leases runs of its own", async () => {
  const counter = newCounter();
  const made = await Promise.all(Array.from({ length: THREAD_COUNT }, () => madeInThread(counter)));
  expect(new Set(made.flat()).size).toBe(made.flat().length);
  expect(made.flat().length).toBeGreaterThanOrEqual(THREAD_COUNT * COUNT);
  const runs = made.map((numbers) => Array.from(new Set(numbers.map((text) => decodeCallNumber(text).run))));
  expect(new Set(runs.flat()).size).toBe(runs.flat().length);
});

test("threads on counters of their own repeat numbers: the control of the test before", async () => {
  const made = await Promise.all([madeInThread(newCounter()), madeInThread(newCounter())]);
  expect(new Set(made.flat()).size).toBeLessThan(made.flat().length);
});

test("a client sent to another thread generates no numbers", async () => {
  const client = createClient({ source: new ScriptedSource(), holder: { name: "test" } });
  await client.next();
  const { port1, port2 } = new MessageChannel();
  port1.postMessage(client);
  expect(receiveMessageOnPort(port2)).toEqual({ message: {} });
  port1.close();
  await client.close();
});

const REPOSITORY = join(import.meta.dirname, "..", "..", "..");
const TSC = join(REPOSITORY, "node_modules", "typescript", "bin", "tsc");
const ENTRIES = ["client/src/index.ts", "protocol/src/codec.ts", "protocol/src/api.ts"];

/**
 * The client as one script, as a startup snapshot needs it: Node takes no imports but its own there. Compiled from the sources, each file wrapped
 * in a function, as a bundler does. Begins with `const { createClient, … }` and goes on with `main`. Works in an empty directory.
 */
async function oneScript(folder: string, main: string): Promise<string> {
  const packages = join(REPOSITORY, "packages");
  await promisify(execFile)(process.execPath, [
    TSC,
    ...ENTRIES.map((path) => join(packages, path)),
    "--ignoreConfig",
    "--rootDir",
    packages,
    "--outDir",
    folder,
    "--skipLibCheck",
    "--types",
    "node",
    "--target",
    "es2023",
    "--module",
    "commonjs",
    "--moduleResolution",
    "bundler",
  ]);
  const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".js"));
  const modules = await Promise.all(files.map((name) => wrapped(folder, name)));
  return `${LOADER}${modules.join("")}const { createClient } = load("client/src/index.js");\n${main}`;
}

async function wrapped(folder: string, name: string): Promise<string> {
  const path = relative(folder, join(folder, name)).replaceAll("\\", "/");
  const text = await readFile(join(folder, name), "utf8");
  return `modules[${JSON.stringify(path)}] = function (exports, require) {\n${text}\n};\n`;
}

const LOADER = `
const modules = {}, loaded = {};
const resolved = (from, name) => name.startsWith("@callnumber/protocol/")
  ? "protocol/src/" + name.slice("@callnumber/protocol/".length) + ".js"
  : from.replace(/[^/]*$/, "") + name.slice("./".length);
function load(path) {
  if (loaded[path] === undefined) {
    loaded[path] = {};
    modules[path](loaded[path], (name) => name.startsWith("node:") ? require(name) : load(resolved(path, name)));
  }
  return loaded[path];
}
`;
