/** MongoDB's ObjectId in its first form: seconds, machine, process, and a counter that begins anywhere and goes round. */
import { defineScheme } from "../define-scheme.js";
import { BASE16, fixedWidth } from "../encodings.js";

export const objectid = defineScheme({
  name: "objectid",
  title: "MongoDB's ObjectId: seconds, machine, pid, counter",
  fields: [
    { name: "seconds", width: { bits: 32 }, source: { kind: "clock", unitMs: 1_000, epochMs: 0 } },
    // Drivers hash the machine's name or address; this one does what the Snowflake of 2015 does.
    { name: "machine", width: { bits: 24 }, source: { kind: "node", from: "mac hash" } },
    { name: "pid", width: { bits: 16 }, source: { kind: "node", from: "pid" } },
    {
      name: "counter",
      width: { bits: 24 },
      source: { kind: "sequence", within: "process", first: "random" },
    },
  ],
  encodings: [fixedWidth("hex", BASE16, 24, "", "24 lower-case hex digits")],
});
