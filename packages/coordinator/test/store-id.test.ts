/** The store id: what is in it, and which texts are none. Guarantees: G13 (docs/guarantees.md). */

import { ledgerIdOf } from "@callnumber/protocol/api";
import { VERSION_MAX } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { newStoreId, nextStoreId, parseStoreId, RATE_MAX } from "../src/guard/store-id.js";

const UUID = "00000000-0000-4000-8000-000000000001";
const MADE_AT_MS = 1_790_000_000_000;

test.each([
  ["the first", { firstVersion: 0, firstRun: 1, rate: 1 }],
  ["one with another first run, of a later version", { firstVersion: 3, firstRun: 77, rate: 2 }],
  ["the last version, the greatest rate", { firstVersion: VERSION_MAX, firstRun: 1, rate: RATE_MAX }],
])("a store id (%s) is read back", (_, fields) => {
  const id = { ...fields, initializedAtMs: MADE_AT_MS };
  expect(parseStoreId(newStoreId(id, UUID))).toEqual(id);
});

test("the id of a move keeps the UUID and the rate", () => {
  const before = newStoreId({ firstRun: 9, initializedAtMs: MADE_AT_MS, rate: 5 }, UUID);
  const after = nextStoreId(before, 4, MADE_AT_MS + 1);
  expect(after).toBe(`${UUID}.${ledgerIdOf(4, 1)}.${MADE_AT_MS + 1}.5`);
  expect(() => nextStoreId("no id", 4, MADE_AT_MS)).toThrow('broken invariant: "no id" is not a store id');
});

const id = (ledgerId: number, rate: number) => `${UUID}.${ledgerId}.${MADE_AT_MS}.${rate}`;
test.each([
  ["text before it", `x${id(1, 2)}`],
  ["text after it", `${id(1, 2)}x`],
  ["run 0", id(0, 2)],
  ["run 0 of a later version", id(ledgerIdOf(2, 0), 2)],
  ["a version after the last", id(ledgerIdOf(VERSION_MAX + 1, 1), 2)],
  ["a version after the last, and rate 0", id(ledgerIdOf(VERSION_MAX + 1, 1), 0)],
  ["rate 0", id(1, 0)],
  ["a rate above the greatest", id(1, RATE_MAX + 1)],
  ["a UUID in capitals", id(1, 2).replace("-4000-", "-400A-")],
  ["nothing", ""],
])("%s is not a store id", (_, text) => expect(parseStoreId(text)).toBeUndefined());
