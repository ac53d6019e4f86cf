/**
 * One step of generating: fills each field from its source. Reads the clock once.
 * A sequence never returns a value twice within its scope: it waits, requests a run or fails instead.
 */
import {
  assertFits,
  capacityOf,
  drawnCount,
  type Field,
  type FieldOf,
  fieldsOfKind,
  fieldsSharing,
  type NodeSource,
  namesOf,
  nodeFields,
  nodeSourcesOf,
  risingFields,
  type SequenceScope,
  splitNumber,
  type Values,
} from "./fields.js";
import { type GenerateContext, type NodeIdentity, SchemeError } from "./scheme.js";

type Step =
  | { readonly outcome: "generated"; readonly values: Values }
  | { readonly outcome: "wait"; readonly untilMs: number };

/** Returns what `generate` of a scheme of these fields does. */
export function generatorOf(scheme: string, fields: readonly Field[]): (context: GenerateContext) => Step {
  const counters = fieldsOfKind(fields, "counter");
  const [sequence] = fieldsOfKind(fields, "sequence");
  return (context) => {
    const nodes = new Map(nodeSourcesOf(fields).map((from) => [from, nodeNumber(fields, from, context.node)]));
    const { unit: clockUnit, nextUnitMs } = readClock(fields, context);
    const risen = nextRisen(scheme, risingFields(fields), context, clockUnit);
    if (risen === "wait") return { outcome: "wait", untilMs: nextUnitMs };
    const { unit } = risen;
    const newRun = () => nextFromCounter(context, capacityOf(...counters));
    const next = sequence && nextInSequence(sequence, { context, scheme, unit, nodes: [...nodes.values()], newRun });
    if (next === "wait") return { outcome: "wait", untilMs: nextUnitMs };
    const counted = counters.length === 0 ? undefined : (next?.run ?? newRun());

    const numberFor = (field: Field): bigint | undefined => {
      const { source } = field;
      switch (source.kind) {
        case "fixed":
          return BigInt(source.value);
        case "clock":
          return unit;
        case "node":
          return nodes.get(source.from);
        case "random":
          if (source.rises) return risen.value;
          return BigInt(source.from) + drawBelow(context, drawnCount({ ...field, source }));
        case "digest":
          return drawBelow(context, capacityOf(field));
        case "remainder":
          return drawBelow(context, BigInt(source.drawnBelow)) % capacityOf(field);
        case "sequence":
          return next?.value;
        case "counter":
          return counted;
      }
    };
    const values = fields.map((field) => {
      return [field.name, splitNumber(fieldsSharing(fields, field), numberFor(field) as bigint)[field.name]] as const;
    });
    return { outcome: "generated", values: Object.fromEntries(values) as Values };
  };
}

/**
 * What the rising fields hold, and the unit of the number. A clock that went back does not count before it is past the last unit: the numbers
 * of a process stay in order.
 */
function nextRisen(
  scheme: string,
  rising: readonly Field[],
  context: GenerateContext,
  clockUnit: bigint,
): { readonly unit: bigint; readonly value: bigint } | "wait" {
  if (rising.length === 0) return { unit: clockUnit, value: 0n };
  const { memory } = context;
  const capacity = capacityOf(...rising);
  const lastUnit = memory.get(`${scheme}/unit`);
  const lastValue = memory.get(`${scheme}/risen`);
  const isFirst = lastUnit === undefined || lastValue === undefined || clockUnit > lastUnit;
  const unit = isFirst ? clockUnit : lastUnit;
  const value = isFirst ? drawBelow(context, capacity) : lastValue + 1n;
  if (value >= capacity) return "wait";
  memory.set(`${scheme}/unit`, unit);
  memory.set(`${scheme}/risen`, value);
  return { unit, value };
}

/** `unit` is 0 where there is no clock field. */
function readClock(fields: readonly Field[], { clock }: GenerateContext): { unit: bigint; nextUnitMs: number } {
  const [field] = fieldsOfKind(fields, "clock");
  if (field === undefined) return { unit: 0n, nextUnitMs: Number.NaN };
  const { epochMs, unitMs } = field.source;
  const nowMs = clock.nowMs();
  const unit = Math.floor((nowMs - epochMs) / unitMs);
  if (!(Number.isSafeInteger(unit) && unit >= 0)) {
    throw new RangeError(`the clock must be at ${epochMs} ms or later, not at ${nowMs}`);
  }
  const greatest = capacityOf(field) - 1n;
  if (unit > greatest) {
    throw new SchemeError("number_space_exhausted", `${field.name} is ${unit}, the greatest is ${greatest}`);
  }
  return { unit: BigInt(unit), nextUnitMs: epochMs + (unit + 1) * unitMs };
}

function nodeNumber(fields: readonly Field[], from: NodeSource, node: NodeIdentity): bigint {
  const sharing = nodeFields(fields, from);
  const capacity = capacityOf(...sharing);
  if (from === "mac hash" && node.macs.length > 0) return hashOfMacs(node.macs) % capacity;
  return assertFits(namesOf(sharing), node[from === "mac hash" ? "given" : from], capacity);
}

const MAC = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i;

/**
 * Returns the number that a machine takes from its own MAC addresses: Java's `hashCode` of all addresses in upper-case hex without separators,
 * as 32 unsigned bits. A field takes the lowest. Its 1,024 nodes are fewer than they look: 38 machines repeat one more often than not.
 * @throws RangeError where an address is none.
 */
export function hashOfMacs(macs: readonly string[]): bigint {
  if (!macs.every((mac) => MAC.test(mac))) throw new RangeError("a MAC address must be written as de:ad:be:ef:00:01");
  const text = macs.join("").replaceAll(":", "").toUpperCase();
  let hash = 0;
  for (let index = 0; index < text.length; index++) hash = (Math.imul(hash, 31) + text.charCodeAt(index)) | 0;
  return BigInt(hash >>> 0);
}

/** @throws SchemeError `number_space_exhausted` where the fields can't hold the next value. */
function nextFromCounter({ counter }: GenerateContext, capacity: bigint): bigint {
  const value = counter.next();
  if (value < 1n) throw new RangeError(`a counter must return whole numbers from 1 on, not ${value}`);
  if (value >= capacity) {
    throw new SchemeError("number_space_exhausted", `the counter is at ${value}, the greatest is ${capacity - 1n}`);
  }
  return value;
}

const WORD = 1n << 32n;

/** A random number of the context, which may be one of a caller. A bound beyond 2^53 is a power of two, and is drawn in words of 32 bits. */
function drawBelow(context: GenerateContext, bound: bigint): bigint {
  if (bound >= 1n << 53n) return drawBelow(context, bound / WORD) * WORD + drawBelow(context, WORD);
  return assertFits("a random number", context.random.below(Number(bound)), bound);
}

interface SequenceStep {
  readonly context: GenerateContext;
  /** Before each name in a memory, so that schemes can share one. */
  readonly scheme: string;
  readonly unit: bigint;
  /** The numbers of the nodes, for state that belongs to one of them. */
  readonly nodes: readonly bigint[];
  readonly capacity: bigint;
  readonly firstValue: () => bigint;
  readonly newRun: () => bigint;
}

/** @throws SchemeError `clock_moved_backward` or `number_space_exhausted`; nothing is remembered then. */
function nextInSequence(field: FieldOf<"sequence">, step: Omit<SequenceStep, "capacity" | "firstValue">): Next {
  const { within, first } = field.source;
  const capacity = capacityOf(field);
  const firstValue = () => (first === "random" ? drawBelow(step.context, capacity) : BigInt(first));
  return SCOPES[within]({ ...step, capacity, firstValue });
}

/** `run`: of a sequence that counts within one. */
type Next = { readonly value: bigint; readonly run?: bigint } | "wait";

/**
 * The next value, by where the sequence restarts. The order of two writes to a memory is chosen so that a failure between them loses numbers;
 * the other order would repeat some.
 */
const SCOPES: Readonly<Record<SequenceScope, (step: SequenceStep) => Next>> = {
  "clock unit": ({ context: { memory }, scheme, unit, capacity, firstValue }) => {
    const last = memory.get(`${scheme}/unit`);
    if (last !== undefined && unit < last) {
      const message = `the clock went back by ${last - unit} units, from ${last} to ${unit}; numbers made now could repeat`;
      throw new SchemeError("clock_moved_backward", message);
    }
    const value = unit === last ? (memory.get(`${scheme}/sequence`) ?? -1n) + 1n : firstValue();
    if (value >= capacity) return "wait";
    memory.set(`${scheme}/unit`, unit);
    memory.set(`${scheme}/sequence`, value);
    return { value };
  },

  process: ({ context: { memory }, scheme, unit, capacity, firstValue }) => {
    const before = memory.get(`${scheme}/sequence`);
    const isSameUnit = unit === memory.get(`${scheme}/unit`);
    const madeInUnit = (isSameUnit ? memory.get(`${scheme}/made in unit`) : undefined) ?? 0n;
    if (madeInUnit >= capacity) return "wait";
    const value = before === undefined ? firstValue() : (before + 1n) % capacity;
    memory.set(`${scheme}/unit`, unit);
    memory.set(`${scheme}/made in unit`, madeInUnit + 1n);
    memory.set(`${scheme}/sequence`, value);
    return { value };
  },

  run: ({ context: { memory }, scheme, newRun, capacity, firstValue }) => {
    const current = memory.get(`${scheme}/run`);
    const last = memory.get(`${scheme}/sequence`);
    const isUsedUp = current === undefined || last === undefined || last + 1n >= capacity;
    const run = isUsedUp ? newRun() : current;
    const value = isUsedUp ? firstValue() : last + 1n;
    memory.set(`${scheme}/run`, run);
    memory.set(`${scheme}/sequence`, value);
    return { value, run };
  },

  kept: ({ context: { disk }, scheme, nodes, capacity, firstValue }) => {
    const key = `${scheme}/${nodes.join("/")}`;
    const last = disk.get(key);
    const value = last === undefined ? firstValue() : last + 1n;
    if (value >= capacity) {
      throw new SchemeError("number_space_exhausted", `the sequence of ${key} is at its greatest, ${capacity - 1n}`);
    }
    disk.set(key, value);
    return { value };
  },
};
