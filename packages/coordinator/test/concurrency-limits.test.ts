/** How many requests a client may have in flight: no client keeps the others out, and a freed slot can be taken again. */
import { expect, test } from "vitest";
import { ConcurrencyLimit } from "../src/http/in-flight-limits.js";

const SLOTS_OF_ONE = 32;

/** Takes as many slots as there are for the client. Returns what frees each. */
function takeAll(limit: ConcurrencyLimit, client: string): (() => void)[] {
  const frees: (() => void)[] = [];
  for (;;) {
    try {
      frees.push(limit.take(client));
    } catch {
      return frees;
    }
  }
}

test("a client that is alone takes half of the slots, and takes them again once they are free", () => {
  const limit = new ConcurrencyLimit(SLOTS_OF_ONE, "requests");
  for (const _round of [1, 2]) {
    const frees = takeAll(limit, "one");
    expect(frees).toHaveLength(SLOTS_OF_ONE);
    for (const free of frees) free();
  }
});

test("a client gets half of the slots that others leave free, and the last slot goes to one that has none", () => {
  const limit = new ConcurrencyLimit(SLOTS_OF_ONE, "requests");
  const taken = ["a", "b", "c", "d", "e", "f", "g", "h"].map((client) => takeAll(limit, client).length);
  expect(taken).toEqual([32, 16, 8, 4, 2, 1, 1, 0]);
});

test("clients that continue to send requests get equal shares, in whatever order they began", () => {
  const limit = new ConcurrencyLimit(30, "requests");
  const held = new Map(["a", "b"].map((client) => [client, takeAll(limit, client)]));
  expect(held.get("a")).toHaveLength(30);
  for (let round = 0; round < 100; round++) {
    for (const [client, frees] of held) {
      frees.shift()?.();
      frees.push(...takeAll(limit, client));
    }
  }
  expect([...held.values()].map(({ length }) => length)).toEqual([20, 20]);
});

test("a slot that is freed twice is free once", () => {
  const limit = new ConcurrencyLimit(2, "requests");
  const [free] = takeAll(limit, "one") as [() => void, () => void];
  free();
  free();
  expect(takeAll(limit, "one")).toHaveLength(1);
});

test("a client without a free slot is rejected as overloaded, with what it has too many of", () => {
  const limit = new ConcurrencyLimit(1, "exports");
  limit.take("one");
  expect(() => limit.take("one")).toThrow(
    expect.objectContaining({ code: "overloaded", message: expect.stringContaining("exports"), retryAfterMs: 1_000 }),
  );
});
