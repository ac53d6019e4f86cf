/** What the rounds say, as sections of a report. */
import { machineInWords } from "../machine.js";
import { figure, quantile, spreadInWords } from "../quantiles.js";
import type { Section, Table } from "../report.js";
import type { Contender } from "./contender.js";
import { HYPERID, OURS, OURS_IN_THOUSANDS } from "./contenders.js";
import type { Observed } from "./observed.js";
import type { Rounds, Timed } from "./rounds.js";

export interface Result extends Contender, Timed, Observed {
  readonly version: string | undefined;
}

/** The first result is the floor and the second ours. */
export type Results = readonly [floor: Result, ours: Result, ...others: Result[]];

export function headlineOf(results: Results): string {
  const found = (wanted: string) => results.find(({ name }) => name === wanted) as Result;
  const [one, many, hyperid] = [found(OURS), found(OURS_IN_THOUSANDS), found(HYPERID)];
  const times = (of: Result) => {
    const [kept, read] = (["keptNs", "readNs"] as const).map((column) =>
      figure(quantile(hyperid[column], 0.5) / quantile(of[column], 0.5)),
    );
    return `${kept} (${read})`;
  };
  return (
    `Numbers a second in one process, kept (and read): ${bothPerSecond(one)} by nextSync(), ${bothPerSecond(many)} by take(1000), ` +
    `${bothPerSecond(hyperid)} by hyperid; ours are ${times(one)} and ${times(many)} times as many.`
  );
}

export function sectionsOf(results: Results, roundCount: number): readonly Section[] {
  return [
    {
      heading: "A number that is kept",
      sentences: [
        `${machineInWords()} All ways in one process, in turns, in ${roundCount} rounds; medians, and the quartiles of the ratios within a round. Nothing is drawn from a seed.`,
        "Each number is put into an array that is there already, and stays there until a thousand more have come. A thousand that come together are kept as they come.",
      ],
      table: timesOf(results, "keptNs"),
    },
    {
      heading: "A number that is read",
      sentences: [
        "Every character is looked at, as by whoever writes it somewhere: a text that was only strung together is put together here.",
      ],
      table: timesOf(results, "readNs"),
    },
    {
      heading: "What else was seen",
      sentences: [
        "What the heap grows by for each number that is kept, the place in the array left out; and repeats in a tight loop. A maker that throws was called again at once.",
      ],
      table: {
        columns: ["way", "version", "characters", "bytes a number", "repeats"],
        rows: results.map((result) => [
          result.name,
          result.version ?? "-",
          String(result.characterCount),
          figure(result.heapBytes),
          repeatsInWords(result),
        ]),
      },
    },
  ];
}

function timesOf(results: Results, column: keyof Timed): Table {
  const [floor, ours] = results;
  return {
    columns: ["way", "ns a number", "a second", "times the floor", "times nextSync()"],
    rows: results.map((result) => {
      const ns = quantile(result[column], 0.5);
      return [
        result.name,
        figure(ns),
        perSecond(ns),
        ratios(result[column], floor[column]),
        ratios(result[column], ours[column]),
      ];
    }),
  };
}

function ratios(rounds: Rounds, base: Rounds): string {
  return spreadInWords(rounds.map((ns, round) => ns / (base[round] as number)));
}

function bothPerSecond({ keptNs, readNs }: Result): string {
  return `${perSecond(quantile(keptNs, 0.5))} (${perSecond(quantile(readNs, 0.5))})`;
}

function perSecond(ns: number): string {
  const count = 1e9 / ns;
  return count >= 1e6 ? `${figure(count / 1e6)} million` : figure(count);
}

function repeatsInWords({ repeatCount, madeCount, throwCount }: Result): string {
  const thrown = throwCount?.() ?? 0;
  const throws = thrown === 0 ? "" : `; threw ${thrown.toLocaleString("en-US")} times`;
  return `${repeatCount.toLocaleString("en-US")} of ${madeCount.toLocaleString("en-US")}${throws}`;
}
