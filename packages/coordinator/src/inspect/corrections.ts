/**
 * What a text may have been before a slip of the eye, the hand or a program: other call numbers, the likeliest first. Pure, and
 * bounded whatever the text is; whether anybody made one of them, the ledger says.
 */
import { CALL_NUMBER_LENGTH, runInBytes } from "@callnumber/protocol/codec";
import type { CallNumberHint } from "@callnumber/protocol/wire";

/** A call number that differs from the text by one slip, or by several of one kind. */
export interface Slip extends Pick<CallNumberHint, "callNumber" | "slip" | "positions"> {
  /** `version · 2^30 + run`. */
  readonly ledgerId: number;
}

/** Ledger ids that a number can have at all: from the first run to the mark. */
export interface LeasedRange {
  readonly firstLedgerId: number;
  readonly lastLedgerId: number;
}

/** Words of a text that are looked at; the last ones, as a number stands at the end of an address. */
const WORD_COUNT_MAX = 4;
/** Corrected words that are decoded for one text. */
const CANDIDATE_COUNT_MAX = 4_096;
/** No text of people is longer; of a longer one the end is looked at. */
const TEXT_LENGTH_MAX = 512;

/** Each may have been read or typed for each other of its row. */
const LOOK_ALIKES = ["0Oo", "1lIi|", "5Ss", "2Zz", "8B", "6b", "9gq", "uv", "UV"] as const;
/** Two characters that look like one, and the one. */
const PAIRS: readonly (readonly [pair: string, one: string])[] = [
  ["rn", "m"],
  ["vv", "w"],
  ["VV", "W"],
  ["cl", "d"],
];
/** Letters of other scripts, each as the letter that it is taken for. Full-width ones become plain by NFKC. */
const TWINS = twinsOf(
  "АВЕЗКМНОРСТУХЬаеікорсухѕјԁһԛԝІЅЈΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορικυχ",
  "ABE3KMHOPCTYXbaeikopcyxsjdhqwISJABEZHIKMNOPTYXavopikux",
);

const DIGIT = /[0-9A-Za-z]/;
const INVISIBLE = /[\p{Cf}\p{Cc}\p{Mn}]/u;
const ESCAPES = /(?:%[0-9a-f]{2})+/giy;

/** A character as it would be meant, and where it stands in the text. */
interface Glyph {
  readonly character: string;
  readonly position: number;
  /** Where it stands for another one, or for two. */
  readonly changed: readonly number[];
  readonly isCaseOnly?: boolean;
}

type Word = readonly Glyph[];

/**
 * At most `countMax` call numbers within `range` that `text` may have been meant for; never the text itself. Tried are:
 *
 *   - what stands around it: quotes, punctuation, a URL, spaces and dashes between its characters, percent-escapes, invisible
 *     characters;
 *   - characters that look alike, in any number of places: `0 O o`, `1 l I i |`, `5 S s`, `2 Z z`, `8 B`, `6 b`, `9 g q`, `u v`, `rn m`,
 *     `vv w`, `cl d`, and Cyrillic, Greek and full-width twins;
 *   - upper for lower case or the other way round, in one place; in all of them when the text has one case only.
 *
 * Not tried: characters that were left out, added, swapped or typed with the wrong finger, two slips of case in a text of both
 * cases, a slip of case together with a look-alike, and what lies beyond 4,096 corrections of one text.
 */
export function slipsOf(text: string, range: LeasedRange, countMax: number): readonly Slip[] {
  const found = new Map<string, Slip>();
  const bytes = new Uint8Array(CALL_NUMBER_LENGTH);
  let tried = 0;
  for (const word of correctedWords(text)) {
    if (++tried > CANDIDATE_COUNT_MAX) break;
    const ledgerId = ledgerIdOfWord(word, bytes);
    if (ledgerId < range.firstLedgerId || ledgerId > range.lastLedgerId) continue;
    const slip = slipOf(word, ledgerId);
    if (slip.callNumber === text) continue;
    const known = found.get(slip.callNumber);
    if (known === undefined || known.positions.length > slip.positions.length) found.set(slip.callNumber, slip);
  }
  return [...found.values()].sort((a, b) => a.positions.length - b.positions.length).slice(0, countMax);
}

/** Below every range when no call number is spelt so. By bytes, as nearly all words are none of the range. */
function ledgerIdOfWord(word: Word, bytes: Uint8Array): number {
  for (const [at, { character }] of word.entries()) bytes[at] = character.charCodeAt(0);
  return runInBytes(bytes, 0);
}

function slipOf(word: Word, ledgerId: number): Slip {
  const positions = word.flatMap(({ changed }) => changed);
  const changed = word.some(({ isCaseOnly }) => isCaseOnly === true) ? "case" : "look_alike";
  return { callNumber: spelt(word), slip: positions.length === 0 ? "surrounding" : changed, positions, ledgerId };
}

/** With few changes first, so that a bound cuts off the unlikely ones. */
function* correctedWords(text: string): Generator<Word> {
  const words = wordsIn(glyphsOf(text))
    .flatMap(repaired)
    .filter(({ length }) => length === CALL_NUMBER_LENGTH);
  yield* words;
  for (const word of words) yield* withCase(word);
  for (let changeCount = 1; changeCount <= CALL_NUMBER_LENGTH; changeCount++) {
    for (const word of words) yield* withLookAlikes(word, changeCount);
  }
}

/** The characters of a text, without what nobody sees, and as plain as they can be. */
function glyphsOf(text: string): Glyph[] {
  const glyphs: Glyph[] = [];
  const begin = Math.max(text.length - TEXT_LENGTH_MAX, 0);
  for (let position = begin; position < text.length; ) {
    const { taken, meant } = unescapedAt(text, position);
    for (const character of meant.normalize("NFKC")) {
      if (INVISIBLE.test(character)) continue;
      const twin = TWINS.get(character);
      const isForeign = twin !== undefined || (character !== meant && DIGIT.test(character) && taken === meant.length);
      glyphs.push({ character: twin ?? character, position, changed: isForeign ? [position] : [] });
    }
    position += taken;
  }
  return glyphs;
}

/** A character, or what its percent-escape stands for; and how long it is in the text. */
function unescapedAt(text: string, position: number): { readonly taken: number; readonly meant: string } {
  ESCAPES.lastIndex = position;
  const [escapes] = ESCAPES.exec(text) ?? [];
  if (escapes !== undefined) {
    try {
      return { taken: escapes.length, meant: decodeURIComponent(escapes) };
    } catch {
      // A percent sign that escapes nothing is one of the characters around.
    }
  }
  const character = String.fromCodePoint(text.codePointAt(position) as number);
  return { taken: character.length, meant: character };
}

/** Words of about the right length, the last first; and the whole, in case that something stands between its characters. */
function wordsIn(glyphs: readonly Glyph[]): readonly Word[] {
  const parts = (isPart: (character: string) => boolean): Glyph[][] => {
    const words: Glyph[][] = [[]];
    for (const glyph of glyphs) {
      if (isPart(glyph.character)) words.at(-1)?.push(glyph);
      else words.push([]);
    }
    return words.reverse();
  };
  const plain = (character: string) => DIGIT.test(character);
  // A bar may be a border, or an l.
  const whole = glyphs.filter(({ character }) => plain(character));
  const words = [...parts(plain), ...parts((character) => plain(character) || character === "|"), whole];
  const fitting = words.filter(({ length }) => Math.abs(length - CALL_NUMBER_LENGTH) <= 1);
  const distinct = new Map(fitting.map((word) => [`${spelt(word)} ${word[0]?.position}`, word]));
  return [...distinct.values()].slice(0, WORD_COUNT_MAX);
}

function spelt(word: Word): string {
  return word.map(({ character }) => character).join("");
}

/** A word as it is, and with one pair read for the one character that it looks like, or the other way round. */
function repaired(word: Word): Word[] {
  const words = [word];
  const text = spelt(word);
  for (const [pair, one] of PAIRS) {
    for (let at = 0; at < word.length; at++) {
      const { position } = word[at] as Glyph;
      if (word.length === CALL_NUMBER_LENGTH + 1 && text.startsWith(pair, at)) {
        const merged = { character: one, position, changed: [position, (word[at + 1] as Glyph).position] };
        words.push(word.toSpliced(at, 2, merged));
      }
      if (word.length === CALL_NUMBER_LENGTH - 1 && text[at] === one) {
        const first = { character: pair[0] as string, position, changed: [position] };
        words.push(word.toSpliced(at, 1, first, { character: pair[1] as string, position, changed: [] }));
      }
    }
  }
  return words;
}

/** In one place; in all places when the word has one case only. */
function* withCase(word: Word): Generator<Word> {
  const letters = word.flatMap(({ character }, at) => (otherCase(character) === character ? [] : [at]));
  const isLower = letters.every((at) => /[a-z]/.test((word[at] as Glyph).character));
  const isUpper = letters.every((at) => /[A-Z]/.test((word[at] as Glyph).character));
  for (const at of letters) yield withOtherCase(word, [at]);
  if (isLower || isUpper) {
    for (let chosen = 1; chosen < 2 ** letters.length; chosen++) {
      yield withOtherCase(
        word,
        letters.filter((_, bit) => (chosen >>> bit) & 1),
      );
    }
  } else {
    for (const isWrong of [/[A-Z]/, /[a-z]/]) {
      yield withOtherCase(
        word,
        letters.filter((at) => isWrong.test((word[at] as Glyph).character)),
      );
    }
  }
}

function withOtherCase(word: Word, places: readonly number[]): Word {
  return word.map((glyph, at) => {
    if (!places.includes(at)) return glyph;
    const { character, position } = glyph;
    return { character: otherCase(character), position, changed: [position], isCaseOnly: true };
  });
}

function otherCase(character: string): string {
  const lower = character.toLowerCase();
  return lower === character ? character.toUpperCase() : lower;
}

/** All words that look like this one and differ from it in `changeCount` places, from the place `from` on. */
function* withLookAlikes(word: Word, changeCount: number, from = 0): Generator<Word> {
  if (changeCount === 0) {
    yield word;
    return;
  }
  for (let at = from; at < word.length; at++) {
    const { character, position } = word[at] as Glyph;
    const row = LOOK_ALIKES.find((alike) => alike.includes(character)) ?? "";
    for (const other of row) {
      if (other === character || !DIGIT.test(other)) continue;
      const changed = word.with(at, { character: other, position, changed: [position] });
      yield* withLookAlikes(changed, changeCount - 1, at + 1);
    }
  }
}

function twinsOf(foreign: string, plain: string): ReadonlyMap<string, string> {
  return new Map([...foreign].map((character, at) => [character, plain[at] as string]));
}
