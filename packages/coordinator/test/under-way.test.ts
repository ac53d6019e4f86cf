/** How many are let in at a time: and afterwards all as before. */
import { expect, test } from "vitest";
import { UnderWay } from "../src/limits/under-way.js";

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
  const underWay = new UnderWay(PLACES);
  expect(await askTogether(underWay, 1_000)).toBe(PLACES);
  await expect(underWay.run(() => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  expect(await askTogether(underWay, PLACES)).toBe(PLACES);
});
