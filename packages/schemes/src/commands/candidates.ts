/**
 * Which schemes a text could be a number of, likeliest first. In this order:
 * 1. what can be checked is as it should be: the time is one at which numbers were made, fields that are always the same are;
 *    then numbers in which nothing can be checked; last those whose time or fixed field can't be;
 * 2. the text is written as the scheme writes its numbers today, before any other spelling;
 * 3. among those whose time can be, the scheme of fewer bits: to be one of few by chance is less likely;
 * 4. the order in which the schemes are shown.
 */
import type { Field, Reading, Scheme } from "../index.js";
import { instant } from "./figures.js";

export interface Candidate {
  readonly scheme: Scheme;
  readonly reading: Reading;
  /** Undefined where nothing can be checked. */
  readonly isPlausible: boolean | undefined;
  /** What speaks against it; empty where nothing does. */
  readonly doubt: string;
  readonly isToday: boolean;
}

export interface NoCandidate {
  readonly scheme: Scheme;
  readonly reason: string;
}

const SCHEME_AND_HOST = /^\s*[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;
const WORD = /^[a-z]+$/;
/** Of a path, the last: each is tried with every scheme. */
const PART_COUNT_MAX = 64;
const DAY_MS = 86_400_000;
/** Of the schemes that count from 1970 none was there before. */
const EARLIEST_MS = Date.UTC(2000, 0, 1);
const RANKS: Readonly<Record<string, number>> = { true: 0, undefined: 1, false: 2 };

/**
 * The number in what was pasted: a text as it is; of an address or a path the last part that is a number of some scheme. Words in
 * small letters, as `messages` or `reply`, are numbers of some scheme too, and are taken only where nothing else is there.
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

export function reasonsAgainst(text: string, schemes: readonly Scheme[]): readonly NoCandidate[] {
  return schemes.flatMap((scheme) => {
    const parsed = scheme.parse(text);
    return parsed.matches ? [] : [{ scheme, reason: parsed.reason }];
  });
}

function candidate(scheme: Scheme, reading: Reading, text: string, nowMs: number): Candidate {
  const checks = [timeCheck(scheme, reading, nowMs), ...scheme.fields.map((field) => fixedCheck(field, reading))];
  const done = checks.filter((check) => check !== undefined);
  const doubt = done.filter((check) => check !== "").join("; ");
  return {
    scheme,
    reading,
    isPlausible: done.length === 0 ? undefined : doubt === "",
    doubt,
    isToday: scheme.format(reading.values) === text,
  };
}

function rankOf({ isPlausible }: Candidate): number {
  return RANKS[String(isPlausible)] as number;
}

/** Where nothing could be checked, small numbers of a large scheme are as likely as those of a small one. */
function bitsToHit({ isPlausible, scheme }: Candidate): number {
  return isPlausible === true ? scheme.facts.bits : 0;
}

/** What is wrong with the time; empty where nothing is, undefined where there is none. */
function timeCheck({ fields }: Scheme, { timeMs }: Reading, nowMs: number): string | undefined {
  if (timeMs === undefined) return undefined;
  const epochs = fields.flatMap(({ source }) => (source.kind === "clock" ? [source.epochMs] : []));
  if (timeMs > nowMs + DAY_MS) return "its time is still to come";
  const earliestMs = Math.max(EARLIEST_MS, ...epochs.map((epochMs) => epochMs + DAY_MS));
  return timeMs < earliestMs ? `its time is before ${instant(earliestMs).slice(0, 10)}` : "";
}

function fixedCheck({ name, source }: Field, { values }: Reading): string | undefined {
  if (source.kind !== "fixed" || source.others === "refused") return undefined;
  return Number(values[name]) === source.value ? "" : `${name} is ${values[name]}, and today always ${source.value}`;
}

/** A part with a stray percent sign stays as it is. */
function unescaped(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
