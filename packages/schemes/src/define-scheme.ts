/** Builds a scheme from its declaration: the one place where layout, encodings, minting, parsing and facts meet. */
import type { EncodingRule } from "./encodings.js";
import { factsOf } from "./facts.js";
import type { Field } from "./field.js";
import { greatestOf, joinValues, type PlacedField, placeFields, splitNumber } from "./layout.js";
import { minterOf } from "./minting.js";
import { type Encoded, type Parsed, type Reading, type Scheme, SchemeError, type Values } from "./scheme.js";

export interface Declaration {
  /** Lower case, with hyphens. Never changes. */
  readonly name: string;
  readonly title: string;
  /** Most significant first. */
  readonly fields: readonly Field[];
  /** The one to use today first; then others, among them those that were published and were wrong. */
  readonly encodings: readonly [EncodingRule, ...EncodingRule[]];
  /** The greatest number, where it is less than the fields could write. */
  readonly greatest?: bigint;
  /** A fixed permutation of the numbers, between the fields and what is written. */
  readonly shuffle?: { shuffled(number: bigint): bigint; unshuffled(number: bigint): bigint };
  /** Changes minted values where minting differs from what the fields declare. */
  readonly adjust?: (values: Values) => Values;
  /** Where the time is not in one clock field: milliseconds since 1970, if this number has one. */
  readonly timeMs?: (values: Values) => number | undefined;
  readonly notes?: (values: Values, number: bigint) => Readonly<Record<string, string>>;
}

export function defineScheme(declaration: Declaration): Scheme {
  const { name, title, fields, encodings, adjust = (values) => values } = declaration;
  const placed = placeFields(fields);
  const greatest = declaration.greatest ?? greatestOf(placed);
  const shuffled = declaration.shuffle?.shuffled ?? ((number) => number);
  const mintStep = minterOf(name, fields);
  const [today] = encodings;
  const write = (number: bigint): string => today.write(number) as string;

  const numberOf = (values: Values): bigint => {
    const number = shuffled(joinValues(placed, values));
    if (number <= greatest) return number;
    throw new RangeError(`${number} is beyond the greatest number, ${greatest}`);
  };

  return {
    name,
    title,
    fields,
    mint: (context) => {
      const step = mintStep(context);
      if (step.outcome === "wait") return step;
      const values = adjust(step.values);
      const number = shuffled(joinValues(placed, values));
      if (number <= greatest) return { outcome: "minted", text: write(number), values };
      throw new SchemeError("number_space_exhausted", `${number} is beyond the greatest number, ${greatest}`);
    },
    parse: parserOf(declaration, placed, greatest),
    format: (values) => write(numberOf(values)),
    encodings: (values) => {
      const number = numberOf(values);
      return encodings.flatMap((encoding): Encoded[] => {
        const text = encoding.write(number);
        return text === undefined ? [] : [{ name: encoding.name, text }];
      });
    },
    facts: factsOf(fields, {
      greatest,
      characters: write(greatest).length,
      isShuffled: declaration.shuffle !== undefined,
    }),
  };
}

/**
 * Returns the `parse` of this declaration: it finds every number that a text may mean, the first of them in the encoding of today.
 * Never throws, and the reason never repeats the text, which is untrusted.
 */
function parserOf(
  declaration: Declaration,
  placed: readonly PlacedField[],
  greatest: bigint,
): (text: string) => Parsed {
  const { encodings, fields, shuffle, notes } = declaration;
  const timeMsOf = declaration.timeMs ?? clockTimeMs(fields);
  const looks = new Set(encodings.map(({ looksLike }) => looksLike));

  const readingOf = (number: bigint, values: Values, encoding: string): Reading => {
    const timeMs = timeMsOf(values);
    return {
      values,
      number,
      encoding,
      ...(timeMs === undefined ? {} : { timeMs }),
      notes: notes?.(values, number) ?? {},
    };
  };

  return (text) => {
    const readings = new Map<bigint, Reading>();
    let reason = `it is none of: ${[...looks].join("; ")}`;
    for (const encoding of encodings) {
      for (const number of encoding.read(text)) {
        if (readings.has(number)) continue;
        if (number > greatest) {
          reason = `as ${encoding.name} it is beyond the greatest number, ${encoding.write(greatest)}`;
          continue;
        }
        if (encoding.write(number) !== text) continue;
        const values = splitNumber(placed, shuffle === undefined ? number : shuffle.unshuffled(number));
        const mismatch = fixedFieldMismatch(fields, values);
        if (mismatch === undefined) readings.set(number, readingOf(number, values, encoding.name));
        else reason = mismatch;
      }
    }
    const [first, ...otherReadings] = readings.values();
    return first === undefined ? { matches: false, reason } : { matches: true, ...first, otherReadings };
  };
}

function fixedFieldMismatch(fields: readonly Field[], values: Values): string | undefined {
  for (const { name, source } of fields) {
    if (source.kind !== "fixed" || source.others === "read") continue;
    if (Number(values[name]) !== source.value) return `${name} is ${values[name]}, and ${source.value} in every number`;
  }
  return undefined;
}

function clockTimeMs(fields: readonly Field[]): (values: Values) => number | undefined {
  for (const { name, source } of fields) {
    if (source.kind === "clock") return (values) => source.epochMs + Number(values[name]) * source.unitMs;
  }
  return () => undefined;
}
