/**
 * Five characters of base62, drawn: short, of nobody, and no longer different after some ten thousands. Kept where case does not count, they
 * repeat as (3844 / 114)^5 = 43,590,579 values do, not as 36^5: ten digits are drawn once in 62, and 26 letters twice.
 */
import { defineScheme } from "../define-scheme.js";
import { base62 } from "../encodings.js";

const LENGTH = 5;

export const randomBase625 = defineScheme({
  name: "random-base62-5",
  title: "Five random characters of base62",
  fields: [{ name: "random", width: { base62: LENGTH }, source: { kind: "random", from: 0, to: 62 ** LENGTH - 1 } }],
  encodings: [base62("base62", LENGTH)],
});
