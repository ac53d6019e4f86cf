/** The next value of a sequence, by what restarts it. It never returns a value twice within its scope; it waits, asks or refuses instead. */
import type { SequenceScope, Source } from "./field.js";
import { assertFits } from "./layout.js";
import { type Memory, type MintContext, SchemeError } from "./scheme.js";

/** What is known of a step while the fields are being filled. */
export interface StepState {
  readonly context: MintContext;
  /** The unit of the clock in which this step is; undefined where there is no clock field. */
  readonly unit: number | undefined;
  /** When the next unit begins. */
  readonly nextUnitMs: number;
  /** The values of the nodes, for state that belongs to one of them. */
  readonly nodes: readonly bigint[];
  /** Before each name in a memory, so that schemes can share one. */
  readonly scheme: string;
}

export type NextInSequence =
  | { readonly outcome: "next"; readonly value: bigint; readonly run: bigint }
  | { readonly outcome: "wait"; readonly untilMs: number };

interface Request {
  readonly first: () => bigint;
  readonly capacity: bigint;
  readonly state: StepState;
  /** How many runs the counter of the scheme has. */
  readonly runCount: bigint;
}

/** @throws SchemeError `clock_moved_backward` or `number_space_exhausted`; nothing is remembered then. */
export function nextInSequence(
  { within, first }: Extract<Source, { kind: "sequence" }>,
  capacity: bigint,
  state: StepState,
  runCount = 0n,
): NextInSequence {
  const firstValue = () => BigInt(first === "random" ? drawBelow(state.context, Number(capacity)) : first);
  return SCOPES[within]({ first: firstValue, capacity, state, runCount });
}

const SCOPES: Readonly<Record<SequenceScope, (request: Request) => NextInSequence>> = {
  "clock unit": ({ first, capacity, state }) => {
    const { unit, last, memory, key } = unitMemory(state);
    if (last !== undefined && unit < last) {
      const message = `the clock went back by ${last - unit} units, from ${last} to ${unit}; numbers made now could repeat`;
      throw new SchemeError("clock_moved_backward", message);
    }
    const value = unit === last ? remembered(memory, key("sequence")) + 1n : first();
    if (value >= capacity) return { outcome: "wait", untilMs: state.nextUnitMs };
    // The unit first, as a run below: a sequence that restarts in an old unit would repeat.
    memory.set(key("unit"), unit);
    memory.set(key("sequence"), value);
    return { outcome: "next", value, run: 0n };
  },

  process: ({ first, capacity, state }) => {
    const { unit, last, memory, key } = unitMemory(state);
    const before = memory.get(key("sequence"));
    const made = unit === last ? remembered(memory, key("made in unit")) : 0n;
    if (made >= capacity) return { outcome: "wait", untilMs: state.nextUnitMs };
    const value = before === undefined ? first() : (before + 1n) % capacity;
    memory.set(key("unit"), unit);
    memory.set(key("made in unit"), made + 1n);
    memory.set(key("sequence"), value);
    return { outcome: "next", value, run: 0n };
  },

  run: ({ first, capacity, state: { context, scheme }, runCount }) => {
    const { memory } = context;
    const current = memory.get(`${scheme}/run`);
    const last = memory.get(`${scheme}/sequence`);
    const goesOn = current !== undefined && last !== undefined && last + 1n < capacity;
    const run = goesOn ? current : nextFromCounter(context, runCount);
    const value = goesOn ? last + 1n : first();
    // The run first: if the second write fails, a new run with an old sequence loses numbers; the other order would repeat those of the old run.
    memory.set(`${scheme}/run`, run);
    memory.set(`${scheme}/sequence`, value);
    return { outcome: "next", value, run };
  },

  kept: ({ first, capacity, state: { context, scheme, nodes } }) => {
    const key = `${scheme}/${nodes.join("/")}`;
    const last = context.disk.get(key);
    const value = last === undefined ? first() : last + 1n;
    if (value >= capacity) {
      throw new SchemeError("number_space_exhausted", `the sequence of ${key} is at its greatest, ${capacity - 1n}`);
    }
    context.disk.set(key, value);
    return { outcome: "next", value, run: 0n };
  },
};

/** @throws SchemeError `number_space_exhausted` where the fields can't hold the next value. */
export function nextFromCounter({ counter }: MintContext, capacity: bigint): bigint {
  const value = counter.next();
  if (value < 1n) throw new RangeError(`a counter must return whole numbers from 1 on, not ${value}`);
  if (value >= capacity) {
    throw new SchemeError("number_space_exhausted", `the counter is at ${value}, the greatest is ${capacity - 1n}`);
  }
  return value;
}

/** A random number of the context; checked, because a wrong one would spill into the field above. */
export function drawBelow({ random }: MintContext, bound: number): number {
  return Number(assertFits("a random number", random.below(bound), BigInt(bound)));
}

function unitMemory({ unit, context: { memory }, scheme }: StepState): {
  readonly unit: bigint;
  readonly last: bigint | undefined;
  readonly memory: Memory;
  readonly key: (what: string) => string;
} {
  const key = (what: string): string => `${scheme}/${what}`;
  return { unit: BigInt(unit as number), last: memory.get(key("unit")), memory, key };
}

function remembered(memory: Memory, key: string): bigint {
  const value = memory.get(key);
  if (value === undefined) throw new RangeError(`the memory has lost "${key}"`);
  return value;
}
