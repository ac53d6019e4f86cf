/** Twitter's Snowflake of 2010: time, data centre, worker, sequence. The node is one number of ten bits, its upper half the data centre. */
import { defineScheme } from "../define-scheme.js";
import { decimal, hex } from "../encodings.js";

/** 2010-11-04 01:42:54.657 UTC. */
const EPOCH_MS = 1_288_834_974_657;

export const twitterSnowflake = defineScheme({
  name: "twitter-snowflake",
  title: "Twitter's Snowflake: 41 bits of milliseconds, data centre, worker, sequence",
  fields: [
    { name: "sign", width: { bits: 1 }, source: { kind: "fixed", value: 0, others: "refused" } },
    { name: "time", width: { bits: 41 }, source: { kind: "clock", unitMs: 1, epochMs: EPOCH_MS } },
    { name: "datacenter", width: { bits: 5 }, source: { kind: "node", from: "given" } },
    { name: "worker", width: { bits: 5 }, source: { kind: "node", from: "given" } },
    {
      name: "sequence",
      width: { bits: 12 },
      source: { kind: "sequence", within: "clock unit", first: 0 },
    },
  ],
  encodings: [decimal("decimal", 19), hex(64)],
});
