/** Counts, chances, times and lines of text as people read them in a terminal; and values as JSON for programs. */
import type { Load } from "../chances.js";
import { BASE16, BASE62, inDigits } from "../encodings.js";
import type { Field, Values } from "../fields.js";
import type { Scheme } from "../scheme.js";
import type { SchemesIo } from "./io.js";

const MILLION = 1e6;
/** From here on a word for the number means different things in different countries. */
const BILLION = 1e9;
const SIGNIFICANT_DIGITS = 3;
/** Below it a percentage has too many zeros to be read. */
const LEAST_PERCENTAGE = 0.001;
/** From here on three digits would show 100 %. */
const NEARLY_CERTAIN = 0.9995;

const DAY_S = 86_400;
/** Of the Gregorian calendar. */
export const YEAR_S = 365.2425 * DAY_S;

/** Each unit from so many of it on; below the last, milliseconds. */
const SPANS: readonly (readonly [name: string, seconds: number, from: number])[] = [
  ["years", YEAR_S, 2],
  ["days", DAY_S, 2],
  ["hours", 3_600, 2],
  ["minutes", 60, 2],
  ["s", 1, 1],
];

/** `4,096`, `4.19 million`, `3.4e12`; "no bound" for Infinity. */
export function formatCount(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "no bound";
  if (value < 1) return value === 0 ? "0" : significant(value);
  if (Math.round(value) < MILLION) return grouped(value < 100 ? Number(significant(value)) : Math.round(value));
  if (Number(value.toPrecision(SIGNIFICANT_DIGITS)) < BILLION) return `${significant(value / MILLION)} million`;
  const [mantissa, exponent] = value.toExponential(SIGNIFICANT_DIGITS - 1).split("e+");
  return `${Number(mantissa)}e${exponent}`;
}

/** `1,234,567`, in full. */
export function grouped(value: number | bigint): string {
  return value.toLocaleString("en-US");
}

/** `none`, `1 in 3.4e12`, `38.8 %`, `certain`. `chance` is 0 to 1. */
export function formatChance(chance: number): string {
  if (chance === 0) return "none";
  if (chance < LEAST_PERCENTAGE) {
    return `1 in ${formatCount(Math.min(1 / chance, Number.MAX_VALUE))}`.replace(/ 1 million$/, " a million");
  }
  if (chance < NEARLY_CERTAIN) return `${significant(100 * chance)} %`;
  return chance === 1 ? "certain" : "nearly certain";
}

/** `12 s`, `8.5 hours`, `69.7 years`, `17.2 million years`. */
export function formatSpan(seconds: number): string {
  const span = SPANS.find(([, unitSeconds, from]) => seconds >= from * unitSeconds);
  if (span === undefined) return `${formatCount(1_000 * seconds)} ms`;
  const [name, unitSeconds] = span;
  return `${formatCount(seconds / unitSeconds)} ${name}`;
}

/** In UTC, to the millisecond. A clock field of many bits reaches beyond what a `Date` can be. */
export function formatTime(timeMs: number): string {
  const date = new Date(timeMs);
  return Number.isNaN(date.getTime()) ? `${timeMs} ms since 1970` : date.toISOString();
}

/** `2084-09-06`; the year alone where it has more than four digits. */
export function formatDay(timeMs: number): string {
  const year = new Date(timeMs).getUTCFullYear();
  if (Number.isNaN(year)) return "beyond every calendar";
  return year > 9_999 ? `year ${grouped(year)}` : formatTime(timeMs).slice(0, 10);
}

/** `1,000 a second`, or by the day where a second has less than one. */
export function formatRate(perSecond: number): string {
  return perSecond < 1 ? `${formatCount(DAY_S * perSecond)} a day` : `${formatCount(perSecond)} a second`;
}

/** `1,000 a second from 10 nodes, for 10 years`. */
export function formatLoad({ perSecond, nodes, seconds }: Load): string {
  const from = nodes === 1 ? "one node" : `${formatCount(nodes)} nodes`;
  return `${formatRate(perSecond)} from ${from}, for ${formatSpan(seconds)}`;
}

const INDENT = "  ";

export type LabeledRows = readonly (readonly [label: string, text: string])[];

/** Lines of a label and its text each; the texts begin in one column and are wrapped at `width`. */
export function labeledLines(rows: LabeledRows, width: number): readonly string[] {
  const labelWidth = Math.max(...rows.map(([label]) => label.length));
  const hanging = " ".repeat(INDENT.length + labelWidth + 2);
  return rows.flatMap(([label, text]) =>
    wrapped(text, width - hanging.length).map((line, index) =>
      (index === 0 ? `${INDENT}${label.padEnd(labelWidth)}  ${line}` : `${hanging}${line}`).trimEnd(),
    ),
  );
}

/** Breaks at spaces only: a number stays whole, however long it is. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** The digits of each field, most significant first, with its name beneath; in as many lines of `width` as they need. */
export function fieldDigits({ fields }: Scheme, values: Values, width: number): readonly string[] {
  const lines: string[] = [];
  let [digits, names] = ["", ""];
  for (const field of fields) {
    const text = digitsOf(field, BigInt(values[field.name] ?? 0));
    const columnWidth = Math.max(text.length, field.name.length);
    if (digits !== "" && digits.length + columnWidth > width) {
      lines.push(digits, names);
      [digits, names] = ["", ""];
    }
    digits = `${digits || INDENT}${text.padEnd(columnWidth)} `;
    names = `${names || INDENT}${field.name.padEnd(columnWidth)} `;
  }
  return [...lines, digits, names].map((line) => line.trimEnd());
}

/** More bits would not fit a line. */
const BINARY_DIGITS_MAX = 64;

function digitsOf({ width }: Field, value: bigint): string {
  if ("bits" in width && width.bits > BINARY_DIGITS_MAX)
    return `0x${inDigits(value, BASE16, Math.ceil(width.bits / 4))}`;
  if ("bits" in width) return inDigits(value, "01", width.bits);
  return "digits" in width ? inDigits(value, "0123456789", width.digits) : inDigits(value, BASE62, width.base62);
}

const WIDTH_MIN = 40;
/** Longer lines are hard to read. */
const WIDTH_MAX = 80;

/** How wide a line of text may be here. */
export function lineWidth({ call }: SchemesIo): number {
  const { isTTY, columns = WIDTH_MAX } = call.io.stdout;
  return isTTY ? Math.min(Math.max(columns, WIDTH_MIN), WIDTH_MAX) : WIDTH_MAX;
}

/** Integers beyond 2^53 are strings, as everywhere in JSON. */
export function valuesAsJson(values: Values): Readonly<Record<string, number | string>> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, typeof value === "bigint" ? String(value) : value]),
  );
}

function significant(value: number): string {
  return String(Number(value.toPrecision(SIGNIFICANT_DIGITS)));
}
