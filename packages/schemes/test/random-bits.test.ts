/** Schemes of random bits: the numbers that their own documents publish, and minting of more bits than a double holds. */
import { expect, test } from "vitest";
import { contextWith, mintedStep, mustMatch, schemeNamed } from "./helpers.js";

test.each([
  ["ulid", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "2016-07-30T23:54:10.259Z", 0xd6764c61efb99302bd5bn],
  ["ulid", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "+010889-08-02T05:31:50.655Z", 2n ** 80n - 1n],
  ["ksuid", "0ujtsYcgvSTl8PAuAdqWYSMnLOv", "2017-10-10T04:00:47.000Z", 0xb5a1cd34b5f99d1154fb6853345c9735n],
  ["ksuid", "aWgEPTl1tmebfsQzFP4bxwgy80V", "2150-06-19T23:21:35.000Z", 2n ** 128n - 1n],
])("a published %s parses to its time and random bits: %s", (name, text, time, random) => {
  const { timeMs, values } = mustMatch(schemeNamed(name).parse(text));
  expect([new Date(timeMs as number).toISOString(), values.random]).toEqual([time, random]);
});

test("a published UUID of version 7 parses to its time and random bits", () => {
  const { timeMs, values } = mustMatch(schemeNamed("uuidv7").parse("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"));
  expect(new Date(timeMs as number).toISOString()).toBe("2022-02-22T19:22:22.000Z");
  expect(values).toMatchObject({ randomA: 0xcc3, randomB: 0x18c4dc0c0c07398fn });
});

test.each([
  ["ulid", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ"],
  ["ulid", "01ARZ3NDEKTSV4RRFFQ69G5FAU"],
  ["ksuid", "aWgEPTl1tmebfsQzFP4bxwgy80W"],
  ["uuidv7", "919108f7-52d1-4320-9bac-f847db4148a8"],
])("%s does not match %s", (name, text) => {
  expect(schemeNamed(name).parse(text)).toMatchObject({ matches: false });
});

test("a field of more bits than a double holds is drawn in words, each of its bits", () => {
  const drawn: number[] = [];
  const below = (bound: number) => {
    drawn.push(bound);
    return bound - 2;
  };
  const { values } = mintedStep(schemeNamed("ulid").mint(contextWith({ random: { below } })));
  expect(drawn).toEqual([2 ** 48, 2 ** 32]);
  expect(values.random).toBe(((2n ** 48n - 2n) << 32n) + 2n ** 32n - 2n);
});
