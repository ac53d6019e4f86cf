/**
 * One step of minting: fills each field from its source. Reads the clock once.
 * What can be refused is refused first; what is remembered is written last, before the number is returned.
 */
import { capacityOf, type Field, type Source } from "./field.js";
import { assertFits, exactValue, type PlacedField, placeFields } from "./layout.js";
import { type MintContext, SchemeError, type Values } from "./scheme.js";
import { drawBelow, nextFromCounter, nextInSequence, type StepState } from "./sequence.js";

type Step =
  | { readonly outcome: "minted"; readonly values: Values }
  | { readonly outcome: "wait"; readonly untilMs: number };

/** Fields with one source in common, and how many values all of them together can have. */
interface Part {
  readonly placed: readonly PlacedField[];
  readonly source: Source;
  readonly capacity: bigint;
}

/** Returns what `mint` of a scheme of these fields does. */
export function minterOf(scheme: string, fields: readonly Field[]): (context: MintContext) => Step {
  const parts = partsOf(fields);
  const sequence = parts.find(({ source }) => source.kind === "sequence");
  const counter = parts.find(({ source }) => source.kind === "counter");
  return (context) => {
    const filled = new Map<Part, bigint>();
    for (const part of parts) if (part.source.kind === "node") filled.set(part, nodeValue(part, context));
    const state: StepState = { ...readClock(parts, context), context, nodes: [...filled.values()], scheme };
    for (const part of parts) {
      const value = statelessValue(part, state);
      if (value !== undefined) filled.set(part, value);
    }
    if (sequence?.source.kind === "sequence") {
      const next = nextInSequence(sequence.source, sequence.capacity, state, counter?.capacity);
      if (next.outcome === "wait") return next;
      filled.set(sequence, next.value);
      if (counter !== undefined) filled.set(counter, next.run);
    } else if (counter !== undefined) filled.set(counter, nextFromCounter(context, counter.capacity));
    return { outcome: "minted", values: valuesOf(fields, filled) };
  };
}

/** Undefined for a source that is filled before or after: a node, a sequence, a counter. */
function statelessValue({ source, capacity }: Part, { context, unit }: StepState): bigint | undefined {
  switch (source.kind) {
    case "fixed":
      return BigInt(source.value);
    case "clock":
      return BigInt(unit as number);
    case "random":
      return BigInt(source.from + drawBelow(context, source.to - source.from + 1));
    case "remainder":
      return BigInt(drawBelow(context, source.drawnBelow)) % capacity;
    default:
      return undefined;
  }
}

function partsOf(fields: readonly Field[]): readonly Part[] {
  const parts = new Map<string, Field[]>();
  for (const field of fields) {
    const key = sharedSource(field.source) ?? `field ${field.name}`;
    parts.set(key, [...(parts.get(key) ?? []), field]);
  }
  return [...parts.values()].map((together) => ({
    placed: placeFields(together),
    source: (together[0] as Field).source,
    capacity: together.reduce((product, field) => product * capacityOf(field), 1n),
  }));
}

function sharedSource(source: Source): string | undefined {
  if (source.kind === "node") return `node ${source.from}`;
  return source.kind === "counter" ? "counter" : undefined;
}

function readClock(parts: readonly Part[], { clock }: MintContext): Pick<StepState, "unit" | "nextUnitMs"> {
  for (const { source, capacity, placed } of parts) {
    if (source.kind !== "clock") continue;
    const nowMs = clock.nowMs();
    const unit = Math.floor((nowMs - source.epochMs) / source.unitMs);
    if (!(Number.isSafeInteger(unit) && unit >= 0)) {
      throw new RangeError(`the clock must be at ${source.epochMs} ms or later, not at ${nowMs}`);
    }
    if (BigInt(unit) >= capacity) {
      throw new SchemeError(
        "number_space_exhausted",
        `${placed[0]?.field.name} is ${unit}, the greatest is ${capacity - 1n}`,
      );
    }
    return { unit, nextUnitMs: source.epochMs + (unit + 1) * source.unitMs };
  }
  return { unit: undefined, nextUnitMs: Number.NaN };
}

function nodeValue({ source, capacity, placed }: Part, { node }: MintContext): bigint {
  const { from } = source as Extract<Source, { kind: "node" }>;
  if (from === "mac hash" && node.macs.length > 0) return hashOfMacs(node.macs) % capacity;
  const known = from === "mac hash" ? "given" : from;
  return assertFits(placed.map(({ field }) => field.name).join(" and "), node[known], capacity);
}

/** In the order of the fields; where several share a source, each takes its digits of it. */
function valuesOf(fields: readonly Field[], filled: ReadonlyMap<Part, bigint>): Values {
  const values = new Map<Field, number | bigint>();
  for (const [part, whole] of filled) {
    for (const { field, capacity, weight } of part.placed) {
      // From a memory that another program changed, or a declaration that draws too much: it would spill into the field above.
      if (whole < 0n || whole >= part.capacity) throw new RangeError(`${whole} does not fit ${field.name}`);
      values.set(field, exactValue(capacity, (whole / weight) % capacity));
    }
  }
  return Object.fromEntries(fields.map((field) => [field.name, values.get(field) as number | bigint]));
}

const MAC = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i;

/**
 * The number that a machine takes from its own MAC addresses: Java's `hashCode` of all addresses in upper-case hex without separators, as
 * 32 unsigned bits. A field takes the lowest. Its 1,024 nodes are fewer than they look: 38 machines repeat one more often than not.
 * @throws RangeError where an address is none.
 */
export function hashOfMacs(macs: readonly string[]): bigint {
  if (!macs.every((mac) => MAC.test(mac))) throw new RangeError("a MAC address must be written as de:ad:be:ef:00:01");
  const text = macs.map((mac) => mac.replaceAll(":", "").toUpperCase()).join("");
  let hash = 0;
  for (let index = 0; index < text.length; index++) hash = (Math.imul(hash, 31) + text.charCodeAt(index)) | 0;
  return BigInt(hash >>> 0);
}
