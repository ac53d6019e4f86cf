/** Chibrary's first scheme: server, process, and a sequence whose last value each server keeps for each pid. In three alphabets, one after the other. */
import { defineScheme } from "../define-scheme.js";
import { base62, decimal } from "../encodings.js";

const LENGTH = 8;
/** Both had lower case before upper: nothing in a text tells them from the alphabet of today. */
const DIGITS_2014_FEB = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS_2007 = `${DIGITS_2014_FEB}_-`;

export const chibrary41620 = defineScheme({
  name: "chibrary-4-16-20",
  title: "Chibrary's first: server, pid, and a sequence kept on disk",
  fields: [
    { name: "server", width: { bits: 4 }, source: { kind: "node", from: "server" } },
    { name: "pid", width: { bits: 16 }, source: { kind: "node", from: "pid" } },
    {
      name: "sequence",
      width: { bits: 20 },
      source: { kind: "sequence", within: "kept", first: 1 },
    },
  ],
  encodings: [
    base62("base62", LENGTH),
    base62("base62_2014feb", LENGTH, DIGITS_2014_FEB),
    base62("base64_2007", LENGTH, DIGITS_2007),
    decimal("decimal", 13),
  ],
});
