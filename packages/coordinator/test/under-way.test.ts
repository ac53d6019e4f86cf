/** How many are let in at a time: a crowd whole, of a flood fewer, and afterwards all as before. */
import { expect, test } from "vitest";
import { FLOOD_PART, UnderWay } from "../src/limits/under-way.js";

const PLACES = 16;

/** So many ask in one moment. Answers how many were let in; all of them have ended when it resolves. */
async function askTogether(underWay: UnderWay, count: number): Promise<number> {
  let end = () => {};
  const work = new Promise<void>((resolve) => {
    end = resolve;
  });
  const outcomes = Promise.allSettled(Array.from({ length: count }, () => underWay.run(() => work)));
  end();
  return (await outcomes).filter(({ status }) => status === "fulfilled").length;
}

test("as many as there are places are let in, and places are free again also after a failure", async () => {
  const underWay = new UnderWay(PLACES, () => 0);
  expect(await askTogether(underWay, 1_000)).toBe(PLACES);
  await expect(underWay.run(() => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  expect(await askTogether(underWay, PLACES)).toBe(PLACES);
});

test("in a flood fewer are let in at a time, as long as it lasts", async () => {
  let nowMs = 0;
  const underWay = new UnderWay(PLACES, () => nowMs);
  await askTogether(underWay, 1_000);
  for (let second = 0; second < 5; second++) {
    nowMs += 1_000;
    expect(await askTogether(underWay, 1_000)).toBe(PLACES / FLOOD_PART);
  }
  nowMs += 1_000;
  await askTogether(underWay, 2);
  nowMs += 1_000;
  expect(await askTogether(underWay, PLACES)).toBe(PLACES);
});

test("somewhat more than can be answered is no flood: fewer places would make it one", async () => {
  let nowMs = 0;
  const underWay = new UnderWay(PLACES, () => nowMs);
  for (let second = 0; second < 5; second++) {
    expect(await askTogether(underWay, PLACES + PLACES / 2)).toBe(PLACES);
    nowMs += 1_000;
  }
});
