/** `birthday`: how likely two of some drawn numbers are the same, and how many may be drawn. Offline. */
import { approximateChanceOfRepeat, chanceOfRepeat, drawsForChance } from "@callnumber/schemes";
import { Command } from "commander";
import { chanceInWords, countInWords } from "./figures.js";
import { print, printJson } from "./print.js";
import { quickOption } from "./quick-option.js";
import { numberExpression } from "./schemes/number-expression.js";
import { labelled } from "./schemes/sentences.js";

interface Options {
  readonly space: Space;
  readonly drawn?: Space;
  readonly chance?: number;
  readonly json?: boolean;
}

/** A count, and how it was typed. */
interface Space {
  readonly text: string;
  readonly count: bigint;
}

/** From what nobody fears to what nobody risks. */
const USUAL_CHANCES: readonly number[] = [1e-9, 1e-6, 1e-3, 0.01, 0.5, 0.99];
const CHANCE_DIGITS = 12;
const SPELT_DIGITS_MAX = 24;

export function birthdayCommand(): Command {
  return new Command("birthday")
    .summary("the chance that drawn numbers repeat, and how many may be drawn (offline)")
    .description(
      "Tells the chance that two of so many numbers, drawn at random from so many, are the same; exactly, and by the rule of thumb " +
        "that most documents print. And how many draws it takes until a repeat has a given chance.",
    )
    .addOption(
      quickOption(
        "--space <numbers>",
        "how many numbers there are: 62^5, 2^122, 916,132,832",
        typed,
      ).makeOptionMandatory(),
    )
    .addOption(quickOption("--drawn <numbers>", "how many are drawn: 30000, 10^9", typed))
    .addOption(quickOption("--chance <chance>", "tell the draws for this chance: 0.5, 1%, 1e-9", chanceIn))
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber birthday --space 62^5 --drawn 30000\n  $ callnumber birthday --space 2^122 --chance 1e-9",
    )
    .action(({ space, drawn, chance, json }: Options) => {
      const chances = chance === undefined ? USUAL_CHANCES : [chance];
      const draws = chances.map((each) => ({ chance: each, drawn: drawsForChance(space.count, each) }));
      if (json) return printJson({ space: String(space.count), ...(drawn && drawnAsJson(space, drawn)), draws });
      print(`${drawn === undefined ? "" : `${inFull(drawn)} draws of `}${inFull(space)} numbers\n`);
      if (drawn !== undefined) print(`${labelled(drawnInWords(space, drawn)).join("\n")}\n`);
      print("Draws until a repeat has a chance of");
      const width = Math.max(...draws.map((each) => countInWords(each.drawn).length));
      print(
        labelled(
          draws.map((each) => [chanceInWords(each.chance), countInWords(each.drawn).padStart(width)] as const),
        ).join("\n"),
      );
    });
}

function drawnInWords(space: Space, drawn: Space): readonly (readonly [string, string])[] {
  const exact = chanceOfRepeat(space.count, drawn.count);
  const approximate = approximateChanceOfRepeat(space.count, drawn.count);
  const certain = drawn.count > space.count ? ": more are drawn than there are" : "";
  return [
    ["a repeat", `${chanceInWords(exact)}${certain || figure(exact)}`],
    ["by the rule of thumb", `${chanceInWords(approximate)}${figure(approximate)}: 1 - e^(-n(n-1)/2s)`],
    ["pairs alike, expected", countInWords(pairsExpected(space, drawn))],
  ];
}

function drawnAsJson(space: Space, drawn: Space): object {
  return {
    drawn: String(drawn.count),
    chance: chanceOfRepeat(space.count, drawn.count),
    approximation: approximateChanceOfRepeat(space.count, drawn.count),
    pairsExpected: pairsExpected(space, drawn),
  };
}

function pairsExpected({ count: space }: Space, { count: drawn }: Space): number {
  return (Number(drawn) * (Number(drawn) - 1)) / (2 * Number(space));
}

/** `62^5 = 916,132,832`; of a long one what was typed, and its size. */
function inFull({ text, count }: Space): string {
  const digits = String(count);
  const spelt =
    digits.length <= SPELT_DIGITS_MAX ? count.toLocaleString("en-US") : `about ${countInWords(Number(count))}`;
  return text.replace(/[\s,_]/g, "") === digits ? spelt : `${text} = ${spelt}`;
}

function figure(chance: number): string {
  return chance === 0 || chance === 1 ? "" : `  (${Number(chance.toPrecision(CHANCE_DIGITS))})`;
}

function typed(text: string): Space {
  return { text: text.trim(), count: numberExpression(text) };
}

/** @throws RangeError */
function chanceIn(text: string): number {
  const [, digits = "", percent = ""] = /^\s*(\d*\.?\d+(?:e-?\d{1,3})?)\s*(%?)\s*$/.exec(text) ?? [];
  const chance = Number(digits || Number.NaN) / (percent === "%" ? 100 : 1);
  if (chance > 0 && chance < 1) return chance;
  throw new RangeError("must be above 0 and below 1, such as 0.5, 1% or 1e-9");
}
