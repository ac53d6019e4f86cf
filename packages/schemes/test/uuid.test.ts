/** UUIDs and ObjectIds: their vectors, what is minted of them and what is only read. */
import { describe, expect, test } from "vitest";
import type { Values } from "../src/index.js";
import { objectid } from "../src/schemes/snowflakes.js";
import { uuid } from "../src/schemes/uuid.js";
import { contextWith, draws, fieldsOf, minted, mintedStep, mustMatch, vectorsOf } from "./helpers.js";

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

  test("of each of the 23 vectors is read and written, in 22 characters of base62 and in upper case too", () => {
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

  test("of version 4 is minted of 122 random bits", () => {
    expect(ofKind("v4")).toHaveLength(10);
    for (const { in: given, uuid: text } of ofKind("v4")) {
      const bits = BigInt(`0x${given.random16}`);
      const part = (shift: number, width: number) => Number((bits >> BigInt(shift)) & ((1n << BigInt(width)) - 1n));
      const random = draws([part(96, 32), part(80, 16), part(64, 12), part(48, 14), part(0, 48)]);
      expect(minted(uuid, contextWith({ random }))).toBe(text);
    }
  });

  test("of version 1 says when, by which clock sequence and by which node", () => {
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

  test("of another version or another variant has no time", () => {
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
  ])("is not %j", (text) => {
    expect(uuid.parse(text)).toMatchObject({ matches: false });
  });
});

function hex(values: Values, name: string, width: number): string {
  return Number(values[name]).toString(16).padStart(width, "0");
}

describe("an ObjectId", () => {
  const { vectors } = vectorsOf<{
    readonly vectors: readonly {
      readonly in: {
        readonly seconds: number;
        readonly machine: number;
        readonly pid: number;
        readonly counter: number;
      };
      readonly id: string;
    }[];
  }>("objectid_4_3_2_3");

  test("is minted of the second, the machine, the pid and a counter that began anywhere", () => {
    for (const { in: values, id } of vectors) {
      const node = { given: values.machine, pid: values.pid };
      expect(
        minted(objectid, contextWith({ nowMs: values.seconds * 1_000 + 999, node, random: draws([values.counter]) })),
      ).toBe(id);
    }
    expect(() => objectid.mint(contextWith({ node: { pid: 70_000 } }))).toThrow(
      "pid must be a whole number from 0 to 65535, not 70000",
    );
  });

  test("goes round with its counter, over the seconds, also when the clock goes back", () => {
    const context = contextWith({ nowMs: 5_000, random: draws([2 ** 24 - 2]) });
    const counters = [5_000, 5_999, 6_000, 3_000, 6_000].map((at) => {
      context.clock.at = at;
      return mintedStep(objectid.mint(context)).values.counter;
    });
    expect(counters).toEqual([2 ** 24 - 2, 2 ** 24 - 1, 0, 1, 2]);
  });

  test("waits when one second has had all its counters", () => {
    const context = contextWith({ nowMs: 5_000 });
    minted(objectid, context);
    context.memory.set("objectid/made in unit", 2n ** 24n - 1n);
    minted(objectid, context);
    expect(objectid.mint(context)).toEqual({ outcome: "wait", untilMs: 6_000 });
  });
});
