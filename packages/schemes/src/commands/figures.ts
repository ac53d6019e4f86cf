/** Figures of any size as people read them: counts, chances, moments, spans of time, from what hardly is to what never ends. */

const MILLION = 1e6;
/** From here on a word for the number means different things in different countries. */
const BILLION = 1e9;
const SIGNIFICANT_DIGITS = 3;
/** Below it a percentage has too many zeros to be read. */
const LEAST_PERCENTAGE = 0.001;
/** From here on three digits would say 100 %. */
const NEARLY_CERTAIN = 0.9995;

const MINUTE_S = 60;
const HOUR_S = 60 * MINUTE_S;
const DAY_S = 24 * HOUR_S;
/** Of the Gregorian calendar. */
export const YEAR_S = 365.2425 * DAY_S;

/** Each from so many of it on; below the last, milliseconds. */
const SPANS: readonly (readonly [name: string, seconds: number, from: number])[] = [
  ["years", YEAR_S, 2],
  ["days", DAY_S, 2],
  ["hours", HOUR_S, 2],
  ["minutes", MINUTE_S, 2],
  ["s", 1, 1],
];

/** `4,096`, `4.19 million`, `3.4e12`; "no bound" for Infinity. */
export function countInWords(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "no bound";
  if (value < 1) return value === 0 ? "0" : significant(value);
  if (Math.round(value) < MILLION)
    return (value < 100 ? Number(significant(value)) : Math.round(value)).toLocaleString("en-US");
  if (Number(value.toPrecision(SIGNIFICANT_DIGITS)) < BILLION) return `${significant(value / MILLION)} million`;
  const [mantissa, exponent] = value.toExponential(SIGNIFICANT_DIGITS - 1).split("e+");
  return `${Number(mantissa)}e${exponent}`;
}

/** `none`, `1 in 3.4e12`, `38.8 %`, `certain`. `chance` is 0 to 1. */
export function chanceInWords(chance: number): string {
  if (chance === 0) return "none";
  if (chance < LEAST_PERCENTAGE)
    return `1 in ${countInWords(Math.min(1 / chance, Number.MAX_VALUE))}`.replace(/ 1 million$/, " a million");
  if (chance < NEARLY_CERTAIN) return `${significant(100 * chance)} %`;
  return chance === 1 ? "certain" : "nearly certain";
}

/** `12 s`, `8.5 hours`, `69.7 years`, `17.2 million years`; "for ever" for Infinity. */
export function spanInWords(seconds: number): string {
  if (seconds === Number.POSITIVE_INFINITY) return "for ever";
  const span = SPANS.find(([, unitSeconds, from]) => seconds >= from * unitSeconds);
  if (span === undefined) return `${countInWords(1_000 * seconds)} ms`;
  const [name, unitSeconds] = span;
  return `${countInWords(seconds / unitSeconds)} ${name}`;
}

/** In UTC, to the millisecond. */
export function instant(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/** A year of five digits is no date that anybody knows, and a `Date` ends with the year 275760. */
export function dayOf(timeMs: number): string {
  const date = new Date(timeMs);
  if (Number.isNaN(date.getTime())) return "beyond every calendar";
  return date.getUTCFullYear() > 9_999
    ? `the year ${date.getUTCFullYear().toLocaleString("en-US")}`
    : instant(timeMs).slice(0, 10);
}

function significant(value: number): string {
  return String(Number(value.toPrecision(SIGNIFICANT_DIGITS)));
}
