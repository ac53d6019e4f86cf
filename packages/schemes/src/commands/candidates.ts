/** Which schemes a text could be a number of, the likeliest first, in the order that docs/explanation/choosing-a-scheme.md explains. */
import { fieldsOfKind } from "../fields.js";
import type { Reading, Scheme } from "../scheme.js";
import { formatDay } from "./format.js";

export interface Candidate {
  readonly scheme: Scheme;
  readonly reading: Reading;
  /** Undefined where nothing can be checked. */
  readonly isPlausible: boolean | undefined;
  /** What is wrong; empty where nothing is. */
  readonly mismatch: string;
  readonly isToday: boolean;
}

const SCHEME_AND_HOST = /^\s*[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;
const WORD = /^[a-z]+$/;
/** Of a path, the last: each is tried with every scheme. */
const PART_COUNT_MAX = 64;
const DAY_MS = 86_400_000;
/** No scheme that counts from 1970 existed before. */
const EARLIEST_MS = Date.UTC(2000, 0, 1);

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

export function candidatesOf(text: string, schemes: readonly Scheme[], nowMs: number): readonly Candidate[] {
  return schemes
    .flatMap((scheme) => {
      const parsed = scheme.parse(text);
      const readings = parsed.matches ? [parsed, ...parsed.otherReadings] : [];
      return readings.map((reading) => candidate(scheme, reading, text, nowMs));
    })
    .sort(
      (one, other) =>
        rankOf(one) - rankOf(other) || Number(other.isToday) - Number(one.isToday) || bitsToHit(one) - bitsToHit(other),
    );
}

function candidate(scheme: Scheme, reading: Reading, text: string, nowMs: number): Candidate {
  const checks = checksOf(scheme, reading, nowMs);
  const mismatch = checks.filter((check) => check !== "").join("; ");
  const isPlausible = checks.length === 0 ? undefined : mismatch === "";
  return { scheme, reading, isPlausible, mismatch, isToday: scheme.format(reading.values) === text };
}

function rankOf({ isPlausible }: Candidate): number {
  return isPlausible === true ? 0 : isPlausible === undefined ? 1 : 2;
}

/** Where nothing could be checked, small numbers of a large scheme are as likely as those of a small one. */
function bitsToHit({ isPlausible, scheme }: Candidate): number {
  return isPlausible === true ? scheme.facts.bits : 0;
}

/** Of each thing that can be checked: what is wrong with it, or "" where nothing is. */
function checksOf({ fields }: Scheme, { timeMs, values }: Reading, nowMs: number): readonly string[] {
  const checks = fieldsOfKind(fields, "fixed")
    .filter(({ source }) => source.others === "read")
    .map(({ name, source: { value } }) =>
      Number(values[name]) === value ? "" : `${name} is ${values[name]}, and today always ${value}`,
    );
  if (timeMs === undefined) return checks;
  if (timeMs > nowMs + DAY_MS) return ["its time is in the future", ...checks];
  const secondDays = fieldsOfKind(fields, "clock").map(({ source }) => source.epochMs + DAY_MS);
  const earliestMs = Math.max(EARLIEST_MS, ...secondDays);
  return [timeMs < earliestMs ? `its time is before ${formatDay(earliestMs)}` : "", ...checks];
}

/** A part with a stray percent sign stays as it is. */
function unescaped(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
