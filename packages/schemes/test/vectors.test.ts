/** Every reference vector, of each scheme: its fields are encoded in every encoding, each text is parsed back, and what can be generated is. */
import { expect, test } from "vitest";
import { type Values } from "../src/index.js";
import {
  contextWith,
  draws,
  fieldsOf,
  type Given,
  generated,
  readingsOf,
  schemeNamed,
  type Vector,
  vectorsOf,
} from "./helpers.js";

interface Expected {
  readonly values: Values;
  readonly number: string | undefined;
  /** That of today first. */
  readonly encodings: Readonly<Record<string, string | undefined>>;
  readonly timeMs?: number;
  readonly notes?: Readonly<Record<string, string>>;
  /** In which the number is generated, where it is the first of its unit. */
  readonly context?: Given | undefined;
}

const TABLE: readonly (readonly [scheme: string, part: string, count: number, (vector: Vector) => Expected])[] = [
  [
    "call-number",
    "chibrary_3_30_14_final",
    34,
    ({ in: values, number, bits, callNumber, beforeTable20141020 }) => ({
      values,
      number,
      encodings: {
        "call number": callNumber,
        number,
        "before 2014-10-20": beforeTable20141020,
        bits,
        "bits with 0b": `0b${bits}`,
      },
    }),
  ],
  [
    "chibrary-4-16-20",
    "chibrary_4_16_20",
    37,
    ({ in: values, id, base62, base62_2014feb, base64_2007 }) => ({
      values,
      number: id,
      encodings: { base62, base62_2014feb, base64_2007, decimal: id },
    }),
  ],
  [
    "chibrary-3-32-8-4",
    "chibrary_3_32_8_4",
    34,
    ({ in: values, id, base62 }) => ({ values, number: id, encodings: { base62, decimal: id } }),
  ],
  [
    "mysql-13-6-1",
    "mysql_bigint_13_6_1",
    26,
    ({ in: { timeMs, random = 0, server = 0 }, id, padded20, javaString, fitsSignedBigint }) => ({
      values: { time: Number(timeMs), random, server },
      number: id,
      encodings: { decimal: id, "as printed": padded20, "as the code makes it": javaString },
      timeMs: Date.UTC(2011, 0, 1) + Number(timeMs),
      notes: { "signed BIGINT": fitsSignedBigint ? "fits" : "does not fit" },
      context: { node: { server }, random: draws([random]) },
    }),
  ],
  [
    "mysql-11-9",
    "mysql_sql_11_9",
    27,
    ({ in: { seconds = 0, uuidFirst8 }, id, right9 = "", asWritten, fixed20 }) => ({
      values: { seconds, uuid: Number(right9) },
      number: id,
      encodings: {
        fixed20,
        decimal: id,
        "as written": `${seconds}${right9.padStart(9, "0")}`,
        ...(Number(right9) < 1e8 && { "as written, zeros lost": `${seconds}${Number(right9)}` }),
        [right9.length < 9 ? "as written, zeros lost" : "as written"]: asWritten,
      },
      timeMs: 1_293_858_000_000 + seconds * 1_000,
      context: { random: draws([Number(`0x${uuidFirst8}`)]) },
    }),
  ],
  [
    "millis-41-10-13",
    "nonsequential_41_10_13",
    27,
    ({ in: { unixMs, generator = 0, random = 0 }, id, hex, binary = "", signed64 }) => ({
      values: { time: Number(unixMs), generator, random },
      number: id,
      encodings: { decimal: id, signed: signed64, hex: `0x${hex}`, binary: `0b${binary.padStart(64, "0")}` },
      timeMs: Number(unixMs),
      // 0 is never drawn.
      context: random === 0 ? undefined : { node: { given: generator }, random: draws([random - 1]) },
    }),
  ],
  [
    "snowflake-2015",
    "snowflake_1_41_10_12_epoch2015",
    27,
    ({ in: { unixMs, node = 0, sequence = 0 }, sinceEpoch, id, hex }) => ({
      values: { sign: 0, time: Number(sinceEpoch), node, sequence },
      number: id,
      encodings: { decimal: id, hex: `0x${hex}` },
      timeMs: Number(unixMs),
      context: sequence === 0 ? { node: { given: node } } : undefined,
    }),
  ],
  [
    "twitter-snowflake",
    "twitter_snowflake_epoch_1288834974657",
    27,
    ({ in: { unixMs, node = 0, sequence = 0 }, sinceEpoch, datacenter, worker, id, hex }) => ({
      values: { sign: 0, time: Number(sinceEpoch), datacenter: Number(datacenter), worker: Number(worker), sequence },
      number: id,
      encodings: { decimal: id, hex: `0x${hex}` },
      timeMs: Number(unixMs),
      context: sequence === 0 ? { node: { given: node } } : undefined,
    }),
  ],
  [
    "objectid",
    "objectid_4_3_2_3",
    20,
    ({ in: values, id, int, time }) => ({
      values,
      number: int,
      encodings: { hex: id },
      timeMs: Date.parse(time ?? ""),
      context: {
        node: { given: values["machine"] ?? 0, pid: values["pid"] ?? 0 },
        random: draws([values["counter"] ?? 0]),
      },
    }),
  ],
  [
    "random-base62-5",
    "random_base62_5",
    20,
    ({ int, key }) => ({ values: { random: Number(int) }, number: int, encodings: { base62: key } }),
  ],
];

test.each(TABLE)(
  "the vectors of %s are encoded, parsed and generated as published",
  (name, part, count, expectedOf) => {
    const scheme = schemeNamed(name);
    // One number of mysql-13-6-1 is beyond BIGINT UNSIGNED: `mysql.test.ts` has it.
    const vectors = vectorsOf<{ vectors: readonly Vector[] }>(part).vectors.filter(
      ({ fitsUnsignedBigint }) => String(fitsUnsignedBigint) !== "false",
    );
    expect(vectors).toHaveLength(count);
    for (const { values, number, encodings, context, ...rest } of vectors.map(expectedOf)) {
      const [today] = Object.values(encodings) as [string];
      expect(scheme.format(values)).toBe(today);
      expect(scheme.encodings(values)).toEqual(encodings);
      expect(fieldsOf(scheme, today)).toEqual(values);
      const reading = { values, number: BigInt(number ?? -1), ...rest };
      for (const text of Object.values(encodings) as string[]) {
        expect(readingsOf(scheme, text)).toContainEqual(expect.objectContaining(reading));
      }
      // The last millisecond of the unit, which no number of seconds shows.
      const lastMs = name === "objectid" || name === "mysql-11-9" ? 999 : 0;
      if (context !== undefined && rest.timeMs !== undefined)
        expect(generated(scheme, contextWith({ nowMs: rest.timeMs + lastMs, ...context }))).toBe(today);
    }
  },
);

test.each<readonly [string, string, number, (given: Vector["in"]) => Values]>([
  ["chibrary-4-16-20", "chibrary_4_16_20", 3, (given) => given],
  [
    "snowflake-2015",
    "snowflake_1_41_10_12_epoch2015",
    4,
    ({ unixMs, ...given }) => ({ sign: 0, time: Number(unixMs) - Date.UTC(2015, 0, 1), ...given }),
  ],
  ["millis-41-10-13", "nonsequential_41_10_13", 4, ({ unixMs, ...given }) => ({ time: Number(unixMs), ...given })],
])("the invalid vectors of %s are rejected", (name, part, count, valuesIn) => {
  const { invalid } = vectorsOf<{ readonly invalid: readonly Vector["in"][] }>(part);
  expect(invalid).toHaveLength(count);
  for (const given of invalid) {
    expect(() => schemeNamed(name).format(valuesIn(given)), JSON.stringify(given)).toThrow(RangeError);
  }
});
