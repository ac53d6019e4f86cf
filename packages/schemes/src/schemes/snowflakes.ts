/** Schemes that put a time before a node: Snowflakes, an ObjectId, and a time with random bits. */
import { defineScheme } from "../define-scheme.js";
import { BASE16, decimal, fixedWidth, hex64, signed64 } from "../encodings.js";

/** In order by time only, so that a reader can't count. From 2004 on its numbers are negative in a signed column. */
export const millis411013 = defineScheme({
  name: "millis-41-10-13",
  title: "41 bits of milliseconds, generator, 13 random bits",
  fields: [
    { name: "time", width: { bits: 41 }, source: { kind: "clock", unitMs: 1, epochMs: 0 } },
    { name: "generator", width: { bits: 10 }, source: { kind: "node", from: "given" } },
    // 0 was never drawn, but has its place in the layout.
    { name: "random", width: { bits: 13 }, source: { kind: "random", from: 1, to: 8_191 } },
  ],
  encodings: [decimal("decimal", 20), signed64, hex64, fixedWidth("binary", "01", 64, "0b", "0b and 64 binary digits")],
});

/** With an epoch of its own, 2015-01-01 00:00:00 UTC. Its nodes take their numbers from their MAC addresses. */
export const snowflake2015 = defineScheme({
  name: "snowflake-2015",
  title: "A Snowflake since 2015, its node from the MAC addresses",
  fields: [
    { name: "sign", width: { bits: 1 }, source: { kind: "fixed", value: 0, others: "rejected" } },
    {
      name: "time",
      width: { bits: 41 },
      source: { kind: "clock", unitMs: 1, epochMs: 1_420_070_400_000, isChosen: true },
    },
    { name: "node", width: { bits: 10 }, source: { kind: "node", from: "mac hash" } },
    { name: "sequence", width: { bits: 12 }, source: { kind: "sequence", within: "clock unit", first: 0 } },
  ],
  encodings: [decimal("decimal", 19), hex64],
});

/** Of 2010, since 2010-11-04 01:42:54.657 UTC. The node is one number of ten bits, its upper half the data center. */
export const twitterSnowflake = defineScheme({
  name: "twitter-snowflake",
  title: "Twitter's Snowflake: 41 bits of milliseconds, data centre, worker, sequence",
  fields: [
    { name: "sign", width: { bits: 1 }, source: { kind: "fixed", value: 0, others: "rejected" } },
    {
      name: "time",
      width: { bits: 41 },
      source: { kind: "clock", unitMs: 1, epochMs: 1_288_834_974_657, isChosen: true },
    },
    { name: "datacenter", width: { bits: 5 }, source: { kind: "node", from: "given" } },
    { name: "worker", width: { bits: 5 }, source: { kind: "node", from: "given" } },
    { name: "sequence", width: { bits: 12 }, source: { kind: "sequence", within: "clock unit", first: 0 } },
  ],
  encodings: [decimal("decimal", 19), hex64],
});

/** MongoDB's, in its first form. */
export const objectid = defineScheme({
  name: "objectid",
  title: "MongoDB's ObjectId: seconds, machine, pid, counter",
  fields: [
    { name: "seconds", width: { bits: 32 }, source: { kind: "clock", unitMs: 1_000, epochMs: 0 } },
    // Drivers hash the machine's name or address; this one does what the Snowflake of 2015 does.
    { name: "machine", width: { bits: 24 }, source: { kind: "node", from: "mac hash" } },
    { name: "pid", width: { bits: 16 }, source: { kind: "node", from: "pid" } },
    { name: "counter", width: { bits: 24 }, source: { kind: "sequence", within: "process", first: "random" } },
  ],
  encodings: [fixedWidth("hex", BASE16, 24, "", "24 lower-case hex digits")],
});
