/** What somebody may have meant who typed a name that is none: slips of the finger, and parts of a name. */

/** So many names are still a suggestion, and not the whole list. */
const NAMED_MAX = 3;

/** The nearest of the names, nearest first; none where all are far. */
export function similarNames(typed: string, names: readonly string[]): readonly string[] {
  const word = typed.toLowerCase();
  return names
    .map((name) => ({ name, slips: slipsToNearestPart(word, name) }))
    .filter(({ slips }) => word.length > 1 && slips <= word.length / 3)
    .sort((one, other) => one.slips - other.slips)
    .slice(0, NAMED_MAX)
    .map(({ name }) => name);
}

/** Of a name with hyphens people remember one part. */
function slipsToNearestPart(word: string, name: string): number {
  if (name.includes(word) || word.includes(name)) return 0;
  return Math.min(...[name, ...name.split("-")].map((part) => slipsBetween(word, part)));
}

/** How many characters must be put in, taken out or replaced (Levenshtein). */
function slipsBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let place = 1; place <= one.length; place++) {
    const next = [place];
    for (let index = 1; index <= other.length; index++) {
      const replaced = (row[index - 1] as number) + (one[place - 1] === other[index - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[index] as number) + 1, (next[index - 1] as number) + 1));
    }
    row = next;
  }
  return row[other.length] as number;
}
