import { callNumbersOfRun, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { expect, inject, test } from "vitest";
import { CallNumberCheck } from "./call-number-check.js";
import { seededRandom } from "./seeded-random.js";

const RUN_COUNT = 200;

test("one repeat among three million call numbers is found, by whomever it was made and wherever the pipe cuts", () => {
  const random = seededRandom(inject("seed"));
  const check = new CallNumberCheck();
  const importers = ["one", "two"].map((name) => check.reader("store", name));
  for (let run = 1; run <= RUN_COUNT; run++) {
    const bytes = numbersOf(run);
    const cut = Math.floor(random() * bytes.length);
    const read = importers[run % 2] as (piece: Buffer) => void;
    read(bytes.subarray(0, cut));
    read(bytes.subarray(cut));
  }
  expect(check).toMatchObject({ count: RUN_COUNT * SEQUENCE_COUNT, runCount: RUN_COUNT, repeatCount: 0, told: [] });

  const [run, sequence] = [1 + Math.floor(random() * RUN_COUNT), Math.floor(random() * SEQUENCE_COUNT)];
  const planted = callNumbersOfRun(0, run)(sequence);
  check.reader("store", "a third")(Buffer.from(planted, "latin1"));
  expect(check).toMatchObject({ count: RUN_COUNT * SEQUENCE_COUNT + 1, repeatCount: 1, malformedCount: 0 });
  expect(check.told).toEqual([`${planted} (run ${run}, sequence ${sequence}) was made again, by a third`]);
});

test("the same number in another store, or in another version, is another number", () => {
  const check = new CallNumberCheck();
  check.reader("store", "one")(numbersOf(7));
  check.reader("another store", "one")(numbersOf(7));
  check.reader("store", "one")(numbersOf(7, 1));
  expect(check).toMatchObject({ count: 3 * SEQUENCE_COUNT, repeatCount: 0 });
});

test("what is no call number is counted, and told", () => {
  const check = new CallNumberCheck();
  check.reader("store", "one")(Buffer.from("2VznWE2izzzzzzzz2Vzn-E2i", "latin1"));
  expect(check).toMatchObject({ count: 3, malformedCount: 2, repeatCount: 0 });
  expect(check.told[0]).toMatch(/one wrote what is no call number: "zzzzzzzz" is no call number/);
  expect(check.told[1]).toContain("as character 5");
});

function numbersOf(run: number, version = 0): Buffer {
  const spell = callNumbersOfRun(version, run);
  return Buffer.from(Array.from({ length: SEQUENCE_COUNT }, (_, sequence) => spell(sequence)).join(""), "latin1");
}
