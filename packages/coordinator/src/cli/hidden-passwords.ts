/**
 * Passwords and tokens that were typed on the command line, where every user of the machine can read them: taken out of the process list as
 * soon as we run. What stood there before, for some milliseconds, and the shell's history are out of reach.
 */
import process from "node:process";
import { withoutTokens } from "../tokens-in-text.js";

/** Each keeps what leads to the secret. A password may hold anything, so it ends at the last @ of its word. */
const SECRETS: readonly RegExp[] = [/(:\/\/[^:@/]*:).*(?=@)/s, /([?&][A-Za-z]*password=)[^&]*/gi];

/** What the option parser repeats of a value that it refuses: it may be a URL without its beginning. */
const REPEATED = /((?:argument|value) ').*(?=@)/s;

/** What stood among the words. */
export interface Typed {
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

/** Overwrites what the process list shows, where there is a password or a token in it; answers which there was. */
export function hidePasswords(argv: readonly string[]): Typed {
  const hasPassword = argv.some((word) => withoutPassword(word) !== word);
  const hasToken = argv.some((word) => withoutTokens(word) !== word);
  if (hasPassword || hasToken) process.title = withoutPasswords(argv).join(" ");
  return { hasPassword, hasToken };
}

function withoutPassword(text: string): string {
  return SECRETS.reduce((left, secret) => left.replace(secret, "$1***"), text);
}
