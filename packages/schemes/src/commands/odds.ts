/** `schemes odds`: how likely two of some drawn numbers are the same, and how many may be drawn. */
import { Command, InvalidArgumentError } from "commander";
import { approximateChanceOfRepeat, chanceOfRepeat, drawsForChance } from "../birthday.js";
import { formatChance, formatCount, grouped, type LabeledRows, labeledLines, lineWidth, wrapped } from "./format.js";
import type { Column, SchemesIo } from "./io.js";
import { type Count, parseCount } from "./options.js";

interface Options {
  readonly space?: Count;
  readonly drawn?: Count;
  readonly chance?: number;
  readonly json?: boolean;
}

const USUAL_CHANCES: readonly number[] = [1e-9, 1e-6, 1e-3, 0.01, 0.5, 0.99];
const CHANCE_DIGITS = 12;
/** A longer count is shown by its size. */
const DIGITS_SHOWN_MAX = 24;

export function oddsCommand(io: SchemesIo): Command {
  return new Command("odds")
    .summary("Compute the chance that drawn numbers repeat")
    .description(
      "Computes the chance that two of so many numbers, drawn at random from so many, are the same; exactly, and by the rule of thumb " +
        "that most documents print. And how many draws it takes until a repeat has a given chance.",
    )
    .option("--space <numbers>", "how many numbers there are: 62^5, 2^122 (default: the usual sizes)", parseCount)
    .option("--drawn <numbers>", "how many are drawn: 30000, 10^9", parseCount)
    .option("--chance <chance>", "show the draws for this chance: 0.5, 1%, 1e-9", parseChance)
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber schemes odds\n  $ callnumber schemes odds --space 62^5 --drawn 30000\n  $ callnumber schemes odds --space 2^122 --chance 1e-9",
    )
    .action(({ space, ...options }: Options) => {
      if (space === undefined) return printUsualSizes(options, io);
      return computeOdds({ ...options, space }, io);
    });
}

/** The sizes that people choose, smallest first, and what has them. */
const USUAL_SIZES: readonly (readonly [space: string, what: string])[] = [
  ["62^5", "5 characters"],
  ["2^32", "8 hex digits"],
  ["62^6", "6 characters"],
  ["62^7", "7 characters"],
  ["62^8", "8 characters"],
  ["2^48", "12 hex digits"],
  ["62^10", "10 characters"],
  ["2^64", "rand64"],
  ["2^80", "ULIDs of one ms"],
  ["2^122", "UUID, version 4"],
  ["2^126", "nanoid"],
];
/** As many as a terminal of 80 columns has room for. */
const TABLE_CHANCES: readonly number[] = [1e-6, 0.01, 0.5];

function printUsualSizes({ drawn, chance, json }: Options, io: SchemesIo): void {
  const sizes = USUAL_SIZES.map(([space, what]) => {
    const size = Number(parseCount(space).count);
    const draws = drawsFor(size, chance === undefined ? TABLE_CHANCES.slice(drawn === undefined ? 0 : 1) : [chance]);
    const odds = drawn && { drawn: String(drawn.count), ...oddsOf(size, Number(drawn.count)) };
    return { space, what, odds, draws };
  });
  if (json) {
    const written = sizes.map(({ odds, draws, ...size }) => Object.assign(size, odds, { draws }));
    return io.printJson({ sizes: written });
  }
  const columns: Column<(typeof sizes)[number]>[] = [
    { heading: "NUMBERS", cellOf: ({ space }) => space, expendability: 0 },
    { heading: "AS", cellOf: ({ what }) => what, expendability: 1 },
  ];
  if (drawn !== undefined) {
    columns.push({ heading: "A REPEAT", cellOf: (row) => formatChance(row.odds?.chance ?? 0), expendability: 0 });
  }
  for (const [index, each] of (sizes[0]?.draws ?? []).entries()) {
    const cellOf = ({ draws }: (typeof sizes)[number]) => formatCount(draws[index]?.drawn ?? 0);
    columns.push({ heading: formatChance(each.chance), cellOf, expendability: 2 });
  }
  const among = drawn === undefined ? "" : `A REPEAT: among ${formatTyped(drawn)} draws. `;
  io.print(`${wrapped(`${among}Draws until a repeat has the chance of a column:`, lineWidth(io)).join("\n")}\n`);
  io.printPainted(io.table(columns, sizes));
}

function drawsFor(space: number, chances: readonly number[]) {
  return chances.map((chance) => ({ chance, drawn: drawsForChance(space, chance) }));
}

function computeOdds({ space, drawn, chance, json }: Options & { readonly space: Count }, io: SchemesIo): void {
  const draws = drawsFor(Number(space.count), chance === undefined ? USUAL_CHANCES : [chance]);
  const odds = drawn && { drawn: String(drawn.count), ...oddsOf(Number(space.count), Number(drawn.count)) };
  if (json) return io.printJson({ space: String(space.count), ...odds, draws });
  const printRows = (rows: LabeledRows, end = "") => io.print(`${labeledLines(rows, lineWidth(io)).join("\n")}${end}`);
  io.print(`${drawn === undefined ? "" : `${formatTyped(drawn)} draws of `}${formatTyped(space)} numbers\n`);
  if (odds !== undefined) {
    const { approximation, pairsExpected } = odds;
    const rows: LabeledRows = [
      ["a repeat", `${formatChance(odds.chance)}${inFull(odds.chance)}`],
      ["by the rule of thumb", `${formatChance(approximation)}${inFull(approximation)}: 1 - e^(-n(n-1)/2s)`],
      ["pairs alike, expected", formatCount(pairsExpected)],
    ];
    printRows(rows, "\n");
  }
  io.print("Draws until a repeat has a chance of");
  const countWidth = Math.max(...draws.map((each) => formatCount(each.drawn).length));
  printRows(draws.map((each) => [formatChance(each.chance), formatCount(each.drawn).padStart(countWidth)]));
}

function oddsOf(space: number, drawn: number) {
  return {
    chance: chanceOfRepeat(space, drawn),
    approximation: approximateChanceOfRepeat(space, drawn),
    pairsExpected: (drawn * (drawn - 1)) / (2 * space),
  };
}

function inFull(chance: number): string {
  return chance === 0 || chance === 1 ? "" : `  (${Number(chance.toPrecision(CHANCE_DIGITS))})`;
}

/** `62^5 = 916,132,832`; of a long one what was typed, and its size. */
function formatTyped({ text, count }: Count): string {
  const digits = String(count);
  const value = digits.length <= DIGITS_SHOWN_MAX ? grouped(count) : `about ${formatCount(Number(count))}`;
  return text.replace(/[\s,_]/g, "") === digits ? value : `${text} = ${value}`;
}

/** @throws InvalidArgumentError */
function parseChance(text: string): number {
  const [, digits = "", percent = ""] = /^\s*(\d*\.?\d+(?:e-?\d{1,3})?)\s*(%?)\s*$/.exec(text) ?? [];
  const chance = Number(digits || Number.NaN) / (percent === "%" ? 100 : 1);
  if (chance > 0 && chance < 1) return chance;
  throw new InvalidArgumentError("must be above 0 and below 1, such as 0.5, 1% or 1e-9");
}
