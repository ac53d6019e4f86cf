/** Two databases that only count, one in odd numbers and one in even: when one is down, the other goes on. */
import { defineScheme } from "../define-scheme.js";
import { decimal } from "../encodings.js";

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
