/**
 * The rule by which candidates are ordered. Points count against a candidate: for the form of the text, for what its fields show, and for
 * a scheme that only a document has. The fewest come first; among equals, the more common scheme.
 */
import type { Form } from "../encodings.js";
import { capacityOf, fieldsOfKind } from "../fields.js";
import type { Reading, Scheme } from "../scheme.js";
import { formatDay } from "./format.js";

const FORM_POINTS: Readonly<Record<Form, number>> = { own: 0, number: 2, former: 4 };
const CHECK_POINTS = { right: 0, unchecked: 2, wrong: 3 } as const;
/** Never deployed: a call number that looks like one of these is a call number. */
const NEVER_DEPLOYED_POINTS: Readonly<Record<string, number>> = { "chibrary-3-32-8-4": 2 };

/** A scheme that is not here is as rare as the last. */
export const MOST_COMMON_FIRST: readonly string[] = [
  "uuid",
  "uuidv7",
  "objectid",
  "ulid",
  "snowflake-2015",
  "twitter-snowflake",
  "nanoid",
  "ksuid",
  "tickets",
  "call-number",
  "mysql-13-6-1",
  "mysql-11-9",
  "millis-41-10-13",
  "random-base62-5",
  "rand64",
  "chibrary-4-16-20",
  "chibrary-3-32-8-4",
  "hash-12",
];

export interface Rank {
  readonly points: number;
  readonly check: keyof typeof CHECK_POINTS;
  /** What is wrong; empty where nothing is. */
  readonly mismatch: string;
  /** Why it has its place, in a few words. */
  readonly reason: string;
}

export function rankOf(scheme: Scheme, reading: Reading, nowMs: number): Rank {
  const wrong = mismatches(scheme, reading, nowMs);
  const isChecked = reading.timeMs !== undefined || fieldsToCheck(scheme).length > 0;
  const check = wrong.length > 0 ? "wrong" : isChecked ? "right" : "unchecked";
  const points = FORM_POINTS[reading.form] + CHECK_POINTS[check] + (NEVER_DEPLOYED_POINTS[scheme.name] ?? 0);
  const mismatch = wrong.join("; ");
  return { points, check, mismatch, reason: `${formWords(reading)}; ${mismatch || rightWords(check, reading)}` };
}

export function rarity({ name }: Scheme): number {
  const place = MOST_COMMON_FIRST.indexOf(name);
  return place < 0 ? MOST_COMMON_FIRST.length : place;
}

function formWords({ form, encoding }: Reading): string {
  if (form === "own") return "written as its numbers are";
  return form === "number" ? "a whole number, as of many schemes" : `in a former form (${encoding})`;
}

function rightWords(check: Rank["check"], { timeMs }: Reading): string {
  if (check === "unchecked") return "nothing in it can be checked";
  return timeMs === undefined ? "its fixed fields are right" : "its time is plausible";
}

const DAY_MS = 86_400_000;
/** No scheme that counts from 1970 existed before. */
const EARLIEST_MS = Date.UTC(2000, 0, 1);
/** One counter has hardly counted so far. */
const COUNT_MAX = 1e12;
/** One number in 2^32 begins with so many zero bits. */
const ZERO_BITS = 32n;

function mismatches(scheme: Scheme, { timeMs, values }: Reading, nowMs: number): readonly string[] {
  const { fields } = scheme;
  const found: string[] = [];
  const earliestMs = Math.max(
    EARLIEST_MS,
    ...fieldsOfKind(fields, "clock").map(({ source }) => source.epochMs + DAY_MS),
  );
  if (timeMs !== undefined && timeMs > nowMs + DAY_MS) found.push("its time is in the future");
  if (timeMs !== undefined && timeMs < earliestMs) found.push(`its time is before ${formatDay(earliestMs)}`);
  for (const { name, source } of fieldsToCheck(scheme)) {
    if (Number(values[name]) !== source.value)
      found.push(`${name} is ${values[name]}, and today always ${source.value}`);
  }
  for (const { name } of fieldsOfKind(fields, "counter")) {
    if ((values[name] as number | bigint) > COUNT_MAX) found.push(`its ${name} is beyond 10^12`);
  }
  for (const field of fieldsOfKind(fields, "random")) {
    if (BigInt(values[field.name] as number | bigint) < capacityOf(field) >> ZERO_BITS) {
      found.push(`${field.name} begins with ${ZERO_BITS} zero bits`);
    }
  }
  return found;
}

/** Those that another number may have otherwise. */
function fieldsToCheck({ fields }: Scheme) {
  return fieldsOfKind(fields, "fixed").filter(({ source }) => source.others === "read");
}
