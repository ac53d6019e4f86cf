/** Options of these commands, which start at once: no schema library is loaded for them. And the names that they take. */
import { InvalidArgumentError, Option } from "commander";

/** `read` throws a RangeError whose message ends the sentence "is invalid". A flag that may be given again gets what came before. */
export function quickOption<T>(flags: string, description: string, read: (text: string, before?: T) => T): Option {
  return new Option(flags, description).argParser<T>((text, before) => {
    try {
      return read(text, before);
    } catch (error) {
      if (error instanceof RangeError) throw new InvalidArgumentError(error.message);
      throw error;
    }
  });
}

/** Digits, in groups where that helps: `30000`, `30,000`, `30_000`. @throws RangeError */
export function wholeNumberIn(min: number, max: number): (text: string) => number {
  return (text) => {
    const digits = text.replace(/(?<=\d)[_,](?=\d)/g, "");
    const value = /^\d{1,16}$/.test(digits) ? Number(digits) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new RangeError(`must be a whole number from ${min} to ${max.toLocaleString("en-US")}`);
  };
}

/** The one of `all` with a given name. It throws a RangeError with the names that are near, and with all. */
export function oneOf<T extends { readonly name: string }>(what: string, all: readonly T[]): (name: string) => T {
  return (name) => {
    const found = all.find((one) => one.name === name.toLowerCase());
    if (found !== undefined) return found;
    const names = all.map((one) => one.name);
    const near = similarNames(name, names);
    const meant = near.length === 0 ? "" : `Did you mean ${near.join(" or ")}?\n`;
    throw new RangeError(`there is no ${what} ${quoted(name)}. ${meant}The ${what}s are ${names.join(", ")}`);
  };
}

/** Several names, with spaces or commas between them, each once. It throws what `find` throws, or a RangeError for none. */
export function nameList<T>(find: (name: string) => T): (text: string, before?: readonly T[]) => readonly T[] {
  return (text, before = []) => {
    const named = text
      .split(",")
      .filter((name) => name !== "")
      .map(find);
    if (named.length === 0) throw new RangeError("must be at least one name");
    return [...new Set([...before, ...named])];
  };
}

const QUOTED_CHARACTERS_MAX = 40;

/** What somebody typed, cut short, for a message. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > QUOTED_CHARACTERS_MAX ? `${text.slice(0, QUOTED_CHARACTERS_MAX)}…` : text);
}

/** So many names are still a suggestion, and not the whole list. */
const NAMED_MAX = 3;

/** The nearest of the names, nearest first; none where all are far. */
function similarNames(typed: string, names: readonly string[]): readonly string[] {
  const word = typed.toLowerCase();
  return names
    .map((name) => ({ name, slips: slipsToNearestPart(word, name) }))
    .filter(({ slips }) => word.length > 1 && slips <= word.length / 3)
    .sort((one, other) => one.slips - other.slips)
    .slice(0, NAMED_MAX)
    .map(({ name }) => name);
}

/** Of a name with hyphens people remember one part. */
function slipsToNearestPart(word: string, name: string): number {
  if (name.includes(word) || word.includes(name)) return 0;
  return Math.min(...[name, ...name.split("-")].map((part) => slipsBetween(word, part)));
}

/** How many characters must be put in, taken out or replaced (Levenshtein). */
function slipsBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let place = 1; place <= one.length; place++) {
    const next = [place];
    for (let index = 1; index <= other.length; index++) {
      const replaced = (row[index - 1] as number) + (one[place - 1] === other[index - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[index] as number) + 1, (next[index - 1] as number) + 1));
    }
    row = next;
  }
  return row[other.length] as number;
}
