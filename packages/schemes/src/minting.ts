/**
 * One step of minting: goes over the fields, and fills each by what fills it. Reads the clock once.
 * What can be refused is refused first; what is remembered is written last, before the number is out.
 */
import { capacityOf, type Field, type Source } from "./field.js";
import { mustFit, type Placed, placedFields, valueOf } from "./layout.js";
import type { MintContext } from "./mint-context.js";
import { drawn, fromCounter, type Moment } from "./moment.js";
import { nodeFromMacs } from "./node-from-macs.js";
import type { Values } from "./scheme.js";
import { SchemeError } from "./scheme-error.js";
import { nextInSequence } from "./sequence.js";

export type Step =
  | { readonly outcome: "minted"; readonly values: Values }
  | { readonly outcome: "wait"; readonly untilMs: number };

/** Fields with one source in common, and the values that all of them together can have. */
interface Part {
  readonly fields: readonly Field[];
  readonly source: Source;
  readonly capacity: bigint;
}

/** What `mint` of a scheme of these fields does. */
export function minterOf(scheme: string, fields: readonly Field[]): (context: MintContext) => Step {
  const parts = partsOf(fields);
  const places = placesOf(fields, parts);
  const nodes = parts.filter(({ source }) => source.kind === "node");
  const plain = parts.filter(({ source }) => source.kind in FILL);
  const sequence = parts.find(({ source }) => source.kind === "sequence");
  const counter = parts.find(({ source }) => source.kind === "counter");
  return (context) => {
    const filled = new Map(nodes.map((part) => [part, nodeOf(part, context)]));
    const moment = { ...clockOf(parts, context), context, nodes: [...filled.values()], scheme };
    for (const part of plain) filled.set(part, FILL[part.source.kind as keyof typeof FILL](part, moment));
    if (sequence?.source.kind === "sequence") {
      const next = nextInSequence(sequence.source, sequence.capacity, moment, counter?.capacity);
      if (next.outcome === "wait") return next;
      filled.set(sequence, next.value);
      if (counter !== undefined) filled.set(counter, next.run);
    } else if (counter !== undefined) filled.set(counter, fromCounter(context, counter.capacity));
    return { outcome: "minted", values: valuesOf(places, filled) };
  };
}

/** What needs no memory. */
const FILL = {
  fixed: ({ source }: Part) => BigInt((source as Extract<Source, { kind: "fixed" }>).value),
  clock: (_: Part, { unit }: Moment) => BigInt(unit as number),
  random: ({ source }: Part, { context }: Moment) => {
    const { from, to } = source as Extract<Source, { kind: "random" }>;
    return BigInt(from + drawn(context, to - from + 1));
  },
  remainder: ({ source, capacity }: Part, { context }: Moment) => {
    return BigInt(drawn(context, (source as Extract<Source, { kind: "remainder" }>).drawnBelow)) % capacity;
  },
};

function partsOf(fields: readonly Field[]): readonly Part[] {
  const parts = new Map<string, Field[]>();
  for (const field of fields) {
    const key = sharedSource(field.source) ?? `field ${field.name}`;
    parts.set(key, [...(parts.get(key) ?? []), field]);
  }
  return [...parts.values()].map((together) => ({
    fields: together,
    source: (together[0] as Field).source,
    capacity: together.reduce((product, field) => product * capacityOf(field), 1n),
  }));
}

function sharedSource(source: Source): string | undefined {
  if (source.kind === "node") return `node ${source.from}`;
  return source.kind === "counter" ? "counter" : undefined;
}

function clockOf(parts: readonly Part[], { clock }: MintContext): Pick<Moment, "unit" | "nextUnitMs"> {
  for (const { source, capacity, fields } of parts) {
    if (source.kind !== "clock") continue;
    const nowMs = clock.nowMs();
    const unit = Math.floor((nowMs - source.epochMs) / source.unitMs);
    if (!(Number.isSafeInteger(unit) && unit >= 0)) {
      throw new RangeError(`the clock must stand at ${source.epochMs} ms or later, not at ${nowMs}`);
    }
    if (BigInt(unit) >= capacity) {
      throw new SchemeError("space_used_up", `${fields[0]?.name} is ${unit}, the greatest is ${capacity - 1n}`);
    }
    return { unit, nextUnitMs: source.epochMs + (unit + 1) * source.unitMs };
  }
  return { unit: undefined, nextUnitMs: Number.NaN };
}

function nodeOf({ source, capacity, fields }: Part, { node }: MintContext): bigint {
  const { from } = source as Extract<Source, { kind: "node" }>;
  if (from === "mac hash" && node.macs.length > 0) return nodeFromMacs(node.macs) % capacity;
  const known = from === "mac hash" ? "given" : from;
  return mustFit(fields.map(({ name }) => name).join(" and "), node[known], capacity);
}

/** A field as a place in what its part is filled with. */
interface Place {
  readonly name: string;
  readonly part: Part;
  readonly capacity: bigint;
  readonly weight: bigint;
}

/** In the order of the fields; where several share a source, each takes its digits of it. */
function placesOf(fields: readonly Field[], parts: readonly Part[]): readonly Place[] {
  return fields.map((field) => {
    const part = parts.find((candidate) => candidate.fields.includes(field)) as Part;
    const { capacity, weight } = placedFields(part.fields).find((placed) => placed.field === field) as Placed;
    return { name: field.name, part, capacity, weight };
  });
}

function valuesOf(places: readonly Place[], filled: ReadonlyMap<Part, bigint>): Values {
  const values: Record<string, number | bigint> = {};
  for (const { name, part, capacity, weight } of places) {
    const whole = filled.get(part) as bigint;
    // A memory that was changed by others, or a declaration that draws too much: it would spill into the field above.
    if (whole < 0n || whole >= part.capacity) throw new RangeError(`${whole} does not fit ${name}`);
    values[name] = valueOf(capacity, (whole / weight) % capacity);
  }
  return values;
}
