/** A Snowflake with an epoch of its own, whose nodes take their numbers from their MAC addresses. */
import { defineScheme } from "../define-scheme.js";
import { decimal, hex } from "../encodings.js";

/** 2015-01-01 00:00:00 UTC. */
const EPOCH_MS = 1_420_070_400_000;

export const snowflake2015 = defineScheme({
  name: "snowflake-2015",
  title: "A Snowflake since 2015, its node from the MAC addresses",
  fields: [
    { name: "sign", width: { bits: 1 }, source: { kind: "fixed", value: 0, others: "refused" } },
    { name: "time", width: { bits: 41 }, source: { kind: "clock", unitMs: 1, epochMs: EPOCH_MS } },
    { name: "node", width: { bits: 10 }, source: { kind: "node", from: "mac hash" } },
    {
      name: "sequence",
      width: { bits: 12 },
      source: { kind: "sequence", within: "clock unit", first: 0 },
    },
  ],
  encodings: [decimal("decimal", 19), hex(64)],
});
