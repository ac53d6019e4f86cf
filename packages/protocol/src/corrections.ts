/**
 * Finds the call numbers that a mistyped text may have been meant for: without the characters around them, in another case, or with 0 and O, or
 * 1, l, I and i exchanged. Pure, and bounded for every text.
 */
import { CALL_NUMBER_LENGTH, runInBytes } from "./codec.js";

/** A call number that differs from the text by changes of one kind. */
export interface Correction {
  readonly callNumber: string;
  readonly slip: "surrounding" | "look_alike" | "case";
  /** The characters of the text that it changes, from 0. */
  readonly positions: readonly number[];
  /** `version · 2^30 + run`. */
  readonly ledgerId: number;
}

/** A longer text is no mistyped call number. */
const TEXT_LENGTH_MAX = 64;
const SIMILAR_CHARACTERS = ["0O", "1lIi"] as const;
/** Similar characters that are exchanged at the same time: 4^8 combinations would be too many. */
const SIMILAR_COUNT_MAX = 2;

/**
 * Returns at most `countMax` call numbers that `text` may have been meant for, those with the fewest changes first; never the text itself.
 * `exists` says which of at most 600 candidates count. In a text of both cases one letter may have the wrong case, in a text of one case
 * every letter.
 * @example correctionsOf("2vznwe2i", ({ callNumber }) => archive.has(callNumber), 5) // [{ callNumber: "2VznWE2i", slip: "case", … }]
 */
export function correctionsOf(
  text: string,
  exists: (candidate: Pick<Correction, "callNumber" | "ledgerId">) => boolean,
  countMax: number,
): readonly Correction[] {
  const digits = text.length > TEXT_LENGTH_MAX ? [] : [...text.matchAll(/[0-9A-Za-z]/g)];
  if (digits.length !== CALL_NUMBER_LENGTH) return [];
  const word = digits.map(([digit]) => digit).join("");
  const hasOneCase = word === word.toLowerCase() || word === word.toUpperCase();
  const corrections = new Map<string, Correction>();
  const add = (slip: Correction["slip"], callNumbers: Iterable<string>) => {
    for (const callNumber of callNumbers) {
      const ledgerId = runInBytes(
        Uint8Array.from(callNumber, (digit) => digit.charCodeAt(0)),
        0,
      );
      if (ledgerId < 0 || callNumber === text || corrections.has(callNumber)) continue;
      if (!exists({ callNumber, ledgerId })) continue;
      const changed = digits.filter(([digit], at) => digit !== callNumber.charAt(at));
      corrections.set(callNumber, { callNumber, slip, positions: changed.map(({ index }) => index), ledgerId });
    }
  };
  add("surrounding", [word]);
  add("case", variantsOf(word, inOtherCase, hasOneCase ? CALL_NUMBER_LENGTH : 1));
  add("look_alike", variantsOf(word, similarTo, SIMILAR_COUNT_MAX));
  return [...corrections.values()].sort((a, b) => a.positions.length - b.positions.length).slice(0, countMax);
}

/** Every word with 1 to `countMax` characters replaced, from the index `from` on. */
function* variantsOf(
  word: string,
  alternativesOf: (character: string) => string,
  countMax: number,
  from = 0,
): Generator<string> {
  for (let at = from; at < word.length; at++) {
    for (const other of alternativesOf(word.charAt(at))) {
      const variant = word.slice(0, at) + other + word.slice(at + 1);
      yield variant;
      if (countMax > 1) yield* variantsOf(variant, alternativesOf, countMax - 1, at + 1);
    }
  }
}

function similarTo(character: string): string {
  return SIMILAR_CHARACTERS.find((group) => group.includes(character))?.replace(character, "") ?? "";
}

function inOtherCase(character: string): string {
  const lower = character.toLowerCase();
  return (lower === character ? character.toUpperCase() : lower).replace(character, "");
}
