/** Describes the fields of a scheme: their widths and sources, and the digits of one number above their names. */
import { BASE62, inDigits } from "../encodings.js";
import { type Field, fieldsSharing, NODE_SOURCES, SEQUENCE_SCOPES, type Source, type Values } from "../fields.js";
import type { Scheme } from "../scheme.js";
import { formatTime, grouped, INDENT, type LabeledRows } from "./format.js";

/** A row for each field: its name and width, and what fills it. */
export function fieldRows({ fields }: Scheme): LabeledRows {
  const nameWidth = Math.max(...fields.map(({ name }) => name.length));
  return fields.map((field) => {
    const sharing = fieldsSharing(fields, field);
    const part = sharing.length === 1 ? "" : `; the ${sharing[0] === field ? "first" : "next"} part of it`;
    return [`${field.name.padEnd(nameWidth)}  ${formatWidth(field)}`, `${sourceText(field.source)}${part}`];
  });
}

function formatWidth({ width }: Field): string {
  const [count, unit] =
    "bits" in width ? [width.bits, "bit"] : "digits" in width ? [width.digits, "digit"] : [width.base62, "character"];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

function sourceText(source: Source): string {
  switch (source.kind) {
    case "fixed":
      return `always ${source.value}`;
    case "clock":
      return `${source.unitMs === 1 ? "milliseconds" : "seconds"} since ${formatTime(source.epochMs)}`;
    case "node":
      return NODE_SOURCES[source.from];
    case "remainder":
      return `the last digits of a number drawn below ${grouped(source.drawnBelow)}`;
    case "random":
      return `drawn from ${grouped(source.from)} to ${grouped(source.to)}`;
    case "sequence":
      return `rises by one from ${source.first === "random" ? "a random value" : source.first} ${SEQUENCE_SCOPES[source.within]}`;
    case "counter":
      return `requested from one central counter, ${source.asked}`;
  }
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

function digitsOf({ width }: Field, value: bigint): string {
  if ("bits" in width) return inDigits(value, "01", width.bits);
  return "digits" in width ? inDigits(value, "0123456789", width.digits) : inDigits(value, BASE62, width.base62);
}
