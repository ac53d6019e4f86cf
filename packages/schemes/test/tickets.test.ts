/** The ticket servers: two that count beside each other. */
import { expect, test } from "vitest";
import { tickets } from "../src/schemes/tickets.js";
import { mustMatch } from "./readings.js";
import { minted, world } from "./world.js";

test("the odd server gives 1, 3, 5, the even one 2, 4, 6, each by its own counter", () => {
  const [odd, even] = [world({ node: { server: 1 } }), world({ node: { server: 0 } })];
  expect(Array.from({ length: 3 }, () => minted(tickets, odd))).toEqual(["1", "3", "5"]);
  expect(Array.from({ length: 3 }, () => minted(tickets, even))).toEqual(["2", "4", "6"]);
});

test("a ticket says which server gave it, at the greatest of 64 bits too", () => {
  expect(mustMatch(tickets.parse("7"))).toMatchObject({ number: 7n, notes: { server: "odd" } });
  const greatest = (2n ** 64n - 1n).toString();
  expect(mustMatch(tickets.parse(greatest))).toMatchObject({ values: { count: 2n ** 63n - 1n, odd: 1 } });
  expect(tickets.parse((2n ** 64n).toString())).toMatchObject({ matches: false });
});

test("the last ticket of each server is followed by a refusal, and a counter that answers less than 1 is none", () => {
  const at = (server: number, answer: bigint) => () =>
    tickets.mint(world({ node: { server }, counter: { next: () => answer } }));
  expect(at(0, 2n ** 63n - 1n)()).toMatchObject({ text: String(2n ** 64n - 2n) });
  expect(at(0, 2n ** 63n)).toThrow(expect.objectContaining({ code: "space_used_up" }));
  expect(at(1, 0n)).toThrow(RangeError);
  expect(at(2, 1n)).toThrow("odd must be a whole number from 0 to 1, not 2");
});
