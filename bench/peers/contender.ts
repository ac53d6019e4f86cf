/**
 * One way to make numbers, as the rounds call it. Each has a loop of its own, compiled from a text of its own: a loop that all
 * shared would see many functions at one call, and would be slower than that of any importer, which knows one.
 */
export interface Contender {
  readonly name: string;
  /** The package that it is, for the table of versions; none for what Node or this project brings. */
  readonly package?: string;
  /** Numbers are made in multiples of this. Default 1. */
  readonly batchCount?: number;
  /**
   * Makes `count` numbers and puts them into `kept`, whose length is a power of two, round and round. Those who make many at a time
   * keep the last of what they made, as it is.
   */
  readonly keep: (kept: unknown[], count: number) => void | Promise<void>;
  /** As `keep`, but all of them, into an array that has room for them. */
  readonly collect: (room: unknown[], count: number) => void | Promise<void>;
  /** Makes `count` numbers and looks at every character: a text that was only strung together is put together here. */
  readonly read: (count: number) => number | Promise<number>;
  /** How often the maker has thrown until now and was called again; undefined where it never does. */
  readonly throwCount?: () => number;
}

type More = Pick<Contender, "package" | "throwCount">;

/** A contender that makes one text at a call. */
export function oneByOne(name: string, make: () => string, more: More = {}): Contender {
  return {
    name,
    collect: (room, count) => {
      for (let i = 0; i < count; i++) room[i] = make();
    },
    keep: compiled(
      name,
      make,
      "(kept, count) => { const mask = kept.length - 1; for (let i = 0; i < count; i++) kept[i & mask] = make(); }",
    ),
    read: compiled(
      name,
      make,
      `(count) => {
        let sum = 0;
        for (let i = 0; i < count; i++) {
          const text = make();
          for (let place = 0; place < text.length; place++) sum += text.charCodeAt(place);
        }
        return sum;
      }`,
    ),
    ...more,
  };
}

/** A contender that makes `batchCount` texts at a call that is waited for. */
export function inBatches(
  name: string,
  batchCount: number,
  make: () => Promise<readonly string[]>,
  more: More = {},
): Contender {
  return {
    name,
    batchCount,
    collect: async (room, count) => {
      for (let i = 0; i < count; ) for (const text of await make()) room[i++] = text;
    },
    keep: compiled(
      name,
      make,
      `async (kept, count) => { for (let i = 0; i < count; i += ${batchCount}) kept[0] = await make(); }`,
    ),
    read: compiled(
      name,
      make,
      `async (count) => {
        let sum = 0;
        for (let i = 0; i < count; ) {
          for (const text of await make()) {
            for (let place = 0; place < text.length; place++) sum += text.charCodeAt(place);
            i++;
          }
        }
        return sum;
      }`,
    ),
    ...more,
  };
}

/** The name stands in the text, or V8 would hand out the same compiled function to all. */
function compiled<T>(name: string, make: unknown, loop: string): T {
  return new Function("make", `"use strict"; /* ${name} */ return ${loop};`)(make) as T;
}
