/**
 * What an import costs, against a plain loop that splits, parses headers and inserts. Targets: 1.6 times the CPU of that loop, 5,000 messages a
 * second by one process, 15,000 a second when all of them are stored already.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { build } from "esbuild";
import { test } from "vitest";
import { folderForTest, REPOSITORY, serveProcess } from "../test/processes/command.js";
import { describeMachine, formatSpread, inRounds, ratios, roundCount, size } from "./harness.js";
import { installed } from "./installed.js";
import { publish } from "./report.js";

const ROUND_COUNT = roundCount(9);
const COPY_COUNT = size(400, 4);
const CPU_TARGET_TIMES = 1.6;
const STORED_TARGET = 5_000;
const FOUND_TARGET = 15_000;
const ARCHIVE = join(REPOSITORY, "packages", "archive");

interface Usage {
  readonly ms: number;
  readonly cpuMs: number;
  readonly memoryMb: number;
}

test("an import", async () => {
  const directory = await folderForTest();
  const { url } = await serveProcess(`sqlite:${join(directory, "store.db")}`, "--create", "--log-level", "silent");
  const mbox = join(directory, "lists.mbox");
  const messageCount = writeList(mbox);
  let round = 0;
  const command = join(await installed("callnumber-archive"), "bin", "callnumber-archive.js");
  const plainLoop = await bundledPlainLoop();
  const importInto = (name: string) =>
    run(command, "import", mbox, "--archive", join(directory, name), "--coordinator", url, "--processes", "1");
  const known = "known.db";
  await importInto(known);
  const ways = [
    () => run(plainLoop, mbox, join(directory, `plain-${round++}.db`), url),
    () => importInto(`archive-${round++}.db`),
    () => importInto(known),
  ];
  const [plain = [], stored = [], found = []] = await inRounds(ways, ROUND_COUNT);
  const cpu = (usages: readonly Usage[]) => usages.map(({ cpuMs }) => cpuMs);
  const row = (name: string, usages: readonly Usage[], target: string) => [
    name,
    formatSpread(cpu(usages).map((ms) => (ms * 1000) / messageCount)),
    formatSpread(ratios(cpu(usages), cpu(plain))),
    formatSpread(usages.map(({ ms }) => (messageCount * 1000) / ms)),
    formatSpread(usages.map(({ memoryMb }) => memoryMb)),
    target,
  ];
  publish("import", {
    heading: "An import by one process",
    sentences: [
      `${describeMachine()} ${messageCount.toLocaleString("en-US")} messages, of the sample list, repeated with other Message-IDs; ${ROUND_COUNT} rounds of whole processes; medians and quartiles, ratios within a round. The package is installed, and the loop is bundled.`,
    ],
    table: {
      columns: ["import", "CPU µs a message", "times the plain loop", "messages a second", "MB", "target"],
      rows: [
        row("plain loop", plain, ""),
        row("new archive", stored, `${CPU_TARGET_TIMES} times, ${STORED_TARGET} a second`),
        row("all stored already", found, `${FOUND_TARGET} a second`),
      ],
    },
  });
});

/** Returns how many messages it has. */
function writeList(path: string): number {
  const sample = readFileSync(join(ARCHIVE, "sample", "garden.mbox"), "latin1");
  const copies = Array.from({ length: COPY_COUNT }, (_, index) =>
    sample.replace(/^(Message-ID: <|In-Reply-To: <|References: <)/gim, `$1${index}.`),
  );
  writeFileSync(path, copies.join(""), "latin1");
  return COPY_COUNT * (sample.match(/^Message-ID:/gim)?.length ?? 0);
}

/** With the parser of the archive, and bundled as the archive is, so that both load alike. */
async function bundledPlainLoop(): Promise<string> {
  const outfile = join(REPOSITORY, "bench", "dist", "import-plain.mjs");
  await build({
    entryPoints: [join(REPOSITORY, "bench", "import-plain.mjs")],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    external: ["@photostructure/sqlite"],
    nodePaths: [join(ARCHIVE, "node_modules")],
  });
  return outfile;
}

async function run(script: string, ...args: readonly string[]): Promise<Usage> {
  const startedAtMs = performance.now();
  const child = spawn(process.execPath, ["--import", join(REPOSITORY, "bench", "usage.mjs"), script, ...args], {
    stdio: ["ignore", "ignore", "ignore", "pipe"],
  });
  const usage = text(child.stdio[3] as NodeJS.ReadableStream);
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${script} exited with ${code}`);
  return { ms: performance.now() - startedAtMs, ...JSON.parse(await usage) };
}
