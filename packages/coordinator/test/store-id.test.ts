/** The store id: what is in it, and which texts are none. Guarantees: G13 (docs/guarantees.md). */

import { ledgerIdOf } from "@callnumber/protocol/api";
import { VERSION_MAX } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import {
  byMoves,
  doneSeal,
  isDoneSeal,
  isMovedFrom,
  isMovedSeal,
  latestFirst,
  MOVED_TEXT_LENGTH_MAX,
  movedSeal,
  movedToIn,
  newStoreId,
  nextStoreId,
  parseStoreId,
  RATE_MAX,
  textOfMove,
  urlOfPlace,
} from "../src/guard/store-id.js";

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

test("a store was moved from those of its UUID that began earlier, and from no other", () => {
  const [first, second, third] = [0, 1, 2].map((firstVersion) => {
    return newStoreId({ firstVersion, firstRun: 1, initializedAtMs: MADE_AT_MS, rate: 2 }, UUID);
  }) as [string, string, string];
  const other = newStoreId({ firstVersion: 5, firstRun: 1, initializedAtMs: MADE_AT_MS, rate: 2 });
  const moves = [first, second, third, other, `${UUID}.x`].map((one) =>
    [first, second, third].map((to) => isMovedFrom(one, to)),
  );
  expect(moves).toEqual([
    [false, true, true],
    [false, false, true],
    [false, false, false],
    [false, false, false],
    [false, false, false],
  ]);
  expect(isMovedFrom(first, `${UUID}.x`)).toBe(false);
  const stores = [first, third, second].map((storeId) => ({ storeId }));
  expect(stores.sort(byMoves).map(({ storeId }) => storeId)).toEqual([third, second, first]);
  expect(byMoves({ storeId: first }, { storeId: other })).toBe(0);
});

test("the seal of a move is read back, and marked once as done", () => {
  const storeId = newStoreId({ firstRun: 1, initializedAtMs: MADE_AT_MS, rate: 2 }, UUID);
  const seal = movedSeal({ storeId, place: "redis://there/0?at=@" });
  expect([isMovedSeal(seal), isDoneSeal(seal)]).toEqual([true, false]);
  expect(movedToIn(textOfMove(seal))).toEqual({ storeId, place: "redis://there/0?at=@" });
  const done = doneSeal(seal);
  expect([isMovedSeal(done), isDoneSeal(done), doneSeal(done)]).toEqual([true, true, done]);
  expect(textOfMove(done)).toBe(textOfMove(seal));
  expect([isMovedSeal("moved"), textOfMove("moved"), isDoneSeal("moved done")]).toEqual([true, "", true]);
  const longest = "x".repeat(MOVED_TEXT_LENGTH_MAX);
  expect(textOfMove(`moved ${longest}`)).toBe(longest);
  for (const none of [
    "",
    "-",
    "forked",
    "moved ",
    `moved ${longest}x`,
    "moved a b",
    " moved",
    "moved é",
    "forked done",
  ]) {
    expect([isMovedSeal(none), isDoneSeal(none), textOfMove(none)], none).toEqual([false, false, ""]);
  }
  for (const none of ["", "nowhere", `x${storeId}@there`]) expect(movedToIn(none)).toBeUndefined();
});

test("of the moves of a store the latest counts: by the first run of the new one, then by when that was made", () => {
  const move = (firstVersion: number, afterMs: number) => {
    const fields = { firstVersion, firstRun: 1, initializedAtMs: MADE_AT_MS + afterMs, rate: 2 };
    return `${newStoreId(fields, UUID)}@there`;
  };
  const sorted = [move(2, 0), move(1, 9), move(1, 3), "unknown"];
  expect(latestFirst([...sorted, ...sorted].reverse())).toEqual(sorted);
  expect(latestFirst(sorted)).toEqual(sorted);
});

test("a place is shown as its URL, and one that is none as it is", () => {
  expect(urlOfPlace("sqlite:/a%20b")).toBe("sqlite:/a b");
  expect(urlOfPlace("50%")).toBe("50%");
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
