/** Passwords and tokens that were typed on the command line, where every user of the machine can read them. */
import { withoutTokens } from "../text.js";

/** Each keeps what leads to the secret. A password may hold anything, so it ends at the last @ of its word. */
const SECRETS: readonly RegExp[] = [/(:\/\/[^:@/]*:).*(?=@)/s, /([?&][A-Za-z]*password=)[^&]*/gi];

/** What the option parser repeats of a value that it refuses: it may be a URL without its beginning. */
const REPEATED = /((?:argument|value) ').*(?=@)/s;

/** What stood among the words. */
interface Typed {
  readonly hasPassword: boolean;
  readonly hasToken: boolean;
}

/** The words without the passwords and tokens in them. */
export function withoutPasswords(words: readonly string[]): readonly string[] {
  return words.map((word) => withoutTokens(withoutPassword(word)));
}

/** What the option parser says, without what may be a password or a token in it. */
export function misuseWithoutPasswords(text: string): string {
  return withoutTokens(withoutPassword(text).replace(REPEATED, "$1***"));
}

export function secretsIn(words: readonly string[]): Typed {
  return {
    hasPassword: words.some((word) => withoutPassword(word) !== word),
    hasToken: words.some((word) => withoutTokens(word) !== word),
  };
}

function withoutPassword(text: string): string {
  return SECRETS.reduce((left, secret) => left.replace(secret, "$1***"), text);
}
