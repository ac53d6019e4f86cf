/** What the fields of a scheme come to, taken together: for the figures. */
import { capacityOf, type Field, type SequenceScope, type Source } from "./field.js";

export interface Shape {
  /** How many different numbers can be made. */
  readonly count: bigint;
  /** What fills the most significant field that differs between numbers. */
  readonly leading: Source["kind"];
  readonly clock?: { readonly unitMs: number; readonly epochMs: number; readonly unitCount: number };
  readonly nodes?: {
    readonly count: bigint;
    /** Whether somebody has to keep a list. */
    readonly given: boolean;
    /** Whether a machine may take the number of another. */
    readonly hashed: boolean;
  };
  readonly sequence?: { readonly within: SequenceScope; readonly count: bigint };
  readonly counter?: "for each number" | "for each run";
  /** What is drawn for each number: so many values, each with this share of the chance. Empty where nothing is. */
  readonly drawn: readonly { readonly count: number; readonly share: number }[];
  /** How many values can be drawn; 1 where nothing is. */
  readonly drawnCount: bigint;
}

/** @param greatest the greatest number of the scheme, which may be less than its fields can write. */
export function shapeOf(fields: readonly Field[], greatest: bigint): Shape {
  const clock = clockOf(fields, greatest);
  const nodes = nodesOf(fields);
  const sequence = sequenceOf(fields);
  const counter = ofKind(fields, "counter")[0]?.source.asked;
  const all = product(fields.map(madeOf));
  return {
    count: all > greatest ? greatest + 1n : all,
    leading: fields.find(({ source }) => source.kind !== "fixed")?.source.kind ?? "fixed",
    ...(clock === undefined ? {} : { clock }),
    ...(nodes === undefined ? {} : { nodes }),
    ...(sequence === undefined ? {} : { sequence }),
    ...(counter === undefined ? {} : { counter }),
    drawn: drawnOf(fields),
    drawnCount: product([...ofKind(fields, "random"), ...ofKind(fields, "remainder")].map(madeOf)),
  };
}

type Of<Kind extends Source["kind"]> = Field & { readonly source: Extract<Source, { kind: Kind }> };

function ofKind<Kind extends Source["kind"]>(fields: readonly Field[], kind: Kind): Of<Kind>[] {
  return fields.filter((field): field is Of<Kind> => field.source.kind === kind);
}

/** How many values of the field are minted. */
function madeOf(field: Field): bigint {
  const { source } = field;
  if (source.kind === "fixed") return 1n;
  if (source.kind === "random") return BigInt(source.to - source.from + 1);
  if (source.kind === "sequence" && source.first !== "random") return capacityOf(field) - BigInt(source.first);
  return capacityOf(field);
}

function clockOf(fields: readonly Field[], greatest: bigint): Shape["clock"] {
  const [field] = ofKind(fields, "clock");
  if (field === undefined) return undefined;
  const { unitMs, epochMs } = field.source;
  const below = product(fields.slice(fields.indexOf(field) + 1).map(capacityOf));
  const unitCount = greatest / below + 1n < capacityOf(field) ? greatest / below + 1n : capacityOf(field);
  return { unitMs, epochMs, unitCount: Number(unitCount) };
}

function nodesOf(fields: readonly Field[]): Shape["nodes"] {
  const nodes = ofKind(fields, "node");
  if (nodes.length === 0) return undefined;
  const sources = nodes.map(({ source }) => source.from);
  return {
    count: product(nodes.map(capacityOf)),
    given: sources.some((from) => from === "given" || from === "server"),
    hashed: sources.includes("mac hash"),
  };
}

function sequenceOf(fields: readonly Field[]): Shape["sequence"] {
  const [field] = ofKind(fields, "sequence");
  return field === undefined ? undefined : { within: field.source.within, count: madeOf(field) };
}

/** Several drawn fields are drawn as one; a remainder stands alone. */
function drawnOf(fields: readonly Field[]): Shape["drawn"] {
  const [remainder] = ofKind(fields, "remainder");
  if (remainder !== undefined) {
    const capacity = Number(capacityOf(remainder));
    const { drawnBelow } = remainder.source;
    const often = Math.ceil(drawnBelow / capacity);
    const moreOften = drawnBelow % capacity;
    return [
      { count: moreOften, share: often / drawnBelow },
      { count: capacity - moreOften, share: Math.floor(drawnBelow / capacity) / drawnBelow },
    ];
  }
  const random = ofKind(fields, "random");
  const count = Number(product(random.map(madeOf)));
  return random.length === 0 ? [] : [{ count, share: 1 / count }];
}

function product(counts: readonly bigint[]): bigint {
  return counts.reduce((result, count) => result * count, 1n);
}
