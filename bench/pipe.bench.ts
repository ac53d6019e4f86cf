/** `callnumber decode -` and `encode -` in a pipe, beside programs that do less: cat, which copies, and wc -l, which counts lines. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { callNumbersOfRun, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { test } from "vitest";
import { folderForTest, shell } from "../test/processes/command.js";
import { machineInWords } from "./machine.js";
import { figure, quantile, spreadInWords } from "./quantiles.js";
import { publish } from "./report.js";

const RUN_COUNT = 305;
const LINE_COUNT = RUN_COUNT * SEQUENCE_COUNT;
const ROUND_COUNT = 7;

interface Cost {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

test("call numbers through a pipe", async () => {
  const folder = await folderForTest();
  const [numbers, parts] = ["numbers.txt", "parts.csv"].map((name) => join(folder, name)) as [string, string];
  writeFileSync(numbers, manyNumbers());
  await shell(`$CALLNUMBER decode - < ${numbers} > ${parts}`);
  const ways = [
    ["cat", `cat ${numbers} | cat > /dev/null`],
    ["wc -l", `cat ${numbers} | wc -l > /dev/null`],
    ["callnumber decode -", `cat ${numbers} | $CALLNUMBER decode - > /dev/null`],
    ["callnumber decode - --json", `cat ${numbers} | $CALLNUMBER decode - --json > /dev/null`],
    ["callnumber encode -", `cat ${parts} | $CALLNUMBER encode - > /dev/null`],
  ] as const;
  const costs = ways.map((): Cost[] => []);
  for (let round = 0; round <= ROUND_COUNT; round++) {
    for (const [index, [, line]] of ways.entries()) {
      const cost = await costOf(line);
      // The first round reads the files from the disk.
      if (round > 0) costs[index]?.push(cost);
    }
  }
  const [base] = costs as [Cost[]];
  publish({
    bench: "pipe",
    sections: [
      {
        heading: "Call numbers through a pipe",
        sentences: [
          `${machineInWords()} ${LINE_COUNT.toLocaleString("en-US")} lines, ${ROUND_COUNT} rounds, all ways in turns in each; medians, and the quartiles of the ratios within a round. ` +
            "The CPU is that of both sides of the pipe, the start of Node included.",
        ],
        table: {
          columns: ["right side of the pipe", "seconds", "lines a second of CPU", "times cat"],
          rows: ways.map(([name], index) => {
            const found = costs[index] as Cost[];
            const cpuSeconds = quantile(
              found.map((cost) => cost.cpuSeconds),
              0.5,
            );
            return [
              name,
              figure(
                quantile(
                  found.map(({ seconds }) => seconds),
                  0.5,
                ),
              ),
              `${figure(LINE_COUNT / cpuSeconds / 1e6)} million`,
              spreadInWords(found.map(({ seconds }, round) => seconds / (base[round] as Cost).seconds)),
            ];
          }),
        },
      },
    ],
  });
});

function manyNumbers(): string {
  return Array.from({ length: RUN_COUNT }, (_, run) => callNumbersOfRun(0, 1_000_000 + run))
    .map((spell) => Array.from({ length: SEQUENCE_COUNT }, (_, sequence) => `${spell(sequence)}\n`).join(""))
    .join("");
}

async function costOf(line: string): Promise<Cost> {
  const { code, stderr } = await shell(`TIMEFORMAT="%3R %3U %3S"; time { ${line}; }`);
  if (code !== 0) throw new Error(`${line} ended with ${code}: ${stderr}`);
  const [seconds, user, system] = stderr.trim().split(" ").map(Number) as [number, number, number];
  return { seconds, cpuSeconds: user + system };
}
