/** Where a sequence stands, by what begins it anew. It never gives a value twice within its scope; rather it waits, asks or refuses. */
import type { SequenceScope, Source } from "./field.js";
import type { Memory } from "./mint-context.js";
import { drawn, fromCounter, type Moment } from "./moment.js";
import { SchemeError } from "./scheme-error.js";

export type NextInSequence =
  | { readonly outcome: "next"; readonly value: bigint; readonly run: bigint }
  | { readonly outcome: "wait"; readonly untilMs: number };

type SequenceSource = Extract<Source, { kind: "sequence" }>;

/** What a scope decides on. */
interface Asked {
  readonly first: () => bigint;
  readonly capacity: bigint;
  readonly moment: Moment;
  /** How many runs the counter of the scheme has. */
  readonly runCount: bigint;
}

/** @throws SchemeError `clock_went_back` or `space_used_up`; nothing is remembered then. */
export function nextInSequence(
  source: SequenceSource,
  capacity: bigint,
  moment: Moment,
  runCount = 0n,
): NextInSequence {
  const first = () => BigInt(source.first === "random" ? drawn(moment.context, Number(capacity)) : source.first);
  return SCOPES[source.within]({ first, capacity, moment, runCount });
}

const SCOPES: Readonly<Record<SequenceScope, (asked: Asked) => NextInSequence>> = {
  "clock unit": ({ first, capacity, moment }) => {
    const { unit, last, memory, name } = unitOf(moment);
    if (last !== undefined && unit < last) {
      const message = `the clock went back by ${last - unit} units, from ${last} to ${unit}; numbers made now could repeat`;
      throw new SchemeError("clock_went_back", message);
    }
    const value = unit === last ? remembered(memory, name("sequence")) + 1n : first();
    if (value >= capacity) return { outcome: "wait", untilMs: moment.nextUnitMs };
    // The unit first, as a run below: a sequence that begins anew in an old unit would repeat.
    memory.set(name("unit"), unit);
    memory.set(name("sequence"), value);
    return { outcome: "next", value, run: 0n };
  },

  process: ({ first, capacity, moment }) => {
    const { unit, last, memory, name } = unitOf(moment);
    const before = memory.get(name("sequence"));
    const made = unit === last ? remembered(memory, name("made in unit")) : 0n;
    if (made >= capacity) return { outcome: "wait", untilMs: moment.nextUnitMs };
    const value = before === undefined ? first() : (before + 1n) % capacity;
    memory.set(name("unit"), unit);
    memory.set(name("made in unit"), made + 1n);
    memory.set(name("sequence"), value);
    return { outcome: "next", value, run: 0n };
  },

  run: ({ first, capacity, moment, runCount }) => {
    const { context, scheme } = moment;
    const { memory } = context;
    const held = memory.get(`${scheme}/run`);
    const last = memory.get(`${scheme}/sequence`);
    const goesOn = held !== undefined && last !== undefined && last + 1n < capacity;
    const run = goesOn ? held : fromCounter(context, runCount);
    const value = goesOn ? last + 1n : first();
    // The run first: if the second were lost, a new run with an old sequence burns numbers; the other order would repeat those of the old run.
    memory.set(`${scheme}/run`, run);
    memory.set(`${scheme}/sequence`, value);
    return { outcome: "next", value, run };
  },

  kept: ({ first, capacity, moment }) => {
    const { context, scheme, nodes } = moment;
    const name = `${scheme}/${nodes.join("/")}`;
    const last = context.disk.get(name);
    const value = last === undefined ? first() : last + 1n;
    if (value >= capacity) {
      throw new SchemeError("space_used_up", `the sequence of ${name} is at its greatest, ${capacity - 1n}`);
    }
    context.disk.set(name, value);
    return { outcome: "next", value, run: 0n };
  },
};

function unitOf({ unit, context, scheme }: Moment): {
  readonly unit: bigint;
  readonly last: bigint | undefined;
  readonly memory: Memory;
  readonly name: (what: string) => string;
} {
  const name = (what: string): string => `${scheme}/${what}`;
  return { unit: BigInt(unit as number), last: context.memory.get(name("unit")), memory: context.memory, name };
}

function remembered(memory: Memory, name: string): bigint {
  const value = memory.get(name);
  if (value === undefined) throw new RangeError(`the memory has lost "${name}"`);
  return value;
}
