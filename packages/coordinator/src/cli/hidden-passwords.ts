/**
 * Passwords that were typed on the command line, where every user of the machine can read them: taken out of the process list as
 * soon as we run. What stood there before, for some milliseconds, and the shell's history are out of reach.
 */
import process from "node:process";

/** Each keeps what leads to the secret. A password may hold anything, so it ends at the last @ of its word. */
const SECRETS: readonly RegExp[] = [/(:\/\/[^:@/]*:).*(?=@)/s, /([?&][A-Za-z]*password=)[^&]*/gi];

/** What the option parser repeats of a value that it refuses: it may be a URL without its beginning. */
const REPEATED = /((?:argument|value) ').*(?=@)/s;

/** The words without the passwords in them. */
export function withoutPasswords(words: readonly string[]): readonly string[] {
  return words.map((word) => SECRETS.reduce((text, secret) => text.replace(secret, "$1***"), word));
}

/** What the option parser says, without what may be a password in it. */
export function misuseWithoutPasswords(text: string): string {
  return [...SECRETS, REPEATED].reduce((left, secret) => left.replace(secret, "$1***"), text);
}

/** Overwrites what the process list shows, where there is a password in it; answers whether there was. */
export function hidePasswords(argv: readonly string[]): boolean {
  const shown = withoutPasswords(argv);
  if (shown.every((word, index) => word === argv[index])) return false;
  process.title = shown.join(" ");
  return true;
}
