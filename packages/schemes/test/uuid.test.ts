/** UUIDs: their vectors, what is generated of them and what is only read. */
import { describe, expect, test } from "vitest";
import type { Values } from "../src/index.js";
import { uuid } from "../src/schemes/uuid.js";
import { contextWith, draws, fieldsOf, generated, mustMatch, vectorsOf } from "./helpers.js";

describe("a UUID", () => {
  const { vectors } = vectorsOf<{
    readonly vectors: readonly {
      readonly in: { readonly kind: string; readonly random16?: string };
      readonly uuid: string;
      readonly int: string;
      readonly base62: string;
      readonly version: number | null;
      readonly variant: string;
      readonly v1?: {
        readonly time100ns: string;
        readonly clockSeq: number;
        readonly node: string;
        readonly timeLow8: string;
      };
    }[];
  }>("uuid");
  const ofKind = (kind: string) => vectors.filter((vector) => vector.in.kind === kind);

  test("the UUID scheme parses and formats the 23 vectors, also in base62 and in upper case", () => {
    expect(vectors).toHaveLength(23);
    for (const { uuid: text, int, base62, version, variant } of vectors) {
      const parsed = mustMatch(uuid.parse(text));
      expect(parsed).toMatchObject({ number: BigInt(int), encoding: "lower case", otherReadings: [] });
      expect(parsed.notes.variant).toBe(variant);
      expect(parsed.notes.version).toMatch(version === null ? /^none, the nil UUID$/ : new RegExp(`^${version}, `));
      expect(uuid.format(parsed.values)).toBe(text);
      expect(uuid.encodings(parsed.values)).toEqual({
        "lower case": text,
        base62,
        "upper case": text.toUpperCase(),
      });
      expect(fieldsOf(uuid, base62)).toEqual(parsed.values);
      expect(fieldsOf(uuid, text.toUpperCase())).toEqual(parsed.values);
    }
  });

  test("a UUID is generated as version 4 from 122 random bits", () => {
    expect(ofKind("v4")).toHaveLength(10);
    for (const { in: given, uuid: text } of ofKind("v4")) {
      const bits = BigInt(`0x${given.random16}`);
      const part = (shift: number, width: number) => Number((bits >> BigInt(shift)) & ((1n << BigInt(width)) - 1n));
      const random = draws([part(96, 32), part(80, 16), part(64, 12), part(48, 14), part(0, 48)]);
      expect(generated(uuid, contextWith({ random }))).toBe(text);
    }
  });

  test("a UUID of version 1 shows time, clock sequence and node", () => {
    expect(ofKind("v1")).toHaveLength(10);
    for (const { uuid: text, v1 } of ofKind("v1")) {
      const { values, timeMs, notes } = mustMatch(uuid.parse(text));
      expect(values.clockSequence).toBe(v1?.clockSeq);
      expect(hex(values, "node", 12)).toBe(v1?.node);
      expect(hex(values, "timeLow", 8)).toBe(v1?.timeLow8);
      expect(notes["time in 100 ns since 1582-10-15"]).toBe(v1?.time100ns);
      expect(notes["MAC address"]?.replaceAll(":", "")).toBe(v1?.node);
      const since1582 = BigInt(v1?.time100ns as string) / 10_000n;
      expect(BigInt(timeMs as number)).toBe(since1582 + BigInt(Date.UTC(1582, 9, 15)));
    }
  });

  test("a UUID of another version or variant has no time", () => {
    for (const { uuid: text } of vectors.filter((vector) => vector.in.kind !== "v1")) {
      expect(mustMatch(uuid.parse(text)).timeMs).toBeUndefined();
    }
    expect(mustMatch(uuid.parse("99f73215-41a5-1808-cedb-0dc1600a2007"))).toMatchObject({
      notes: { variant: "reserved for Microsoft compatibility" },
    });
    expect(mustMatch(uuid.parse("ffffffff-ffff-ffff-ffff-ffffffffffff"))).toMatchObject({
      notes: { variant: "reserved for future definition" },
    });
  });

  test.each([
    "00000000000000000000000000000000",
    "{00000000-0000-0000-0000-000000000000}",
    "00000000-0000-0000-0000-00000000000",
    "00000000-0000-0000-0000-000000000000\n",
    "aB000000-0000-0000-0000-000000000000",
    "zzzzzzzzzzzzzzzzzzzzzz",
    "000000000000000000000",
  ])("the UUID scheme does not match %j", (text) => {
    expect(uuid.parse(text)).toMatchObject({ matches: false });
  });
});

function hex(values: Values, name: string, width: number): string {
  return Number(values[name]).toString(16).padStart(width, "0");
}
