/**
 * How fast the commands start, compared with a Node that does nothing, and how much an installed coordinator takes on the disk. Targets:
 * `serve` ready in 250 ms, `callnumber --version` at 1.15 times `node -e 0`, a node_modules of 25 MB.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "vitest";
import { COMMAND, folderForTest, REPOSITORY } from "../test/processes/command.js";
import { describeMachine, formatFigure, formatSpread, inRounds, ratios, roundCount } from "./harness.js";
import { publish } from "./report.js";

const ROUND_COUNT = roundCount(21);
const VERSION_TARGET_TIMES = 1.15;
const READY_TARGET_MS = 250;
const SIZE_TARGET_MB = 25;
const LARGEST_COUNT = 8;

test("the start of the commands", async () => {
  const ways = [
    { name: "node -e 0", target: "", measure: () => untilExit("-e", "0") },
    {
      name: "callnumber --version",
      target: `${VERSION_TARGET_TIMES} times node -e 0`,
      measure: () => untilExit(COMMAND, "--version"),
    },
    {
      name: "callnumber serve, a new embedded store, until it listens",
      target: `${READY_TARGET_MS} ms`,
      measure: untilReady,
    },
  ];
  const rounds = await inRounds(
    ways.map(({ measure }) => measure),
    ROUND_COUNT,
  );
  const packages = installedPackages(dirname(dirname(COMMAND)));
  const largest = [...packages].sort(([, one], [, other]) => other - one).slice(0, LARGEST_COUNT);
  const sum = [...packages.values()].reduce((total, bytes) => total + bytes, 0);
  const commands = {
    heading: "From the command line to the first result",
    sentences: [
      `${describeMachine()} ${ROUND_COUNT} rounds, each with a process for every line; medians and quartiles, ratios within a round.`,
    ],
    table: {
      columns: ["command", "ms", "times node -e 0", "target"],
      rows: ways.map(({ name, target }, index) => {
        const ms = rounds[index] ?? [];
        return [name, formatSpread(ms), formatSpread(ratios(ms, rounds[0] ?? [])), target];
      }),
    },
  };
  const installation = {
    heading: "What an installed coordinator takes on the disk",
    sentences: [
      `The files of the package and of all packages that it depends on: ${formatFigure(sum / 1e6)} MB in ${packages.size} packages; the target is ${SIZE_TARGET_MB} MB. The largest:`,
    ],
    table: { columns: ["package", "MB"], rows: largest.map(([name, bytes]) => [name, formatFigure(bytes / 1e6)]) },
  };
  publish("start", commands, installation);
});

async function untilExit(...args: readonly string[]): Promise<number> {
  const startedAtMs = performance.now();
  const [code] = (await once(spawn(process.execPath, args, { stdio: "ignore" }), "close")) as [number | null];
  if (code !== 0) throw new Error(`${args.join(" ")} exited with ${code}`);
  return performance.now() - startedAtMs;
}

/** In a new directory: with everything that a first start creates. */
async function untilReady(): Promise<number> {
  const directory = await folderForTest();
  const args = ["serve", "--store", `sqlite:${join(directory, "store.db")}`, "--create", "--port", "0"];
  const startedAtMs = performance.now();
  const child = spawn(process.execPath, [COMMAND, ...args, "--checkpoint-dir", join(directory, "checkpoint")], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const closed = once(child, "close");
  let output = "";
  child.stderr.setEncoding("utf8");
  for await (const text of child.stderr.iterator({ destroyOnReturn: false })) {
    output += text as string;
    if (output.includes("listening on")) break;
  }
  const readyMs = performance.now() - startedAtMs;
  if (!output.includes("listening on")) throw new Error(`callnumber serve ended: ${output}`);
  child.stderr.resume();
  child.kill();
  await closed;
  return readyMs;
}

/**
 * Returns the bytes of each package that an installation of `root` brings. Optional packages count where they are installed here;
 * our own count with their source maps, which are not published.
 */
function installedPackages(root: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const queue = [realpathSync(root)];
  for (const path of queue) {
    const manifest = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
    const key = `${manifest.name} ${manifest.version}`;
    if (found.has(key)) continue;
    found.set(key, bytesOf(path, isOurs(path) ? manifest.files : undefined));
    for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
      const dependency = findPackage(name, path);
      if (dependency !== undefined) queue.push(dependency);
    }
  }
  return found;
}

function isOurs(path: string): boolean {
  return path.startsWith(join(REPOSITORY, "packages"));
}

/** As Node does: in the node_modules of the directory and of those above it. */
function findPackage(name: string, from: string): string | undefined {
  for (let directory = from; ; directory = dirname(directory)) {
    const path = join(directory, "node_modules", name);
    if (statSync(join(path, "package.json"), { throwIfNoEntry: false })) return realpathSync(path);
    if (directory === dirname(directory)) return undefined;
  }
}

/** `published`: the entries of a package in this repository that are published. Default: all. */
function bytesOf(path: string, published?: readonly string[]): number {
  let sum = 0;
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.name === "node_modules" || published?.includes(entry.name) === false) continue;
    const child = join(path, entry.name);
    if (entry.isDirectory()) sum += bytesOf(child);
    else if (entry.isFile()) sum += statSync(child).size;
  }
  return sum;
}
