/** An allowance: so many runs at once, and so many a second after that; in memory that clients can't fill. */
import { expect, test } from "vitest";
import { TokenBuckets } from "../src/limits/lease-limits.js";

const ALLOWANCE = { atOnce: 10, perSecond: 4 };
const START_MS = 1_234_567.89;

function bucketsOf(keyCountMax = 100) {
  return new TokenBuckets(ALLOWANCE, keyCountMax);
}

test("an allowance is the whole burst at once, and then its rate", () => {
  const buckets = bucketsOf();
  expect(buckets.available("a", START_MS)).toBe(10);
  buckets.take("a", 10, START_MS);
  expect(buckets.available("a", START_MS)).toBe(0);
  expect(buckets.available("a", START_MS + 249)).toBe(0);
  expect(buckets.available("a", START_MS + 250)).toBe(1);
  expect(buckets.available("a", START_MS + 1_000)).toBe(4);
  expect(buckets.available("a", START_MS + 3_600_000)).toBe(10);
});

test("an allowance returns to the millisecond when one run may be taken again", () => {
  for (const perSecond of [1, 3, 7, 16, 1_000]) {
    const buckets = new TokenBuckets({ atOnce: 5, perSecond }, 10);
    buckets.take("a", 5, START_MS);
    const waitMs = buckets.untilMs("a", 1, START_MS);
    expect(waitMs).toBe(Math.ceil(1_000 / perSecond));
    expect(buckets.available("a", START_MS + waitMs), `${perSecond} a second`).toBe(1);
    if (waitMs > 1) expect(buckets.available("a", START_MS + waitMs - 1)).toBe(0);
  }
});

test("an allowance grows by what is given back, and is never more than the burst", () => {
  const buckets = bucketsOf();
  buckets.take("a", 8, START_MS);
  buckets.take("a", -3, START_MS);
  expect(buckets.available("a", START_MS)).toBe(5);
  buckets.take("a", -5, START_MS + 10_000);
  expect(buckets.available("a", START_MS + 10_000)).toBe(10);
});

test("buckets keep the keys that owe something, and forget the others", () => {
  const buckets = bucketsOf(3);
  for (const key of ["a", "b", "c"]) buckets.take(key, 1, START_MS);
  expect(buckets.keyCount).toBe(3);
  expect(buckets.available("d", START_MS + 2_000)).toBe(10);
  expect(buckets.keyCount).toBe(0);
});

test("buckets keep their keys when a client invents new ones: these share one bucket", () => {
  const buckets = bucketsOf(3);
  for (const key of ["a", "b", "c"]) buckets.take(key, 4, START_MS);
  for (let index = 0; index < 1_000; index++) {
    const key = `invented-${index}`;
    buckets.take(key, Math.min(1, buckets.available(key, START_MS)), START_MS);
  }
  expect(buckets.keyCount).toBe(4);
  for (const key of ["a", "b", "c"]) expect(buckets.available(key, START_MS)).toBe(6);
  expect(buckets.available("one more", START_MS)).toBe(0);
});
