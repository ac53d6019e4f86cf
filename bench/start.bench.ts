/** How long the command takes to begin: beside a Node that does nothing, in turns. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "vitest";
import { folderForTest, REPOSITORY } from "../test/processes/command.js";
import { machineInWords } from "./machine.js";
import { figure, quantile, spreadInWords } from "./quantiles.js";
import { publish } from "./report.js";

const COMMAND = join(REPOSITORY, "packages", "cli", "bin", "callnumber.js");
const ROUND_COUNT = 21;

interface Start {
  readonly name: string;
  /** Resolves when what was asked for is there, to what is to be done before the next begins. */
  readonly begin: () => Promise<() => Promise<void>>;
}

const STARTS: readonly Start[] = [
  { name: "node -e 0", begin: () => toItsEnd(["-e", "0"]) },
  { name: "callnumber --version", begin: () => toItsEnd([COMMAND, "--version"]) },
  { name: "callnumber decode 2VznWE2i", begin: () => toItsEnd([COMMAND, "decode", "2VznWE2i"]) },
  { name: "callnumber encode 0 99 345", begin: () => toItsEnd([COMMAND, "encode", "0", "99", "345"]) },
  { name: "callnumber --help", begin: () => toItsEnd([COMMAND, "--help"]) },
  { name: "callnumber serve, a new embedded store, until it listens", begin: untilItListens },
];

test("the start of the command", async () => {
  const rounds = STARTS.map((): number[] => []);
  for (let round = 0; round <= ROUND_COUNT; round++) {
    for (const [index, start] of STARTS.entries()) {
      const startedAtMs = performance.now();
      const end = await start.begin();
      // The first round reads the files from the disk.
      if (round > 0) rounds[index]?.push(performance.now() - startedAtMs);
      await end();
    }
  }
  const [base] = rounds as [number[]];
  publish({
    bench: "start",
    sections: [
      {
        heading: "From the command line to the answer",
        sentences: [
          `${machineInWords()} ${ROUND_COUNT} rounds, each with a process for every line; medians, and the quartiles of the ratios within a round.`,
        ],
        table: {
          columns: ["command", "ms", "times node -e 0"],
          rows: STARTS.map(({ name }, index) => {
            const ms = rounds[index] as number[];
            return [
              name,
              figure(quantile(ms, 0.5)),
              spreadInWords(ms.map((value, round) => value / (base[round] as number))),
            ];
          }),
        },
      },
    ],
  });
});

async function toItsEnd(parameters: readonly string[]): Promise<() => Promise<void>> {
  const [code] = (await once(spawn(process.execPath, parameters, { stdio: "ignore" }), "close")) as [number | null];
  if (code !== 0) throw new Error(`${parameters.join(" ")} ended with ${code}`);
  return async () => {};
}

/** In a fresh folder: with all that a first start has to make. */
async function untilItListens(): Promise<() => Promise<void>> {
  const folder = await folderForTest();
  const parameters = ["serve", "--store", `sqlite:${join(folder, "store.db")}`, "--create", "--port", "0"];
  const child = spawn(process.execPath, [COMMAND, ...parameters, "--witness-folder", join(folder, "witness")], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = once(child, "close");
  let said = "";
  child.stderr.setEncoding("utf8");
  for await (const text of child.stderr.iterator({ destroyOnReturn: false })) {
    said += text as string;
    if (said.includes("listening on")) break;
  }
  if (!said.includes("listening on")) throw new Error(`callnumber serve ended: ${said}`);
  return async () => {
    child.stderr.resume();
    child.kill();
    await ended;
  };
}
