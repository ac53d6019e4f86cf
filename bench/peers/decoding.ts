/** The way back: what a call number stands for, beside looking at its eight characters. */
import { decodeCallNumber, isCallNumber, toNumber } from "@callnumber/protocol/codec";
import { figure, quantile, spreadInWords } from "../quantiles.js";
import type { Section } from "../report.js";
import { clientOfRisingRuns } from "./rising-source.js";
import { timeLoops } from "./rounds.js";

const TEXT_COUNT = 65_536;
const INDEX_MASK = TEXT_COUNT - 1;

export async function decodingSection(roundCount: number): Promise<Section> {
  const texts: readonly string[] = await clientOfRisingRuns().take(TEXT_COUNT);
  const ways: readonly (readonly [string, (count: number) => number])[] = [
    [
      "eight charCodeAt()",
      (count) => {
        let sum = 0;
        for (let index = 0; index < count; index++) {
          const text = texts[index & INDEX_MASK] as string;
          sum += text.charCodeAt(0) + text.charCodeAt(1) + text.charCodeAt(2) + text.charCodeAt(3);
          sum += text.charCodeAt(4) + text.charCodeAt(5) + text.charCodeAt(6) + text.charCodeAt(7);
        }
        return sum;
      },
    ],
    [
      "decodeCallNumber()",
      (count) => {
        let sum = 0;
        for (let index = 0; index < count; index++) {
          const { version, run, sequence } = decodeCallNumber(texts[index & INDEX_MASK] as string);
          sum += version + run + sequence;
        }
        return sum;
      },
    ],
    [
      "toNumber()",
      (count) => {
        let sum = 0;
        for (let index = 0; index < count; index++) sum += toNumber(texts[index & INDEX_MASK] as string);
        return sum;
      },
    ],
    [
      "isCallNumber()",
      (count) => {
        let sum = 0;
        for (let index = 0; index < count; index++) sum += isCallNumber(texts[index & INDEX_MASK] as string) ? 1 : 0;
        return sum;
      },
    ],
  ];
  const rounds = await timeLoops(
    ways.map(([, loop]) => ({ loop })),
    roundCount,
  );
  return {
    heading: "What a call number stands for",
    sentences: [
      `${TEXT_COUNT.toLocaleString("en-US")} different ones, over and over; the sum of what is found is kept.`,
    ],
    table: {
      columns: ["way", "ns a number", "times eight charCodeAt()"],
      rows: ways.map(([name], index) => {
        const ns = rounds[index] ?? [];
        return [
          name,
          figure(quantile(ns, 0.5)),
          spreadInWords(ns.map((one, round) => one / (rounds[0]?.[round] as number))),
        ];
      }),
    },
  };
}
