/** Builds a scheme from its declaration: the one place where fields, encodings, generating, parsing and facts meet. */
import type { EncodingRule } from "./encodings.js";
import { factsOf } from "./facts.js";
import { type Field, type FieldOf, fieldsOfKind, greatestOf, joinValues, splitNumber, type Values } from "./fields.js";
import { generatorOf } from "./generating.js";
import { type Reading, type Scheme, SchemeError } from "./scheme.js";

/** What a scheme is made from. */
export interface Declaration extends Pick<Scheme, "name" | "title" | "fields"> {
  /** The one to use today first; then others, among them those that were published and were wrong. */
  readonly encodings: readonly [EncodingRule, ...EncodingRule[]];
  /** The greatest number, where it is less than the fields could write. */
  readonly greatest?: bigint;
  /** A fixed permutation of the numbers, between the fields and what is written. */
  readonly shuffle?: { shuffled(number: bigint): bigint; unshuffled(number: bigint): bigint };
  /** Changes generated values where generating differs from what the fields declare. */
  readonly adjust?: (values: Values) => Values;
  /** Where the time is not in one clock field: milliseconds since 1970, if this number has one. */
  readonly timeMs?: (values: Values) => number | undefined;
  readonly notes?: (values: Values, number: bigint) => Readonly<Record<string, string>>;
}

const UNSHUFFLED = { shuffled: (number: bigint) => number, unshuffled: (number: bigint) => number };

/**
 * Makes a scheme from the declaration of its fields: generating, parsing and every figure of the comparison follow from them.
 * @example
 * const invoices = defineScheme({
 *   name: "invoices",
 *   title: "Day and count",
 *   fields: [
 *     { name: "day", width: { bits: 16 }, source: { kind: "clock", unitMs: 86_400_000, epochMs: 0 } },
 *     { name: "count", width: { bits: 16 }, source: { kind: "sequence", within: "clock unit", first: 1 } },
 *   ],
 *   encodings: [base62("base62", 6)],
 * });
 * invoices.format({ day: 20_000, count: 7 }); // "1Qhe9H"
 * invoices.parse("1Qhe9H").matches; // true
 * invoices.facts.perSecond; // 0.76 numbers a second
 */
export function defineScheme(declaration: Declaration): Scheme {
  const { name, title, fields, encodings, shuffle = UNSHUFFLED, adjust = (values) => values } = declaration;
  const greatest = declaration.greatest ?? greatestOf(fields);
  const generateStep = generatorOf(name, fields);
  const write = (number: bigint): string => encodings[0].write(number) as string;
  const tooGreat = (number: bigint) => `${number} is beyond the greatest number, ${greatest}`;

  const numberOf = (values: Values): bigint => {
    const number = shuffle.shuffled(joinValues(fields, values));
    if (number <= greatest) return number;
    throw new RangeError(tooGreat(number));
  };

  return {
    name,
    title,
    fields,
    generate: (context) => {
      const step = generateStep(context);
      if (step.outcome === "wait") return step;
      const values = adjust(step.values);
      const number = shuffle.shuffled(joinValues(fields, values));
      if (number <= greatest) return { outcome: "generated", text: write(number), values };
      throw new SchemeError("number_space_exhausted", tooGreat(number));
    },
    parse: parserOf(declaration, greatest, shuffle.unshuffled),
    format: (values) => write(numberOf(values)),
    encodings: (values) => {
      const number = numberOf(values);
      const written = encodings.map((encoding) => [encoding.name, encoding.write(number)] as const);
      return Object.fromEntries(written.filter((entry): entry is [string, string] => entry[1] !== undefined));
    },
    facts: factsOf(fields, greatest, write(greatest).length, declaration.shuffle !== undefined),
    withEpoch: (epochMs) => {
      const isChosen = ({ source }: Field) => source.kind === "clock" && source.isChosen === true;
      if (!fields.some(isChosen)) return undefined;
      const moved = (field: Field): Field => ({ ...field, source: { ...(field as FieldOf<"clock">).source, epochMs } });
      return defineScheme({ ...declaration, fields: fields.map((field) => (isChosen(field) ? moved(field) : field)) });
    },
  };
}

/**
 * Returns the `parse` of this declaration: it finds every number that a text may mean, the first of them in the encoding of today.
 * The reason never repeats the text, which is untrusted.
 */
function parserOf(
  { encodings, fields, notes = () => ({}), timeMs: timeMsOf = clockTimeMs(fields) }: Declaration,
  greatest: bigint,
  unshuffled: (number: bigint) => bigint,
): Scheme["parse"] {
  const looks = new Set(encodings.map(({ looksLike }) => looksLike));
  return (text) => {
    const readings = new Map<bigint, Reading>();
    let nearReason: string | undefined;
    for (const encoding of encodings) {
      for (const number of encoding.read(text)) {
        if (readings.has(number)) continue;
        if (number > greatest) {
          nearReason = `as ${encoding.name} it is beyond the greatest number, ${encoding.write(greatest)}`;
          continue;
        }
        if (encoding.write(number) !== text) continue;
        const values = splitNumber(fields, unshuffled(number));
        const mismatch = fixedFieldMismatch(fields, values);
        if (mismatch !== undefined) {
          nearReason = mismatch;
          continue;
        }
        const timeMs = timeMsOf(values);
        const time = timeMs === undefined ? {} : { timeMs };
        const { name } = encoding;
        const isOwn = encodings.some(({ form, write }) => form === "own" && write(number) === text);
        const form = isOwn ? "own" : encoding.form;
        readings.set(number, { values, number, encoding: name, form, ...time, notes: notes(values, number) });
      }
    }
    const [first, ...otherReadings] = readings.values();
    if (first !== undefined) return { matches: true, ...first, otherReadings };
    const reason = nearReason ?? `it is none of: ${[...looks].join("; ")}`;
    return { matches: false, isNear: nearReason !== undefined, reason };
  };
}

function fixedFieldMismatch(fields: readonly Field[], values: Values): string | undefined {
  for (const { name, source } of fieldsOfKind(fields, "fixed")) {
    if (source.others === "read" || Number(values[name]) === source.value) continue;
    return `${name} is ${values[name]}, and ${source.value} in every number`;
  }
  return undefined;
}

function clockTimeMs(fields: readonly Field[]): (values: Values) => number | undefined {
  const [clock] = fieldsOfKind(fields, "clock");
  if (clock === undefined) return () => undefined;
  const { epochMs, unitMs } = clock.source;
  return (values) => epochMs + Number(values[clock.name]) * unitMs;
}
