/** Text of strangers for terminals: quoted, cut short, without characters that do something there. */

const SHOWN_CHARACTERS_MAX = 40;

export function shown(text: string): string {
  const short = text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text;
  return JSON.stringify(short).replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`,
  );
}
