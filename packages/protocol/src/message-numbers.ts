/**
 * Numbers as people read them, also those in the messages of a coordinator, which programs read too. `toLocaleString` would load the rules of
 * all languages: 10 ms for the first number of a command.
 */

/** What stays as it is: a command, which is copied, and numbers that are names, as of a run. Then a number that stands alone. */
const NUMBER = /`[^`]*`|\b(?:pid|port|year|leased to|runs?) \d+|(?<![\w.:/"@=-])[1-9]\d{3,}(?![\w:/"@=-]|\.\d)/g;

/** The same text with a comma between each three digits of its numbers: "65,735 runs are left". */
export function withSeparators(message: string): string {
  return message.replace(NUMBER, (found) => (/^\d/.test(found) ? formatCount(found) : found));
}

/** A number with a comma between each three digits: `1,073,741,823`. */
export function formatCount(count: number | bigint | string): string {
  return String(count).replace(/(?<!\.\d*)\B(?=(?:\d{3})+(?!\d))/g, ",");
}
