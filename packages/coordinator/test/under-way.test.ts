/** How many are let in at a time: nobody who takes all keeps others out; and afterwards all is as before. */
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { NO_CROWDS } from "../src/limits/crowds.js";
import { UnderWay } from "../src/limits/under-way.js";

const PLACES = 64;

/** So many ask in one moment. Answers how many were let in; all of them have ended when it resolves. */
async function askTogether(underWay: UnderWay, count: number, asker = "one"): Promise<number> {
  let end = () => {};
  const work = new Promise<void>((resolve) => {
    end = resolve;
  });
  const outcomes = Promise.allSettled(Array.from({ length: count }, () => underWay.run(asker, () => work)));
  await turn();
  end();
  return (await outcomes).filter(({ status }) => status === "fulfilled").length;
}

/** Takes as many places as there are for the asker. */
function takeAll(underWay: UnderWay, asker: string): (() => void)[] {
  const ends: (() => void)[] = [];
  while (underWay.hasPlaceFor(asker)) ends.push(underWay.begin(asker));
  return ends;
}

test("one alone has half of the places, and has them again also after a failure", async () => {
  const underWay = new UnderWay(PLACES, undefined, NO_CROWDS);
  expect(await askTogether(underWay, 1_000)).toBe(PLACES / 2);
  await expect(underWay.run("one", () => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  await turn();
  expect(await askTogether(underWay, 1_000)).toBe(PLACES / 2);
});

test("beside one who holds all that it can get, others find places, and the last one is for who has none", () => {
  const underWay = new UnderWay(PLACES);
  const taken = ["a", "b", "c", "d", "e", "f", "g", "h"].map((asker) => takeAll(underWay, asker).length);
  expect(taken).toEqual([32, 16, 8, 4, 2, 1, 1, 0]);
});

test("those who go on asking come to equal shares, whoever was first", async () => {
  const underWay = new UnderWay(60);
  const held = new Map(["a", "b"].map((asker) => [asker, takeAll(underWay, asker)]));
  expect(held.get("a")).toHaveLength(30);
  await turn();
  // Each ends one at a time and asks for more at once.
  for (let round = 0; round < 100; round++) {
    for (const [asker, ends] of held) {
      ends.shift()?.();
      ends.push(...takeAll(underWay, asker));
    }
    await turn();
  }
  expect([...held.values()].map(({ length }) => length)).toEqual([20, 20]);
});

test("one place is a place for one alone", async () => {
  expect(await askTogether(new UnderWay(2), 10)).toBe(1);
});

test("what has ended twice has ended once", async () => {
  const underWay = new UnderWay(4);
  const [end] = takeAll(underWay, "a") as [() => void, () => void];
  await turn();
  end();
  end();
  expect(takeAll(underWay, "a")).toHaveLength(1);
});

test("what ends in the turn in which it began has its place to the end of that turn, and what goes on for longer to its own end", async () => {
  const underWay = new UnderWay(8);
  const done = async () => {};
  const first = await Promise.allSettled(Array.from({ length: 10 }, () => underWay.run("a", done)));
  expect(first.filter(({ status }) => status === "fulfilled")).toHaveLength(4);
  await turn();
  const ends = takeAll(underWay, "a");
  expect(ends).toHaveLength(4);
  await turn();
  for (const end of ends) {
    end();
    expect(takeAll(underWay, "a")).toHaveLength(1);
  }
});

test("who is refused is told so as overloaded, in the words of what is asked for", () => {
  const underWay = new UnderWay(2, "no more exports");
  underWay.begin("a");
  expect(() => underWay.begin("a")).toThrow(
    expect.objectContaining({ code: "overloaded", message: "no more exports", retryAfterMs: 1_000 }),
  );
});
