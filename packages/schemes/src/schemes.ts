/** Every scheme, in the order in which they are shown. */
import type { Scheme } from "./scheme.js";
import { callNumber } from "./schemes/call-number.js";
import { twitterSnowflake } from "./schemes/twitter-snowflake.js";

export const SCHEMES: readonly Scheme[] = [callNumber, twitterSnowflake];

/**
 * The scheme of this name.
 * @throws RangeError where none has it; the message has all names.
 */
export function schemeNamed(name: string): Scheme {
  const found = SCHEMES.find((scheme) => scheme.name === name);
  if (found !== undefined) return found;
  throw new RangeError(`There is no scheme "${name}". There are: ${SCHEMES.map((scheme) => scheme.name).join(", ")}`);
}
