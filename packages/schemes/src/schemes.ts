/** Every scheme, in the order in which they are listed. */
import type { Scheme } from "./scheme.js";
import { callNumber } from "./schemes/call-number.js";
import { chibrary33284 } from "./schemes/chibrary-3-32-8-4.js";
import { chibrary41620 } from "./schemes/chibrary-4-16-20.js";
import { millis411013 } from "./schemes/millis-41-10-13.js";
import { mysql119 } from "./schemes/mysql-11-9.js";
import { mysql1361 } from "./schemes/mysql-13-6-1.js";
import { objectid } from "./schemes/objectid.js";
import { randomBase625 } from "./schemes/random-base62-5.js";
import { snowflake2015 } from "./schemes/snowflake-2015.js";
import { tickets } from "./schemes/tickets.js";
import { twitterSnowflake } from "./schemes/twitter-snowflake.js";
import { uuid } from "./schemes/uuid.js";

export const SCHEMES: readonly Scheme[] = [
  callNumber,
  chibrary41620,
  chibrary33284,
  mysql1361,
  mysql119,
  millis411013,
  snowflake2015,
  twitterSnowflake,
  uuid,
  objectid,
  tickets,
  randomBase625,
];

/**
 * Returns the scheme with this name.
 * @throws RangeError with all names where there is none.
 */
export function schemeNamed(name: string): Scheme {
  const found = SCHEMES.find((scheme) => scheme.name === name);
  if (found !== undefined) return found;
  throw new RangeError(`There is no scheme "${name}". There are: ${SCHEMES.map((scheme) => scheme.name).join(", ")}`);
}
