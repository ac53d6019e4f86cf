/** `schemes odds`: how likely two of some drawn numbers are the same, and how many may be drawn. */
import { Command, InvalidArgumentError } from "commander";
import { approximateChanceOfRepeat, chanceOfRepeat, drawsForChance } from "../birthday.js";
import { formatChance, formatCount, grouped, type LabeledRows, labeledLines, lineWidth } from "./format.js";
import type { SchemesIo } from "./io.js";
import { type Count, parseCount } from "./options.js";

interface Options {
  readonly space: Count;
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
    .requiredOption("--space <numbers>", "how many numbers there are: 62^5, 2^122, 916,132,832", parseCount)
    .option("--drawn <numbers>", "how many are drawn: 30000, 10^9", parseCount)
    .option("--chance <chance>", "show the draws for this chance: 0.5, 1%, 1e-9", parseChance)
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber schemes odds --space 62^5 --drawn 30000\n  $ callnumber schemes odds --space 2^122 --chance 1e-9",
    )
    .action((options: Options) => computeOdds(options, io));
}

function computeOdds({ space, drawn, chance, json }: Options, io: SchemesIo): void {
  const chances = chance === undefined ? USUAL_CHANCES : [chance];
  const draws = chances.map((each) => ({ chance: each, drawn: drawsForChance(Number(space.count), each) }));
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
