/** Tokens where they do not belong: in a text that is to be written down or told, and in names that are to be kept. Pure. */

/** As it is written, and as it stands in an address: any of its characters escaped there, in either case. */
const BEGINNING = "(?:c|%63)(?:n|%6e)(?:_|%(?:25)*5f)";
const CHARACTER = "(?:[A-Za-z0-9_-]|%(?:25)*[0-9a-f]{2})";
/** Also one that was cut. */
const TOKENS_IN_TEXT = new RegExp(`${BEGINNING}${CHARACTER}{20,}`, "gi");
/** So much of one that what is missing can't be guessed is none; so names that only begin like one are free. */
const TOKEN_IN_NAME = new RegExp(`${BEGINNING}${CHARACTER}{32}`, "i");

/** The same text with tokens made unreadable: a caller may put one where it does not belong, such as into an address. */
export function withoutTokens(text: string): string {
  return text.replace(TOKENS_IN_TEXT, "cn_(token)");
}

/** Whether a name that somebody chose holds a token, or most of one. */
export function holdsToken(name: string): boolean {
  return TOKEN_IN_NAME.test(name);
}
