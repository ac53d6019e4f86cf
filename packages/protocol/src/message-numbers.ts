/** Numbers in the messages of a coordinator, which programs read too, as people read them. */

/** What stays as it is: a command, which is copied, and numbers that are names, as of a run. Then a number that stands alone. */
const NUMBER = /`[^`]*`|\b(?:pid|port|year|leased to|runs?) \d+|(?<![\w.:/"@=-])[1-9]\d{3,}(?![\w:/"@=-]|\.\d)/g;

/** The same text with a comma between each three digits of its numbers: "65,735 runs are left". */
export function withSeparators(message: string): string {
  return message.replace(NUMBER, (found) => (/^\d/.test(found) ? Number(found).toLocaleString("en-US") : found));
}
