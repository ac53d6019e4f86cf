/** Two schemes without a clock: one only counts, one only draws. */
import { defineScheme } from "../define-scheme.js";
import { base62, decimal } from "../encodings.js";

/** Two databases, one counts in odd numbers and one in even: when one is down, the other goes on. */
export const tickets = defineScheme({
  name: "tickets",
  title: "Ticket servers: two databases that count, odd and even",
  fields: [
    { name: "count", width: { bits: 63 }, source: { kind: "counter", asked: "for each number" } },
    // 1 is the server of odd numbers, 0 that of even ones.
    { name: "odd", width: { bits: 1 }, source: { kind: "node", from: "server" } },
  ],
  // Counters begin at 1: the tickets of the odd server are 1, 3, 5, those of the even one 2, 4, 6.
  adjust: ({ count, odd }) => ({ count: BigInt(count as bigint) - BigInt(odd as number), odd: odd as number }),
  encodings: [decimal("decimal", 20)],
  notes: ({ odd }) => ({ server: odd === 1 ? "odd" : "even" }),
});

const LENGTH = 5;

/**
 * Short, and no longer different after some ten thousands. Kept where case does not count, they repeat as (3844 / 114)^5 = 43,590,579
 * values do, not as 36^5: ten digits are drawn once in 62, and 26 letters twice.
 */
export const randomBase625 = defineScheme({
  name: "random-base62-5",
  title: "Five random characters of base62",
  fields: [{ name: "random", width: { base62: LENGTH }, source: { kind: "random", from: 0, to: 62 ** LENGTH - 1 } }],
  encodings: [base62("base62", LENGTH)],
});
