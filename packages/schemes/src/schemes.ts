/** Every scheme, in the order in which they are listed. */
import type { Scheme } from "./scheme.js";
import { callNumber } from "./schemes/call-number.js";
import { chibrary33284, chibrary41620 } from "./schemes/chibrary.js";
import { randomBase625, tickets } from "./schemes/clockless.js";
import { mysql119, mysql1361 } from "./schemes/mysql.js";
import { millis411013, objectid, snowflake2015, twitterSnowflake } from "./schemes/snowflakes.js";
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
