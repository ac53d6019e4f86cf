/** Milliseconds, generator, random: in order by time only, so that nobody counts. From 2004 on its numbers are negative in a signed column. */
import { defineScheme } from "../define-scheme.js";
import { binary, decimal, hex, signed64 } from "../encodings.js";

export const millis411013 = defineScheme({
  name: "millis-41-10-13",
  title: "41 bits of milliseconds, generator, 13 random bits",
  fields: [
    { name: "time", width: { bits: 41 }, source: { kind: "clock", unitMs: 1, epochMs: 0 } },
    { name: "generator", width: { bits: 10 }, source: { kind: "node", from: "given" } },
    // 0 was never drawn, but has its place in the layout.
    { name: "random", width: { bits: 13 }, source: { kind: "random", from: 1, to: 8_191 } },
  ],
  encodings: [decimal("decimal", 20), signed64("signed"), hex(64), binary(64)],
});
