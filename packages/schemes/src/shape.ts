/** What the fields of a scheme amount to, taken together: the input of every figure in `facts.ts` and `guesses.ts`. */
import { capacityOf, type Field, type SequenceScope, type Source } from "./field.js";

export interface Shape {
  /** How many different numbers can be made. */
  readonly count: bigint;
  /** The source of the most significant field that differs between numbers. */
  readonly leading: Source["kind"];
  readonly clock?: { readonly unitMs: number; readonly epochMs: number; readonly unitCount: number } | undefined;
  readonly nodes?: NodeShape | undefined;
  readonly sequence?: { readonly within: SequenceScope; readonly count: bigint } | undefined;
  readonly counter?: "for each number" | "for each run" | undefined;
  /** What is drawn for each number: so many values, each with this probability. Empty where nothing is. */
  readonly drawn: readonly ValueClass[];
  /** How many values can be drawn; 1 where nothing is. */
  readonly drawnCount: bigint;
}

interface NodeShape {
  readonly count: bigint;
  /** Whether an operator has to keep a list. */
  readonly given: boolean;
  /** Whether a machine may take the number of another. */
  readonly hashed: boolean;
}

/** How much a scheme is used. */
export interface Load {
  /** Numbers made a second, by all nodes together. */
  readonly perSecond: number;
  readonly seconds: number;
  readonly nodes: number;
}

/** So many values, each drawn with this probability. */
export interface ValueClass {
  readonly count: number;
  readonly share: number;
}

/** @param greatest the greatest number of the scheme, which may be less than its fields can write. */
export function shapeOf(fields: readonly Field[], greatest: bigint): Shape {
  const [sequence] = ofKind(fields, "sequence");
  const all = product(fields.map(mintedCount));
  return {
    count: all > greatest ? greatest + 1n : all,
    leading: fields.find(({ source }) => source.kind !== "fixed")?.source.kind ?? "fixed",
    clock: clockOf(fields, greatest),
    nodes: nodesOf(fields),
    sequence: sequence && { within: sequence.source.within, count: mintedCount(sequence) },
    counter: ofKind(fields, "counter")[0]?.source.asked,
    drawn: drawnOf(fields),
    drawnCount: product([...ofKind(fields, "random"), ...ofKind(fields, "remainder")].map(mintedCount)),
  };
}

/** How many units of the clock a time has; 1 without a clock. */
export function unitsIn({ clock }: Shape, seconds: number): number {
  return clock === undefined ? 1 : (seconds * 1_000) / clock.unitMs;
}

/** How many numbers a node makes in a unit of the clock, on average. */
export function perNodeAndUnit(shape: Shape, { perSecond, nodes }: Load): number {
  return perSecond / nodes / unitsIn(shape, 1);
}

type FieldOf<Kind extends Source["kind"]> = Field & { readonly source: Extract<Source, { kind: Kind }> };

function ofKind<Kind extends Source["kind"]>(fields: readonly Field[], kind: Kind): FieldOf<Kind>[] {
  return fields.filter((field): field is FieldOf<Kind> => field.source.kind === kind);
}

/** How many values of the field are minted. */
function mintedCount(field: Field): bigint {
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

function nodesOf(fields: readonly Field[]): NodeShape | undefined {
  const nodes = ofKind(fields, "node");
  if (nodes.length === 0) return undefined;
  const sources = nodes.map(({ source }) => source.from);
  return {
    count: product(nodes.map(capacityOf)),
    given: sources.some((from) => from === "given" || from === "server"),
    hashed: sources.includes("mac hash"),
  };
}

/** Several drawn fields are drawn as one. A remainder has two classes: small values come more often. */
function drawnOf(fields: readonly Field[]): readonly ValueClass[] {
  const [remainder] = ofKind(fields, "remainder");
  if (remainder !== undefined) {
    const capacity = Number(capacityOf(remainder));
    const { drawnBelow } = remainder.source;
    const moreOften = drawnBelow % capacity;
    return [
      { count: moreOften, share: Math.ceil(drawnBelow / capacity) / drawnBelow },
      { count: capacity - moreOften, share: Math.floor(drawnBelow / capacity) / drawnBelow },
    ];
  }
  const random = ofKind(fields, "random");
  const count = Number(product(random.map(mintedCount)));
  return random.length === 0 ? [] : [{ count, share: 1 / count }];
}

function product(counts: readonly bigint[]): bigint {
  return counts.reduce((result, count) => result * count, 1n);
}
