/**
 * Words that hold what strangers chose, made fit for logs, terminals and answers: nothing that acts on a terminal, hides or turns
 * text, and where it says so not long. What was made fit once stays as it is when it comes by again. Pure.
 */


const SHOWN_LENGTH_MAX = 512;
/** Of a whole message: the longest of our own, with what a store said in it, has half of it. */
export const MESSAGE_LENGTH_MAX = 2_048;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;
/** What stands between our own words, and their lines. */
const BETWEEN_WORDS = new Set(["\n", "\t"]);
/** Most of what comes by; it is told at once. */
const HARMLESS = /^[ -~]*$/;
const HARMLESS_LINES = /^[ -~\n\t]*$/;

/** Cut, and as `visible`. */
export function shown(text: string, lengthMax: number = SHOWN_LENGTH_MAX): string {
  // Cut first: what is thrown away needs no work.
  return visible(text.length > lengthMax ? `${text.slice(0, lengthMax)}…` : text);
}

/** In one line, with the characters spelt out that do something or are not seen: `\u{1b}`. */
export function visible(text: string): string {
  return HARMLESS.test(text) ? text : text.replace(UNPRINTABLE, spelt);
}

/** As `visible`, and its lines and tabs stay. */
export function visibleLines(text: string): string {
  if (HARMLESS_LINES.test(text)) return text;
  return text.replace(UNPRINTABLE, (character) => (BETWEEN_WORDS.has(character) ? character : spelt(character)));
}

/** Text of JSON that means the same, and acts on no terminal: JSON itself escapes only some of what would. */
export function visibleJson(json: string): string {
  if (HARMLESS_LINES.test(json)) return json;
  return json.replace(UNPRINTABLE, (character) => (character === "\n" ? character : escaped(character)));
}

function spelt(character: string): string {
  return `\\u{${(character.codePointAt(0) as number).toString(16)}}`;
}

/** Character by character of JSON, which has two for one beyond the first 65,536. */
function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
