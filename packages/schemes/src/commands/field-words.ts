/** Fields in words: how wide, what fills them, and the digits of one number under their names. */
import { DIGITS } from "@callnumber/protocol/codec";
import { capacityOf, type Field, type Scheme, type Source, type Values } from "../index.js";
import { instant } from "./figures.js";

type SourceOf<Kind extends Source["kind"]> = Extract<Source, { readonly kind: Kind }>;

const NODES: Readonly<Record<SourceOf<"node">["from"], string>> = {
  given: "the number of the node, from whoever keeps the list",
  server: "the number of the server, from whoever keeps the list",
  pid: "the process id",
  "mac hash": "a hash of the machine's MAC addresses",
};

/** Where a sequence begins anew, and what follows its last value. */
const SCOPES: Readonly<Record<SourceOf<"sequence">["within"], string>> = {
  "clock unit": "within one unit of the clock, then waits for the next",
  process: "within one process, round and round; waits before one comes twice in a unit of the clock",
  run: "within one run, then asks for another",
  kept: "and is kept when the process ends; refuses after its last value",
};

const UNITS: readonly (readonly [unitMs: number, name: string])[] = [
  [1_000, "seconds"],
  [1, "milliseconds"],
  [0.001, "microseconds"],
  [0.0001, "units of 100 ns"],
];

/** Complete by its type: a new kind of source does not compile until it has words. */
const WORDS: { readonly [Kind in Source["kind"]]: (source: SourceOf<Kind>) => string } = {
  fixed: ({ value }) => `always ${value}`,
  clock: ({ unitMs, epochMs }) => `${unitName(unitMs)} since ${instant(epochMs)}`,
  node: ({ from }) => NODES[from],
  remainder: ({ drawnBelow }) => `the last digits of a number drawn below ${drawnBelow.toLocaleString("en-US")}`,
  random: ({ from, to }) => `drawn from ${from.toLocaleString("en-US")} to ${to.toLocaleString("en-US")}`,
  sequence: ({ within, first }) => `rises by one from ${first === "random" ? "anywhere" : first} ${SCOPES[within]}`,
  counter: ({ asked }) => `asked for from one central counter, ${asked}`,
};

/** Fields that a node or a counter fills in common hold its digits one after the other. */
export function filledBy(field: Field, { fields }: Scheme): string {
  const { source } = field;
  const words = (WORDS[source.kind] as (source: Source) => string)(source);
  if (source.kind !== "node" && source.kind !== "counter") return words;
  const sharing = fields.filter((other) => JSON.stringify(other.source) === JSON.stringify(source));
  return sharing.length === 1 ? words : `${words}; ${PARTS[Math.min(sharing.indexOf(field), 1)]} of it`;
}

const PARTS = ["the first part", "the next part"] as const;

/** `41 bits`, `6 digits`. */
export function widthInWords({ width }: Field): string {
  const [count, unit] =
    "bits" in width ? [width.bits, "bit"] : "digits" in width ? [width.digits, "digit"] : [width.base62, "character"];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

/** The greatest value that fits. */
export function greatestOf(field: Field): bigint {
  return capacityOf(field) - 1n;
}

/** The digits of each field, most significant first, with its name beneath; as many lines of this width as they need. */
export function fieldDigits({ fields }: Scheme, values: Values, width: number): readonly string[] {
  const room = width - INDENT.length;
  const pieces = fields.flatMap((field) => piecesOf(field, BigInt(values[field.name] ?? 0), room));
  const lines: Piece[][] = [[]];
  let left = room;
  for (const piece of pieces) {
    if (piece.digits.length > left || wide(piece) > left) {
      lines.push([]);
      left = room;
    }
    lines.at(-1)?.push(piece);
    left -= wide(piece) + 1;
  }
  return lines.flatMap((line) =>
    [line.map((piece) => piece.digits.padEnd(wide(piece))), line.map((piece) => piece.name.padEnd(wide(piece)))].map(
      (cells) => `${INDENT}${cells.join(" ")}`.trimEnd(),
    ),
  );
}

interface Piece {
  readonly name: string;
  readonly digits: string;
}

const INDENT = "  ";
const BASE = BigInt(DIGITS.length);
/** A wider field goes on in the next line. */
const PIECE_DIGITS_MAX = 64;

function piecesOf(field: Field, value: bigint, room: number): readonly Piece[] {
  const digits = digitsOf(field, value);
  const pieces = digits.match(new RegExp(`.{1,${Math.min(PIECE_DIGITS_MAX, room)}}`, "g")) ?? [];
  return pieces.map((piece, index) => ({ name: index === 0 ? field.name : "", digits: piece }));
}

function digitsOf({ width }: Field, value: bigint): string {
  if ("bits" in width) return value.toString(2).padStart(width.bits, "0");
  if ("digits" in width) return value.toString().padStart(width.digits, "0");
  const characters = Array.from(
    { length: width.base62 },
    (_, place) => DIGITS[Number((value / BASE ** BigInt(place)) % BASE)],
  );
  return characters.reverse().join("");
}

function wide({ name, digits }: Piece): number {
  return Math.max(name.length, digits.length);
}

function unitName(unitMs: number): string {
  return UNITS.find(([ms]) => ms === unitMs)?.[1] ?? `units of ${unitMs} ms`;
}
