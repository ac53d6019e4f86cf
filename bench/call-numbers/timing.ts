/**
 * Times makers of numbers in turns, in many short rounds. Each maker has loops of its own, compiled from a text of their own: a loop
 * that all share would see many functions at one call, and would be slower than that of an importer, which knows one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { duration, inRounds } from "../harness.js";

export interface Maker {
  readonly name: string;
  /** The package that it comes from; none for what Node or this project brings. */
  readonly package?: string;
  /** Its best setting, where it has several. */
  readonly setting?: string;
  /** Numbers are made in multiples of this. */
  readonly batchCount: number;
  /** Makes `count` numbers and puts them into `kept`, whose length is a power of two, over and over. */
  readonly keep: (kept: unknown[], count: number) => unknown;
  /** Makes `count` numbers and adds up every character: a text that was only concatenated is built here. */
  readonly read: (count: number) => unknown;
  /** Makes one number, or one batch of them, to check. */
  readonly sample: () => unknown;
}

type Details = Pick<Maker, "package" | "setting">;

/** A maker that makes one text at a call. */
export function oneByOne(name: string, make: () => string, details: Details = {}): Maker {
  return { name, batchCount: 1, ...loopsOf(name, make, ""), sample: make, ...details };
}

/** A maker that makes one text at a call that is awaited. */
export function awaitedOneByOne(name: string, make: () => Promise<string>): Maker {
  return { name, batchCount: 1, ...loopsOf(name, make, "await"), sample: make };
}

/** `wait`: `await`, or nothing where a loop must not be made to wait. */
function loopsOf(name: string, make: unknown, wait: "await" | "") {
  const prefix = wait === "await" ? "async " : "";
  const keep = `${prefix}(kept, count) => {
    const mask = kept.length - 1;
    for (let i = 0; i < count; i++) kept[i & mask] = ${wait} make();
  }`;
  const read = `${prefix}(count) => {
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const text = ${wait} make();
      for (let at = 0; at < text.length; at++) sum += text.charCodeAt(at);
    }
    return sum;
  }`;
  return { keep: compile(name, make, keep), read: compile(name, make, read) };
}

/** A maker that makes `batchCount` texts at a call that is awaited. They are kept as they come, all together. */
export function inBatches(name: string, batchCount: number, make: () => Promise<readonly string[]>): Maker {
  const keep = `async (kept, count) => {
    for (let i = 0; i < count; i += ${batchCount}) kept[0] = await make();
  }`;
  const read = `async (count) => {
    let sum = 0;
    for (let i = 0; i < count; i += ${batchCount}) {
      for (const text of await make()) {
        for (let at = 0; at < text.length; at++) sum += text.charCodeAt(at);
      }
    }
    return sum;
  }`;
  return { name, batchCount, keep: compile(name, make, keep), read: compile(name, make, read), sample: make };
}

/** A maker that fills one array over and over. To read is to add up its elements. */
export function intoArray(
  name: string,
  array: Uint8Array | Float64Array,
  batchCount: number,
  fill: () => Promise<void>,
): Maker {
  return {
    name,
    batchCount,
    keep: async (_, count) => {
      for (let i = 0; i < count; i += batchCount) await fill();
    },
    read: async (count) => {
      let sum = 0;
      for (let i = 0; i < count; i += batchCount) {
        await fill();
        for (let at = 0; at < array.length; at++) sum += array[at] as number;
      }
      return sum;
    },
    sample: fill,
  };
}

/** The name is part of the text, or V8 would share one compiled function among all. */
function compile(name: string, make: unknown, loop: string): (...args: unknown[]) => unknown {
  return new Function("make", `"use strict"; /* ${name} */ return ${loop};`)(make) as (...args: unknown[]) => unknown;
}

/** How long a maker runs in one round, about. */
const TURN_MS = 15;
const WARM_UP_MS = 200;
/** So many that a turn of a fast maker meets no collection that another one caused. */
const NUMBER_COUNT_MAX = 200_000;
/** Were all of them kept, most of the time would be the collector's, copying those that live. */
const KEPT_COUNT = 1_024;
/** Before each turn: clients lease runs, and what the turn before left behind is done. */
const PAUSE_MS = 2;

/** Nanoseconds a number, by round. */
export interface Timed {
  readonly keptNs: readonly number[];
  readonly readNs: readonly number[];
}

/** Resolves to the rounds of each maker. */
export async function timeMakers(makers: readonly Maker[], roundCount: number): Promise<readonly Timed[]> {
  const kept: unknown[] = Array.from({ length: KEPT_COUNT });
  const turns: (() => Promise<number>)[] = [];
  for (const { keep, read, batchCount } of makers) {
    turns.push(await turnOf((count) => keep(kept, count), batchCount), await turnOf(read, batchCount));
  }
  const rounds = await inRounds(turns, roundCount);
  return makers.map((_, index) => ({ keptNs: rounds[2 * index] ?? [], readNs: rounds[2 * index + 1] ?? [] }));
}

/** Runs the loop until it is compiled. Resolves to a function that times a turn, in nanoseconds a number. */
async function turnOf(loop: (count: number) => unknown, batchCount: number): Promise<() => Promise<number>> {
  let count = batchCount;
  for (let sumMs = 0, ms = 0; sumMs < WARM_UP_MS; sumMs += ms) {
    ms = await timed(loop, count);
    const wanted = Math.min((count * TURN_MS) / Math.max(ms, 0.01), count * 4, NUMBER_COUNT_MAX);
    count = Math.max(Math.floor(wanted / batchCount), 1) * batchCount;
  }
  return async () => ((await timed(loop, count)) * 1e6) / count;
}

async function timed(loop: (count: number) => unknown, count: number): Promise<number> {
  await sleep(PAUSE_MS);
  return await duration(() => loop(count));
}
