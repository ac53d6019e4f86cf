/**
 * The call number in a pasted text: the text itself, or what is around it in a sentence, a link or a link that a mail filter rewrote. Pure:
 * the console and the command line accept the same. A number that is found need not have been issued.
 */
import { CALL_NUMBER_LENGTH, CallNumberError, isCallNumber } from "./codec.js";
import { quote } from "./quoted.js";

/** Eight base62 characters. Some of them are no call numbers: the codec knows which. */
const SHAPE = /^[0-9A-Za-z]{8}$/;
/** A word such as "archives" or "Download": in a longer text it counts after `message/` only. One of 1,000 call numbers looks so. */
const WORD = /^[A-Za-z][a-z]{7}$/;
/** What a spreadsheet leaves of a call number that begins with zeros. */
const WITHOUT_ZEROS = /^[0-9A-Za-z]{5,7}$/;
/** Words of base62 characters, by the place where they are found. */
const AFTER_MESSAGE = /message\/([0-9A-Za-z]+)/gi;
const AFTER_SLASH = /\/([0-9A-Za-z]+)/g;
const ANYWHERE = /([0-9A-Za-z]+)/g;
const HOST = /https?:\/\/[^/?#\s]*/gi;
const ESCAPES = /(?:%[0-9A-Fa-f]{2})+/g;
/** A link that was rewritten twice is escaped three times. */
const ESCAPE_DEPTH_MAX = 8;
const SHOWN_COUNT_MAX = 5;

/** A text for which a person must choose one of the candidates. None was taken: a guess would be the number of another message. */
export class UnclearTextError extends CallNumberError {
  constructor(
    message: string,
    readonly candidates: readonly string[],
  ) {
    super("wrong_length", message);
  }
}

/**
 * Finds the one call number of a text: eight base62 characters between other characters, once percent-escapes are undone, also nested ones.
 * Other words of eight characters, words of letters such as "archives", and hosts do not count. If words follow `message/`, only these count; else those that follow a `/` come
 * before all others. Without a call number, returns the last segment that has eight characters, so that the codec can say what is wrong
 * with it, or null.
 * @throws UnclearTextError when several different call numbers are equally likely, or the text or what follows `message/` has 5 to 7
 * characters: perhaps its zeros were dropped.
 * @example callNumberIn("see https://lists.example.org/message/2VznWE2i.") // "2VznWE2i"
 */
export function callNumberIn(text: string): string | null {
  const trimmed = text.trim();
  if (SHAPE.test(trimmed)) return trimmed;
  rejectWithoutZeros([trimmed]);
  const plain = unescaped(trimmed).replace(HOST, "");
  const afterMessage = wordsIn(plain, AFTER_MESSAGE);
  const afterSlash = wordsIn(plain, AFTER_SLASH);
  const isNoWord = (word: string) => !WORD.test(word);
  const places =
    afterMessage.length > 0
      ? [afterMessage]
      : [afterSlash, wordsIn(plain, ANYWHERE)].map((words) => words.filter(isNoWord));
  for (const words of places) {
    const [first, ...others] = new Set(words.filter(isCallNumber));
    if (first !== undefined && others.length === 0) return first;
    if (first !== undefined) throw severalIn(text, [first, ...others]);
  }
  rejectWithoutZeros(afterMessage);
  const mistyped = [...afterSlash.filter(isNoWord), ...afterMessage];
  return mistyped.findLast((word) => SHAPE.test(word)) ?? null;
}

function wordsIn(text: string, place: RegExp): readonly string[] {
  return [...text.matchAll(place)].map(([, word = ""]) => word);
}

/** A sequence with a stray percent sign, or that is no UTF-8, stays as it is. */
function unescaped(text: string, depth = ESCAPE_DEPTH_MAX): string {
  const plain = text.replace(ESCAPES, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
  return plain === text || depth === 1 ? plain : unescaped(plain, depth - 1);
}

/** @throws UnclearTextError with the first of these words that has room for zeros in front. */
function rejectWithoutZeros(words: readonly string[]): void {
  const word = words.find((each) => WITHOUT_ZEROS.test(each));
  if (word === undefined) return;
  const candidate = word.padStart(CALL_NUMBER_LENGTH, "0");
  const length = `has ${word.length} characters; a call number has ${CALL_NUMBER_LENGTH}`;
  throw new UnclearTextError(`${quote(word)} ${length}. Did you mean ${candidate}?`, [candidate]);
}

function severalIn(text: string, candidates: readonly string[]): UnclearTextError {
  const shown = candidates.slice(0, SHOWN_COUNT_MAX).join(", ");
  const more = candidates.length > SHOWN_COUNT_MAX ? ", …" : "";
  const message = `${quote(text)} has ${candidates.length} call numbers: ${shown}${more}. Use one of them`;
  return new UnclearTextError(message, candidates);
}
