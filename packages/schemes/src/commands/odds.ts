/** `schemes odds`: how likely two of some drawn numbers are the same, and how many may be drawn. */
import { Command } from "commander";
import { approximateChanceOfRepeat, chanceOfRepeat, drawsForChance } from "../index.js";
import { chanceInWords, countInWords } from "./figures.js";
import type { SchemesIo } from "./io.js";
import { quickOption } from "./options.js";
import { labelled, lineWidth } from "./sentences.js";

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

export function oddsCommand(io: SchemesIo): Command {
  return new Command("odds")
    .summary("compute the chance that drawn numbers repeat")
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
      "\nExamples:\n  $ callnumber schemes odds --space 62^5 --drawn 30000\n  $ callnumber schemes odds --space 2^122 --chance 1e-9",
    )
    .action(({ space, drawn, chance, json }: Options) => {
      const chances = chance === undefined ? USUAL_CHANCES : [chance];
      const draws = chances.map((each) => ({ chance: each, drawn: drawsForChance(space.count, each) }));
      if (json) return io.printJson({ space: String(space.count), ...(drawn && drawnAsJson(space, drawn)), draws });
      const width = lineWidth(io);
      io.print(`${drawn === undefined ? "" : `${inFull(drawn)} draws of `}${inFull(space)} numbers\n`);
      if (drawn !== undefined) io.print(`${labelled(drawnInWords(space, drawn), width).join("\n")}\n`);
      io.print("Draws until a repeat has a chance of");
      const figureWidth = Math.max(...draws.map((each) => countInWords(each.drawn).length));
      const rows = draws.map((each) => {
        return [chanceInWords(each.chance), countInWords(each.drawn).padStart(figureWidth)] as const;
      });
      io.print(labelled(rows, width).join("\n"));
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

/** Above, a double is no number any more. */
const BITS_MAX = 1_000;
const GREATEST = 1n << BigInt(BITS_MAX);
const FACTOR = /^(\d+)(?:e(\d{1,3}))?(?:\^(\d{1,9}))?$/;

/**
 * How many numbers there are, as people write it: `62^5`, `2^122`, `10^6`, `916,132,832`, `2 * 36^4`, `1e9`. At least 1.
 * @throws RangeError
 */
export function numberExpression(text: string): bigint {
  const factors = text
    .replace(/\s/g, "")
    .replace(/(?<=\d)[_,](?=\d)/g, "")
    .split("*");
  const value = factors.reduce((product, factor) => smallEnough(product * factorIn(factor)), 1n);
  if (value < 1n) throw new RangeError("must be at least 1");
  return value;
}

/** The size is looked at before the power is taken: a long one could take for ever. */
function factorIn(factor: string): bigint {
  const [, digits, exponent = "0", power = "1"] = FACTOR.exec(factor) ?? [];
  if (digits === undefined || digits.length > BITS_MAX) {
    throw new RangeError("must be a whole number from 1 on, such as 62^5, 2^122, 10^6 or 916,132,832");
  }
  const base = BigInt(digits) * 10n ** BigInt(exponent);
  if (base > 1n && (base.toString(2).length - 1) * Number(power) > BITS_MAX) throw tooLarge();
  // To the power of more than it can be large only 0 and 1 come here: of them the first power is as good.
  return base > 1n || power === "0" ? base ** BigInt(power) : base;
}

function smallEnough(value: bigint): bigint {
  if (value > GREATEST) throw tooLarge();
  return value;
}

function tooLarge(): RangeError {
  return new RangeError(`is more than 2^${BITS_MAX}`);
}
