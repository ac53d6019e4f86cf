/** The judgement on a restart, as a table: one thing other than it was is enough for a doubt. */
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hasLeapt, type Present, type RestartMark, restartMarkOf, restartOf } from "../src/guard/adopt.js";
import { type NamespaceState, PHASES, storedFields } from "../src/guard/record.js";
import { parseStoreId, type StoreIdFields } from "../src/guard/store-id.js";
import { RECEIPT_KEY, storeIdFrom } from "./commands-for-test.js";

const EPS_MS = 2_000;
const storeId = storeIdFrom(5);
const record: NamespaceState = {
  namespace: "main",
  storeId,
  id: parseStoreId(storeId) as StoreIdFields,
  version: 1,
  highWaterMark: 700,
  changedAtMs: 1_790_000_000_000,
  epoch: `${randomUUID()}:embedded:0`,
  generation: 12,
  phase: PHASES.open,
  nodeCount: 1,
  receiptKey: RECEIPT_KEY,
  seal: "-",
};
const present: Present = { bootId: "boot-1", clockOffsetMs: 1_789_000_000_000 };
const mark = restartMarkOf(record, storedFields(record).k, present);

describe("a restart", () => {
  test("is unbroken when the mark says of the record all that it says of itself", () => {
    expect(restartOf(mark, record, present, EPS_MS)).toBe("unbroken");
  });

  test("is a doubt without a mark, and on a machine that does not tell its boots", () => {
    expect(restartOf(undefined, record, present, EPS_MS)).toBe("no_mark");
    expect(restartOf(mark, record, undefined, EPS_MS)).toBe("no_mark");
  });

  test.each<[string, Partial<Present>]>([
    ["other_boot", { bootId: "boot-2" }],
    ["clock_leapt", { clockOffsetMs: present.clockOffsetMs + EPS_MS + 1 }],
    ["clock_leapt", { clockOffsetMs: present.clockOffsetMs - EPS_MS - 1 }],
    ["clock_leapt", { clockOffsetMs: Number.NaN }],
    ["unbroken", { clockOffsetMs: present.clockOffsetMs + EPS_MS }],
  ])("is judged %s with the machine at %o", (restart, changed) => {
    expect(restartOf(mark, record, { ...present, ...changed }, EPS_MS)).toBe(restart);
  });

  test.each<[string, Partial<NamespaceState>]>([
    ["an older mark", { highWaterMark: 699 }],
    ["a later mark", { highWaterMark: 701 }],
    ["another version", { version: 0 }],
    ["another generation", { generation: 11 }],
    ["another store id", { storeId: storeIdFrom(5) }],
    ["another time", { changedAtMs: record.changedAtMs - 1 }],
    ["another epoch", { epoch: `${randomUUID()}:embedded:0` }],
    ["another namespace", { namespace: "lists" }],
    ["another seal", { seal: "forked" }],
    ["another receipt key", { receiptKey: "00".repeat(32) }],
  ])("is a doubt when the record has %s", (_, changed) => {
    expect(restartOf(mark, { ...record, ...changed }, present, EPS_MS)).toBe("other_record");
  });

  test.each<[string, number]>([
    ["claimed", PHASES.claimed],
    ["sealed", PHASES.sealed],
  ])("of a record that is %s is one, however well the mark agrees", (_, phase) => {
    const closed = { ...record, phase };
    expect(restartOf(restartMarkOf(closed, storedFields(closed).k, present), closed, present, EPS_MS)).toBe("not_open");
  });

  test.each(["storeId", "namespace", "version", "mark", "generation", "checksum"] as const)(
    "is a doubt when the mark alone has another %s",
    (name) => {
      const changed = { ...mark, [name]: typeof mark[name] === "number" ? mark[name] + 1 : "x" } as RestartMark;
      expect(restartOf(changed, record, present, EPS_MS)).toBe("other_record");
    },
  );
});

describe("a leap of the clock", () => {
  test("is seen in both directions, beyond eps and not within it", () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e13, max: 1e13 }), fc.integer({ min: -1e7, max: 1e7 }), (before, byMs) => {
        expect(hasLeapt(before, before + byMs, EPS_MS)).toBe(Math.abs(byMs) > EPS_MS);
      }),
    );
  });
});
