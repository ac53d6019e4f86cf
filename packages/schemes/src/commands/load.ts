/** How hard a scheme is used: what every figure of the comparison is for. */
import { countInWords, spanInWords, YEAR_S } from "./figures.js";

export interface Load {
  readonly perSecond: number;
  readonly nodes: number;
  readonly seconds: number;
}

const UNITS_S: Readonly<Record<string, number>> = {
  s: 1,
  min: 60,
  h: 3_600,
  d: 86_400,
  day: 86_400,
  w: 604_800,
  y: YEAR_S,
  year: YEAR_S,
};
const UNIT_NAMES = Object.keys(UNITS_S).join(", ");
const MULTIPLES: Readonly<Record<string, number>> = { "": 1, k: 1e3, M: 1e6, G: 1e9 };
const RATE = /^(\d[\d,_]*(?:\.\d+)?(?:e\d{1,2})?)([kMG]?)(?:\/([a-z]+))?$/;
const SPAN = /^(\d[\d,_]*(?:\.\d+)?(?:e\d{1,2})?)\s*([a-z]+)$/;

/** Beyond, no figure means anything: the sums are of doubles. */
const RATE_MAX = 1e15;
const SPAN_MAX_S = 1e9 * YEAR_S;

/** `1000`, `1000/s`, `50k/day`, `2.5M/h`: numbers a second. @throws RangeError */
export function rateIn(text: string): number {
  const [, digits = "", multiple = "", unit = "s"] = RATE.exec(text) ?? [];
  const perSecond = (amountIn(digits) * (MULTIPLES[multiple] ?? 1)) / unitSeconds(unit);
  if (perSecond > 0 && perSecond <= RATE_MAX) return perSecond;
  throw new RangeError(
    `must be above zero and up to 1e15/s, such as 1000/s, 50k/min or 2M/day (a unit of ${UNIT_NAMES}; none is a second)`,
  );
}

/** `10y`, `36h`, `90d`: seconds. @throws RangeError */
export function spanIn(text: string): number {
  const [, digits = "", unit = ""] = SPAN.exec(text) ?? [];
  const seconds = amountIn(digits) * unitSeconds(unit);
  if (seconds > 0 && seconds <= SPAN_MAX_S) return seconds;
  throw new RangeError(`must be above zero and up to 1e9y, such as 10y, 90d or 36h (a unit of ${UNIT_NAMES})`);
}

/** `1,000 a second from 10 nodes, for 10 years`. */
export function loadInWords({ perSecond, nodes, seconds }: Load): string {
  const from = nodes === 1 ? "one node" : `${countInWords(nodes)} nodes`;
  return `${rateInWords(perSecond)} from ${from}, for ${spanInWords(seconds)}`;
}

/** `1,000 a second`, or by the day where a second has less than one. */
export function rateInWords(perSecond: number): string {
  return perSecond < 1 ? `${countInWords(86_400 * perSecond)} a day` : `${countInWords(perSecond)} a second`;
}

function amountIn(digits: string): number {
  return Number(digits.replace(/[,_]/g, "") || Number.NaN);
}

/** NaN for a word that is no unit: whatever is computed with it is refused. */
function unitSeconds(unit: string): number {
  return Object.hasOwn(UNITS_S, unit) ? (UNITS_S[unit] as number) : Number.NaN;
}
