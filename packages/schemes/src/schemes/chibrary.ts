/** Chibrary's two schemes before the call number. */
import { defineScheme } from "../define-scheme.js";
import { base62, decimal, former } from "../encodings.js";

const LENGTH = 8;
/** Both had lower case before upper: nothing in a text distinguishes them from the alphabet of today. */
const DIGITS_2014_FEB = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS_2007 = `${DIGITS_2014_FEB}_-`;

/** Server, process, and a sequence whose last value each server keeps for each pid. In three alphabets, one after the other. */
export const chibrary41620 = defineScheme({
  name: "chibrary-4-16-20",
  title: "Chibrary's first: server, pid, and a sequence kept on disk",
  fields: [
    { name: "server", width: { bits: 4 }, source: { kind: "node", from: "server" } },
    { name: "pid", width: { bits: 16 }, source: { kind: "node", from: "pid" } },
    { name: "sequence", width: { bits: 20 }, source: { kind: "sequence", within: "kept", first: 1 } },
  ],
  encodings: [
    base62("base62", LENGTH),
    former(base62("base62_2014feb", LENGTH, DIGITS_2014_FEB)),
    former(base62("base64_2007", LENGTH, DIGITS_2007)),
    decimal("decimal", 13),
  ],
});

/**
 * Never deployed: version, seconds, a sequence of 256 in each second, and one of 16 parallel importers. The text that describes it names
 * no epoch; with that of 1970 a timestamp alone shows the time. Services choose theirs.
 */
export const chibrary33284 = defineScheme({
  name: "chibrary-3-32-8-4",
  title: "Chibrary's second: version, seconds, sequence, parallel slot",
  fields: [
    { name: "version", width: { bits: 3 }, source: { kind: "fixed", value: 0, others: "read" } },
    { name: "timestamp", width: { bits: 32 }, source: { kind: "clock", unitMs: 1_000, epochMs: 0, isChosen: true } },
    { name: "sequence", width: { bits: 8 }, source: { kind: "sequence", within: "clock unit", first: 0 } },
    { name: "parallel", width: { bits: 4 }, source: { kind: "node", from: "server" } },
  ],
  encodings: [base62("base62", LENGTH), decimal("decimal", 15)],
});
