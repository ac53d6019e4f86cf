/** How a restart is judged: one difference between mark, record and machine is enough for a recovery. */
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type NamespaceState, PHASES, storedFields } from "../src/guard/record.js";
import { hasLeapt, type Present, type RestartMark, restartMarkOf, restartOf } from "../src/guard/restart-decision.js";
import { parseStoreId, type StoreIdFields } from "../src/guard/store-id.js";
import { PROOF_KEY, storeIdFrom } from "./commands-for-test.js";

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
  proofKey: PROOF_KEY,
  seal: "-",
};
const present: Present = { bootId: "boot-1", clockOffsetMs: 1_789_000_000_000, lockChangedNs: "1790000000000000001" };
const mark = restartMarkOf(record, storedFields(record).k, present);

const judged = (found: RestartMark | undefined, of = record, at: Present | undefined = present) =>
  restartOf(found, of, at, EPS_MS);

test("a restart is unbroken when the mark equals the record", () => expect(judged(mark)).toBe("unbroken"));

test("a restart is broken without a mark, and on a machine without boot ids", () => {
  expect([judged(undefined), restartOf(mark, record, undefined, EPS_MS)]).toEqual(["no_mark", "no_mark"]);
});

test.each<[string, Partial<Present>]>([
  ["other_boot", { bootId: "boot-2" }],
  ["clock_leapt", { clockOffsetMs: present.clockOffsetMs + EPS_MS + 1 }],
  ["clock_leapt", { clockOffsetMs: present.clockOffsetMs - EPS_MS - 1 }],
  ["clock_leapt", { clockOffsetMs: Number.NaN }],
  ["lock_changed", { lockChangedNs: "1790000000000000000" }],
  ["unbroken", { clockOffsetMs: present.clockOffsetMs + EPS_MS }],
])("a restart is judged %s with the machine at %o", (restart, changed) => {
  expect(judged(mark, record, { ...present, ...changed })).toBe(restart);
});

test.each<Partial<NamespaceState>>([
  { highWaterMark: 699 },
  { highWaterMark: 701 },
  { version: 0 },
  { generation: 11 },
  { storeId: storeIdFrom(5) },
  { changedAtMs: record.changedAtMs - 1 },
  { epoch: `${randomUUID()}:embedded:0` },
  { namespace: "lists" },
  { seal: "forked" },
  { proofKey: "00".repeat(32) },
])("a restart is broken when the record has %o", (changed) => {
  expect(judged(mark, { ...record, ...changed })).toBe("other_record");
});

test.each(["storeId", "namespace", "version", "highWaterMark", "generation", "checksum"] as const)(
  "a restart is broken when the mark alone has another %s",
  (name) => {
    const changed = { ...mark, [name]: typeof mark[name] === "number" ? mark[name] + 1 : "x" } as RestartMark;
    expect(judged(changed)).toBe("other_record");
  },
);

test.each([PHASES.claimed, PHASES.sealed])("a restart is broken in phase %s, although the mark agrees", (phase) => {
  const closed = { ...record, phase };
  expect(judged(restartMarkOf(closed, storedFields(closed).k, present), closed)).toBe("not_open");
});

test("a leap of the clock is reported in both directions, beyond eps and not within it", () => {
  fc.assert(
    fc.property(fc.integer({ min: -1e13, max: 1e13 }), fc.integer({ min: -1e7, max: 1e7 }), (before, byMs) => {
      expect(hasLeapt(before, before + byMs, EPS_MS)).toBe(Math.abs(byMs) > EPS_MS);
    }),
  );
});
