/** Which schemes a text could be a number of, the likeliest first; `ranking.ts` has the rule. */
import type { Reading, Scheme } from "../scheme.js";
import { type Rank, rankOf, rarity } from "./ranking.js";

export interface Candidate extends Rank {
  readonly scheme: Scheme;
  readonly reading: Reading;
  readonly isToday: boolean;
}

const SCHEME_AND_HOST = /^\s*[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;
const WORD = /^[a-z]+$/;
/** Of a path, the last: each is tried with every scheme. */
const PART_COUNT_MAX = 64;

/**
 * Returns the number in pasted text: a text as it is; of a URL or a path the last part that is a number of some scheme. Lower-case words, such
 * as `messages` or `reply`, are numbers of some scheme too, and are taken only where nothing else is there.
 */
export function numberIn(text: string, schemes: readonly Scheme[]): string {
  if (!text.includes("/")) return text;
  const [path = ""] = text.replace(SCHEME_AND_HOST, "").split(/[?#]/, 1);
  const parts = path
    .split("/")
    .slice(-PART_COUNT_MAX)
    .map(unescaped)
    .filter((part) => part.trim() !== "");
  const numbers = parts.filter((part) => schemes.some((scheme) => scheme.parse(part).matches));
  return numbers.findLast((part) => !WORD.test(part)) ?? numbers.at(-1) ?? parts.at(-1) ?? text;
}

/** Returns what the text could be, the likeliest first. */
export function candidatesOf(text: string, schemes: readonly Scheme[], nowMs: number): readonly Candidate[] {
  return schemes
    .flatMap((scheme) => {
      const parsed = scheme.parse(text);
      const readings = parsed.matches ? [parsed, ...parsed.otherReadings] : [];
      return readings.map((reading) => {
        const isToday = scheme.format(reading.values) === text;
        return Object.assign(rankOf(scheme, reading, nowMs), { scheme, reading, isToday });
      });
    })
    .sort((one, other) => one.points - other.points || rarity(one.scheme) - rarity(other.scheme));
}

/** Returns in one line why the text is a number of none of these schemes. */
export function whyNone(text: string, schemes: readonly Scheme[]): string {
  const bare = text.trim();
  if (bare !== text && schemes.some((scheme) => scheme.parse(bare).matches)) {
    return `it has white space around it. Without that, it is one: ${bare}`;
  }
  const mismatches = schemes
    .toSorted((one, other) => rarity(one) - rarity(other))
    .flatMap((scheme) => {
      const parsed = scheme.parse(text);
      return parsed.matches ? [] : [{ ...parsed, scheme }];
    });
  const nearest = mismatches.find(({ isNear }) => isNear) ?? (mismatches.length === 1 ? mismatches[0] : undefined);
  if (nearest !== undefined)
    return schemes.length === 1 ? nearest.reason : `for ${nearest.scheme.name}, ${nearest.reason}`;
  const foreign = /[^0-9A-Za-z_-]/u.exec(text)?.[0];
  if (foreign !== undefined) return `no scheme writes the character ${JSON.stringify(foreign)}`;
  return `no scheme writes ${text.length} ${/^[0-9]+$/.test(text) ? "digits" : "characters such as these"}`;
}

/** A part with a stray percent sign stays as it is. */
function unescaped(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
