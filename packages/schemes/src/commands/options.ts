/** Parses the options of these commands. They start at once, so no schema library is loaded for them. */
import { InvalidArgumentError, Option } from "commander";
import { SCHEMES, type Scheme, schemeNamed } from "../index.js";
import { YEAR_S } from "./format.js";

export function rateOption(description: string): Option {
  return new Option("--rate <rate>", description).argParser(parseRate).default(1_000, "1000/s");
}

/** Digits, in groups where that helps: `30000`, `30,000`, `30_000`. @throws InvalidArgumentError */
export function integerBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const digits = text.replace(/(?<=\d)[_,](?=\d)/g, "");
    const value = /^\d{1,16}$/.test(digits) ? Number(digits) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`must be a whole number from ${min} to ${max.toLocaleString("en-US")}`);
  };
}

/** Finds the one of `all` with a name. @throws InvalidArgumentError with all names. */
function oneOf<T extends { readonly name: string }>(
  what: string,
  all: readonly T[],
  named = (name: string) => all.find((one) => one.name === name),
): (name: string) => T {
  return (name) => {
    const found = named(name.toLowerCase());
    if (found !== undefined) return found;
    const names = all.map((one) => one.name).join(", ");
    throw new InvalidArgumentError(`there is no ${what} ${quoted(name)}. The ${what}s are ${names}`);
  };
}

export const oneScheme = oneOf("scheme", SCHEMES, schemeNamed);
export const someSchemes = someOf("scheme", SCHEMES, oneScheme);

export function epochOption(): Option {
  return new Option("--epoch <day>", "count time from here: 2015-01-01, or milliseconds since 1970").argParser(
    parseEpoch,
  );
}

/** Parses `2015-01-01`, `2015-01-01T05:00:00Z` or milliseconds since 1970. @throws InvalidArgumentError */
function parseEpoch(text: string): number {
  const epochMs =
    /^\d{1,15}$/.test(text) && !/^\d{4}$/.test(text) ? Number(text) : Date.parse(ISO_TIME.test(text) ? text : "");
  if (epochMs >= 0 && epochMs < EPOCH_END_MS) return epochMs;
  throw new InvalidArgumentError(
    "must be a day since 1970 such as 2015-01-01, a time that ends with Z, or milliseconds since 1970",
  );
}

const ISO_TIME = /^\d{4}-\d{2}-\d{2}(T[\d:.]+Z)?$/;
const EPOCH_END_MS = Date.UTC(2100, 0, 1);

/** @throws TypeError where the epoch of the scheme can't be chosen. */
export function withEpoch(scheme: Scheme, epochMs: number | undefined): Scheme {
  const moved = epochMs === undefined ? scheme : scheme.withEpoch(epochMs);
  if (moved !== undefined) return moved;
  throw new TypeError(`${scheme.name} has no epoch to choose; leave out --epoch`);
}

/** Finds several by their names, with spaces or commas between them, each once. @throws InvalidArgumentError for no name, or as `oneOf`. */
export function someOf<T extends { readonly name: string }>(
  what: string,
  all: readonly T[],
  one = oneOf(what, all),
): (text: string, before?: readonly T[]) => readonly T[] {
  return (text, before = []) => {
    const names = text.split(",").filter((name) => name !== "");
    if (names.length === 0) throw new InvalidArgumentError("must be at least one name");
    const found = [...before, ...names.map(one)];
    return found.filter(({ name }, index) => found.findIndex((other) => other.name === name) === index);
  };
}

const QUOTED_CHARACTERS_MAX = 40;

/** Untrusted text, cut short, for a message. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > QUOTED_CHARACTERS_MAX ? `${text.slice(0, QUOTED_CHARACTERS_MAX)}…` : text);
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

/** Parses `1000`, `1000/s`, `50k/day`, `2.5M/h` to numbers a second. @throws InvalidArgumentError */
export function parseRate(text: string): number {
  const [, digits = "", multiple = "", unit = "s"] = RATE.exec(text) ?? [];
  const perSecond = (amountIn(digits) * (MULTIPLES[multiple] ?? 1)) / unitSeconds(unit);
  if (perSecond > 0 && perSecond <= RATE_MAX) return perSecond;
  throw new InvalidArgumentError(
    `must be above zero and up to 1e15/s, such as 1000/s, 50k/min or 2M/day (a unit of ${UNIT_NAMES}; none is a second)`,
  );
}

/** Parses `10y`, `36h`, `90d` to seconds. @throws InvalidArgumentError */
export function parseSpan(text: string): number {
  const [, digits = "", unit = ""] = SPAN.exec(text) ?? [];
  const seconds = amountIn(digits) * unitSeconds(unit);
  if (seconds > 0 && seconds <= SPAN_MAX_S) return seconds;
  const message = `must be above zero and up to 1e9y, such as 10y, 90d or 36h (a unit of ${UNIT_NAMES})`;
  throw new InvalidArgumentError(message);
}

function amountIn(digits: string): number {
  return Number(digits.replace(/[,_]/g, "") || Number.NaN);
}

/** NaN for a word that is no unit: whatever is computed with it fails its check. */
function unitSeconds(unit: string): number {
  return Object.hasOwn(UNITS_S, unit) ? (UNITS_S[unit] as number) : Number.NaN;
}

export interface Count {
  /** As it was typed. */
  readonly text: string;
  readonly count: bigint;
}

/** Beyond 2^1000, the sums of doubles lose their meaning. */
const BITS_MAX = 1_000;
const COUNT = /^(\d{1,400})(?:e(\d{1,3}))?(?:\^(\d{1,9}))?$/;

/**
 * Parses a count as people write it: `62^5`, `2^122`, `10^6`, `916,132,832`, `1e9`. At least 1.
 * @throws InvalidArgumentError
 */
export function parseCount(text: string): Count {
  const [, digits, exponent = "0", power = "1"] = COUNT.exec(text.replace(/\s|(?<=\d)[_,](?=\d)/g, "")) ?? [];
  if (digits === undefined) {
    throw new InvalidArgumentError("must be a whole number from 1 on, such as 62^5, 2^122, 10^6 or 916,132,832");
  }
  const base = BigInt(digits) * 10n ** BigInt(exponent);
  // Checked before the power is computed, which could take forever.
  const leastBits = (base.toString(2).length - 1) * Number(power);
  const count = leastBits > BITS_MAX ? undefined : base ** BigInt(power);
  if (count === undefined || count > 1n << BigInt(BITS_MAX))
    throw new InvalidArgumentError(`is more than 2^${BITS_MAX}`);
  if (count < 1n) throw new InvalidArgumentError("must be at least 1");
  return { text: text.trim(), count };
}
