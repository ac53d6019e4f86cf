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
  /** Makes `count` numbers and puts them into `kept`, from its beginning. */
  readonly keep: (kept: unknown[], count: number) => void | Promise<void>;
  /** Makes `count` numbers and looks at every character: a text that was only strung together is put together here. */
  readonly read: (count: number) => number | Promise<number>;
  /** How often the maker has thrown until now and was called again; undefined where it never does. */
  readonly throwCount?: () => number;
}

/** A contender that makes one text at a call. */
export function oneByOne(name: string, make: () => string, more: Partial<Contender> = {}): Contender {
  return {
    name,
    keep: compiled(name, make, "(kept, count) => { for (let i = 0; i < count; i++) kept[i] = make(); }"),
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
  more: Partial<Contender> = {},
): Contender {
  return {
    name,
    batchCount,
    keep: compiled(
      name,
      make,
      `async (kept, count) => {
        for (let i = 0; i < count; ) for (const text of await make()) kept[i++] = text;
      }`,
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
