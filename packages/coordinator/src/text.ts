/**
 * Makes text that clients or stores chose safe for logs, terminals and responses: nothing that acts on a terminal, hides or
 * reverses text, and a bounded length. Text that is safe already stays as it is. Also formats lengths of time. Pure.
 */
import { formatCount } from "@callnumber/protocol/api";

const SHOWN_LENGTH_MAX = 512;
/** Of a whole message: our longest one, with text of a store in it, has half of this. */
export const MESSAGE_LENGTH_MAX = 2_048;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;
/** Allowed in our own text of several lines. */
const BETWEEN_WORDS = new Set(["\n", "\t"]);
/** Most text; the check is cheap. */
const HARMLESS = /^[ -~]*$/;
const HARMLESS_LINES = /^[ -~\n\t]*$/;

/** Cuts a text, then escapes it as `escapeForTerminal` does. */
export function escapeAndShorten(text: string, lengthMax: number = SHOWN_LENGTH_MAX): string {
  // Cut first: what is cut off needs no work.
  return escapeForTerminal(text.length > lengthMax ? `${text.slice(0, lengthMax)}…` : text);
}

/** Returns one line, with control and invisible characters escaped: `\u{1b}`. */
export function escapeForTerminal(text: string): string {
  return HARMLESS.test(text) ? text : text.replace(UNPRINTABLE, escapeOf);
}

/** As `escapeForTerminal`, but keeps newlines and tabs. */
export function escapeLines(text: string): string {
  if (HARMLESS_LINES.test(text)) return text;
  return text.replace(UNPRINTABLE, (character) => (BETWEEN_WORDS.has(character) ? character : escapeOf(character)));
}

/** Escapes JSON text so that it means the same and acts on no terminal: JSON itself escapes only some of these characters. */
export function escapeJson(json: string): string {
  if (HARMLESS_LINES.test(json)) return json;
  return json.replace(UNPRINTABLE, (character) => (character === "\n" ? character : escaped(character)));
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Formats a length of time in the greatest unit of which it has two or more: `90 s`, `3 h`, `3,360 days`. Minutes and above are whole ones. */
export function formatDuration(ms: number): string {
  if (ms < 2 * MINUTE_MS) return `${Math.ceil(ms / 1_000)} s`;
  if (ms < 2 * HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  return ms < 2 * DAY_MS ? `${Math.floor(ms / HOUR_MS)} h` : `${formatCount(Math.floor(ms / DAY_MS))} days`;
}

function escapeOf(character: string): string {
  return `\\u{${(character.codePointAt(0) as number).toString(16)}}`;
}

/** In UTF-16 units, as JSON escapes: two for a character above U+FFFF. */
function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
