/** Words that hold what strangers sent, made fit for logs, terminals and answers: nothing that moves, hides or turns text, and not long. */

const SHOWN_LENGTH_MAX = 512;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

export function shown(text: string): string {
  // Cut first: what is thrown away needs no work.
  const short = text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text;
  return short.replace(UNPRINTABLE, (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`);
}
