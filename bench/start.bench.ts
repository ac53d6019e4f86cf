/**
 * How fast the commands start, compared with a Node that does nothing, and how much the installed command takes on the disk. Targets:
 * `serve` ready in 250 ms, the help in 200 ms, `callnumber --version` at 1.15 times `node -e 0`, an installation of 25 MB.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "vitest";
import { folderForTest } from "../test/processes/command.js";
import { describeMachine, formatFigure, formatSpread, inRounds, ratios, roundCount } from "./harness.js";
import { installed } from "./installed.js";
import { publish } from "./report.js";

const ROUND_COUNT = roundCount(21);
const VERSION_TARGET_TIMES = 1.15;
const HELP_TARGET_MS = 200;
const READY_TARGET_MS = 250;
const SIZE_TARGET_MB = 25;
const LARGEST_COUNT = 4;

test("the start of the commands", async () => {
  const directory = await installed("callnumber");
  const script = join(directory, "bin", "callnumber.js");
  const ways = [
    { name: "node -e 0", target: "", measure: () => untilExit("-e", "0") },
    {
      name: "callnumber --version",
      target: `${VERSION_TARGET_TIMES} times node -e 0`,
      measure: () => untilExit(script, "--version"),
    },
    { name: "callnumber --help", target: `${HELP_TARGET_MS} ms`, measure: () => untilExit(script, "--help") },
    {
      name: "callnumber serve, a new embedded store, until it listens",
      target: `${READY_TARGET_MS} ms`,
      measure: () => untilReady(script),
    },
  ];
  const rounds = await inRounds(
    ways.map(({ measure }) => measure),
    ROUND_COUNT,
  );
  const entries = entriesOf(directory);
  const sum = entries.reduce((total, [, bytes]) => total + bytes, 0);
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
    heading: "What the installed command takes on the disk",
    sentences: [
      `One package of ${formatFigure(sum / 1e6)} MB with all that it needs; the target is ${SIZE_TARGET_MB} MB. Its largest entries:`,
    ],
    table: {
      columns: ["entry", "MB"],
      rows: entries.slice(0, LARGEST_COUNT).map(([name, bytes]) => [name, formatFigure(bytes / 1e6)]),
    },
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
async function untilReady(script: string): Promise<number> {
  const directory = await folderForTest();
  const args = ["serve", "--store", `sqlite:${join(directory, "store.db")}`, "--create", "--port", "0"];
  const startedAtMs = performance.now();
  const child = spawn(process.execPath, [script, ...args, "--checkpoint-dir", join(directory, "checkpoint")], {
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

/** Returns the bytes of each entry of the package, largest first. */
function entriesOf(directory: string): readonly (readonly [name: string, bytes: number])[] {
  const entries = readdirSync(directory).map((name) => [name, bytesOf(join(directory, name))] as const);
  return entries.sort(([, one], [, other]) => other - one);
}

function bytesOf(path: string): number {
  const stats = statSync(path);
  if (!stats.isDirectory()) return stats.size;
  return readdirSync(path).reduce((sum, name) => sum + bytesOf(join(path, name)), 0);
}
