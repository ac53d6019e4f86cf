/**
 * UUIDs of RFC 4122 and 9562: of `uuid` version 4 is generated, all others are only read. The fields are those of version 1, whose time has three parts; in
 * other versions they are only places.
 */
import { defineScheme } from "../define-scheme.js";
import { BASE16, base62, type EncodingRule, inDigits } from "../encodings.js";
import type { Values } from "../fields.js";

const RFC_4122 = 2;

const ENCODINGS = [
  hyphenated("lower case", (text) => text),
  base62("base62", 22),
  hyphenated("upper case", (text) => text.toUpperCase()),
] as const;

export const uuid = defineScheme({
  name: "uuid",
  title: "UUID, version 4 when generated",
  fields: [
    { name: "timeLow", width: { bits: 32 }, source: { kind: "random", from: 0, to: 2 ** 32 - 1 } },
    { name: "timeMid", width: { bits: 16 }, source: { kind: "random", from: 0, to: 2 ** 16 - 1 } },
    { name: "version", width: { bits: 4 }, source: { kind: "fixed", value: 4, others: "read" } },
    { name: "timeHigh", width: { bits: 12 }, source: { kind: "random", from: 0, to: 2 ** 12 - 1 } },
    { name: "variant", width: { bits: 2 }, source: { kind: "fixed", value: RFC_4122, others: "read" } },
    { name: "clockSequence", width: { bits: 14 }, source: { kind: "random", from: 0, to: 2 ** 14 - 1 } },
    { name: "node", width: { bits: 48 }, source: { kind: "random", from: 0, to: 2 ** 48 - 1 } },
  ],
  encodings: ENCODINGS,
  timeMs: (values) => {
    const units = time100ns(values);
    return units === undefined ? undefined : Number(units / UNITS_IN_MS) - GREGORIAN_BEFORE_1970_MS;
  },
  notes: (values, number) => ({ ...versionOf(values, number), variant: variantOf(values), ...timeAndNodeOf(values) }),
});

/** Of RFC 9562, for numbers that sort by time; within a millisecond by its method 2, a counter that starts at random. */
export const uuidv7 = defineScheme({
  name: "uuidv7",
  title: "UUID of version 7: milliseconds, then random bits",
  fields: [
    { name: "time", width: { bits: 48 }, source: { kind: "clock", unitMs: 1, epochMs: 0 } },
    { name: "version", width: { bits: 4 }, source: { kind: "fixed", value: 7, others: "rejected" } },
    { name: "randomA", width: { bits: 12 }, source: { kind: "random", from: 0, rises: true } },
    { name: "variant", width: { bits: 2 }, source: { kind: "fixed", value: RFC_4122, others: "rejected" } },
    { name: "randomB", width: { bits: 62 }, source: { kind: "random", from: 0, rises: true } },
  ],
  encodings: ENCODINGS,
});

/** From 1582-10-15, when the Gregorian calendar began, to 1970. */
const GREGORIAN_BEFORE_1970_MS = 12_219_292_800_000;
const UNITS_IN_MS = 10_000n;

const VERSIONS: Readonly<Record<number, string>> = {
  1: "1, of time and node",
  2: "2, of time, node and a local number",
  3: "3, the MD5 of a name",
  4: "4, random",
  5: "5, the SHA-1 of a name",
  6: "6, of time and node, in the order of time",
  7: "7, of time and random bits",
  8: "8, of its maker's own rule",
};

function versionOf({ version, variant }: Values, number: bigint): Record<string, string> {
  if (number === 0n) return { version: "none, the nil UUID" };
  return variant === RFC_4122 ? { version: VERSIONS[Number(version)] ?? String(version) } : {};
}

/** The first one, two or three bits; the third is the greatest of the next field. */
function variantOf({ variant, clockSequence }: Values): string {
  if (Number(variant) < RFC_4122) return "reserved for NCS compatibility";
  if (variant === RFC_4122) return "specified in RFC 4122";
  return Number(clockSequence) < 2 ** 13 ? "reserved for Microsoft compatibility" : "reserved for future definition";
}

function time100ns({ version, variant, timeHigh, timeMid, timeLow }: Values): bigint | undefined {
  if (version !== 1 || variant !== RFC_4122) return undefined;
  return (BigInt(timeHigh as number) << 48n) | (BigInt(timeMid as number) << 32n) | BigInt(timeLow as number);
}

function timeAndNodeOf(values: Values): Record<string, string> {
  const units = time100ns(values);
  if (units === undefined) return {};
  const mac = inDigits(BigInt(values.node as number), BASE16, 12).replace(/..(?!$)/g, "$&:");
  return { "time in 100 ns since 1582-10-15": String(units), "MAC address": mac };
}

function hyphenated(name: string, cased: (text: string) => string): EncodingRule {
  const shape = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
  return {
    name,
    form: "own",
    looksLike: "32 hex digits in groups of 8-4-4-4-12, all of one case",
    write: (number) => cased(inDigits(number, BASE16, 32).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")),
    read: (text) => (shape.test(text) ? [BigInt(`0x${text.replaceAll("-", "")}`)] : []),
  };
}
