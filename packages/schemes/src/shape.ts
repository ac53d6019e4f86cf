/** What the fields of a scheme amount to, taken together: the input of every figure in `facts.ts` and `chances.ts`. */
import {
  capacityOf,
  drawnCount,
  type Field,
  fieldsOfKind,
  risingFields,
  type SequenceScope,
  type Source,
} from "./fields.js";

export interface Shape {
  /** How many different numbers can be made. */
  readonly count: number;
  /** The source of the most significant field that differs between numbers. */
  readonly leading: Source["kind"];
  readonly clock: { readonly unitMs: number; readonly endsMs: number; readonly unitCount: number } | undefined;
  /** `isGiven`: an operator has to keep a list. `isHashed`: a machine may take the number of another. */
  readonly nodes: { readonly count: number; readonly isGiven: boolean; readonly isHashed: boolean } | undefined;
  readonly sequence: { readonly within: SequenceScope; readonly count: number } | undefined;
  readonly counter: "for each number" | "for each run" | undefined;
  /** What is drawn for each number. Empty where nothing is. */
  readonly drawn: readonly ValueClass[];
  /** Whether it is drawn for the first number of a unit only, and rises from there. A repeat is counted as if each were drawn: rather too likely. */
  readonly rises: boolean;
}

/** So many values, each drawn with this probability. */
export interface ValueClass {
  readonly count: number;
  readonly share: number;
}

/** @param greatest the greatest number of the scheme, which may be less than its fields can write. */
export function shapeOf(fields: readonly Field[], greatest: bigint): Shape {
  const [sequence] = fieldsOfKind(fields, "sequence");
  const nodes = fieldsOfKind(fields, "node");
  return {
    count: Math.min(product(fields.map(generatedCount)), Number(greatest) + 1),
    leading: fields.find(({ source }) => source.kind !== "fixed")?.source.kind ?? "fixed",
    clock: clockOf(fields, greatest),
    nodes:
      nodes.length === 0
        ? undefined
        : {
            count: Number(capacityOf(...nodes)),
            isGiven: nodes.some(({ source: { from } }) => from === "given" || from === "server"),
            isHashed: nodes.some(({ source: { from } }) => from === "mac hash"),
          },
    sequence: sequence && { within: sequence.source.within, count: generatedCount(sequence) },
    counter: fieldsOfKind(fields, "counter")[0]?.source.asked,
    drawn: drawnOf(fields),
    rises: risingFields(fields).length > 0,
  };
}

/** Several drawn fields are drawn as one. A remainder has two classes: small values come more often. */
export function drawnOf(fields: readonly Field[]): readonly ValueClass[] {
  const [remainder] = fieldsOfKind(fields, "remainder");
  if (remainder !== undefined) {
    const capacity = Number(capacityOf(remainder));
    const { drawnBelow } = remainder.source;
    const moreOften = drawnBelow % capacity;
    return [
      { count: moreOften, share: Math.ceil(drawnBelow / capacity) / drawnBelow },
      { count: capacity - moreOften, share: Math.floor(drawnBelow / capacity) / drawnBelow },
    ];
  }
  const random = [...fieldsOfKind(fields, "random"), ...fieldsOfKind(fields, "digest")];
  const count = product(random.map(generatedCount));
  return random.length === 0 ? [] : [{ count, share: 1 / count }];
}

/** How many values of the field are generated. */
function generatedCount(field: Field): number {
  const { source } = field;
  if (source.kind === "fixed") return 1;
  if (source.kind === "random") return Number(drawnCount({ ...field, source }));
  const unused = source.kind === "sequence" && source.first !== "random" ? source.first : 0;
  return Number(capacityOf(field)) - unused;
}

function clockOf(fields: readonly Field[], greatest: bigint): Shape["clock"] {
  const [field] = fieldsOfKind(fields, "clock");
  if (field === undefined) return undefined;
  const { unitMs, epochMs } = field.source;
  const below = capacityOf(...fields.slice(fields.indexOf(field) + 1));
  const unitCount = Math.min(Number(greatest / below) + 1, Number(capacityOf(field)));
  return { unitMs, unitCount, endsMs: epochMs + unitCount * unitMs - 1 };
}

function product(counts: readonly number[]): number {
  return counts.reduce((result, count) => result * count, 1);
}
