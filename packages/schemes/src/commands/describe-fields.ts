/** Describes the fields of a scheme: their widths and sources, and the digits of one number above their names. */
import { BASE62, inDigits } from "../encodings.js";
import type { Field, Scheme, Source, Values } from "../index.js";
import { formatTime, grouped, type LabeledRows } from "./format.js";

const NODES = {
  given: "the number of the node, from a list that an operator keeps",
  server: "the number of the server, from a list that an operator keeps",
  pid: "the process id",
  "mac hash": "a hash of the machine's MAC addresses",
} as const;

/** Where a sequence restarts, and what follows its last value. */
const SCOPES = {
  "clock unit": "within one unit of the clock, then waits for the next",
  process: "within one process and wraps around; waits before a value comes twice in a unit of the clock",
  run: "within one run, then requests another",
  kept: "and is kept when the process ends; refuses after its last value",
} as const;

const UNITS: ReadonlyMap<number, string> = new Map([
  [1_000, "seconds"],
  [1, "milliseconds"],
]);

/** A row for each field: its name and width, and what fills it. */
export function fieldRows(scheme: Scheme): LabeledRows {
  const nameWidth = Math.max(...scheme.fields.map(({ name }) => name.length));
  return scheme.fields.map((field) => [
    `${field.name.padEnd(nameWidth)}  ${formatWidth(field)}`,
    describeSource(field, scheme),
  ]);
}

function formatWidth({ width }: Field): string {
  const [count, unit] =
    "bits" in width ? [width.bits, "bit"] : "digits" in width ? [width.digits, "digit"] : [width.base62, "character"];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

/** Fields that share a node or a counter hold its digits one after the other. */
function describeSource({ source }: Field, { fields }: Scheme): string {
  const text = sourceText(source);
  if (source.kind !== "node" && source.kind !== "counter") return text;
  const sharing = fields.filter((other) => JSON.stringify(other.source) === JSON.stringify(source));
  if (sharing.length === 1) return text;
  return `${text}; ${sharing[0]?.source === source ? "the first part" : "the next part"} of it`;
}

function sourceText(source: Source): string {
  switch (source.kind) {
    case "fixed":
      return `always ${source.value}`;
    case "clock":
      return `${UNITS.get(source.unitMs) ?? `units of ${source.unitMs} ms`} since ${formatTime(source.epochMs)}`;
    case "node":
      return NODES[source.from];
    case "remainder":
      return `the last digits of a number drawn below ${grouped(source.drawnBelow)}`;
    case "random":
      return `drawn from ${grouped(source.from)} to ${grouped(source.to)}`;
    case "sequence":
      return `rises by one from ${source.first === "random" ? "a random value" : source.first} ${SCOPES[source.within]}`;
    case "counter":
      return `requested from one central counter, ${source.asked}`;
  }
}

interface Piece {
  readonly name: string;
  readonly digits: string;
}

const INDENT = "  ";
/** A wider field goes on in the next line. */
const PIECE_DIGITS_MAX = 64;

/** The digits of each field, most significant first, with its name beneath; in as many lines of `width` as they need. */
export function fieldDigits({ fields }: Scheme, values: Values, width: number): readonly string[] {
  const room = width - INDENT.length;
  const lines: Piece[][] = [[]];
  let left = room;
  for (const piece of fields.flatMap((field) => piecesOf(field, BigInt(values[field.name] ?? 0), room))) {
    if (widthOf(piece) > left) {
      lines.push([]);
      left = room;
    }
    lines.at(-1)?.push(piece);
    left -= widthOf(piece) + 1;
  }
  return lines.flatMap((line) =>
    (["digits", "name"] as const).map((row) =>
      `${INDENT}${line.map((piece) => piece[row].padEnd(widthOf(piece))).join(" ")}`.trimEnd(),
    ),
  );
}

function piecesOf(field: Field, value: bigint, room: number): readonly Piece[] {
  const pieces = digitsOf(field, value).match(new RegExp(`.{1,${Math.min(PIECE_DIGITS_MAX, room)}}`, "g")) ?? [];
  return pieces.map((piece, index) => ({ name: index === 0 ? field.name : "", digits: piece }));
}

function digitsOf({ width }: Field, value: bigint): string {
  if ("bits" in width) return inDigits(value, "01", width.bits);
  return "digits" in width ? inDigits(value, "0123456789", width.digits) : inDigits(value, BASE62, width.base62);
}

function widthOf({ name, digits }: Piece): number {
  return Math.max(name.length, digits.length);
}
