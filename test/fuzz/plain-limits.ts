/**
 * The limits of what strangers send, written down once more, from the documents and without the protocol's patterns: what may pass a
 * schema, and what must. `undefined` where this file does not know: of what Unicode calls a character, only a part is written down.
 */
type Verdict = boolean | undefined;
export type Limit = (value: unknown) => Verdict;

const LEDGER_ID_MAX = 8_589_934_591;

const all = (verdicts: readonly Verdict[]): Verdict => {
  if (verdicts.includes(false)) return false;
  return verdicts.includes(undefined) ? undefined : true;
};

export const whole =
  (min: number, max = Number.MAX_SAFE_INTEGER): Limit =>
  (value) =>
    typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max;

export const oneOf =
  (...texts: readonly unknown[]): Limit =>
  (value) =>
    texts.includes(value);

export const orNull =
  (limit: Limit): Limit =>
  (value) =>
    value === null ? true : limit(value);

export const optional =
  (limit: Limit): Limit =>
  (value) =>
    value === undefined ? true : limit(value);

/** Of these characters only. */
export const letters =
  (allowed: string, min: number, max: number, first = allowed): Limit =>
  (value) =>
    typeof value === "string" &&
    value.length >= min &&
    value.length <= max &&
    [...value].every((letter, at) => (at === 0 ? first : allowed).includes(letter));

/** An object with these members and no other. */
export const exactly =
  (limits: Readonly<Record<string, Limit>>): Limit =>
  (value) => {
    if (!isPlainObject(value)) return false;
    if (Object.keys(value).some((key) => !Object.hasOwn(limits, key))) return false;
    return all(Object.entries(limits).map(([key, limit]) => limit(Object.hasOwn(value, key) ? value[key] : undefined)));
  };

export const printable =
  (max: number): Limit =>
  (value) => {
    if (typeof value !== "string" || value === "" || [...value].length > max) return false;
    return all([...value].map((character) => isPrintable(character.codePointAt(0) as number)));
  };

export const labels: Limit = (value) => {
  if (!isPlainObject(value)) return false;
  // The schema library passes it over in a record, and HTTP refuses it before.
  const entries = Object.entries(value).filter(([name]) => name !== "__proto__");
  if (entries.length > 8) return false;
  return all(entries.flatMap(([name, text]) => [labelName(name), printable(64)(text)]));
};

const LOWER = "abcdefghijklmnopqrstuvwxyz";
const DIGITS = "0123456789";
const labelName = letters(`${LOWER}${DIGITS}_.-`, 1, 32, LOWER);

export const nonce = letters(`${LOWER}${LOWER.toUpperCase()}${DIGITS}-_`, 16, 64);
export const receipt = letters(`${LOWER}${LOWER.toUpperCase()}${DIGITS}-_`, 43, 43);
export const ledgerId = whole(0, LEDGER_ID_MAX);
export const timeMs = whole(0);

const labelAsked: Limit = (value) => {
  if (typeof value !== "string") return false;
  const at = value.indexOf("=");
  return at < 0 ? false : all([labelName(value.slice(0, at)), printable(64)(value.slice(at + 1))]);
};

/** As a query gives them: `label` once or several times. */
export const labelsAsked: Limit = (value) => {
  const asked = Array.isArray(value) ? value : [value];
  return asked.length <= 8 && all(asked.map(labelAsked));
};

/** As a query gives numbers: text. What else becomes a number when it is asked to is not decided here, but for its range. */
export const numberText =
  (limit: Limit): Limit =>
  (value) => {
    if (typeof value === "number") return limit(value);
    if (typeof value !== "string") return undefined;
    return /^(?:0|[1-9]\d{0,15})$/.test(value)
      ? limit(Number(value))
      : limit(Number(value)) === false
        ? false
        : undefined;
  };

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const UNPRINTABLE: readonly (readonly [from: number, to: number])[] = [
  ...([
    [0, 0x1f],
    [0x7f, 0x9f],
    [0xad, 0xad],
    [0x200b, 0x200f],
    [0x2028, 0x202e],
    [0x2060, 0x206f],
  ] as const),
  ...([
    [0xd800, 0xdfff],
    [0xe000, 0xf8ff],
    [0xfeff, 0xfeff],
    [0xfff9, 0xfffb],
    [0xfffe, 0xffff],
  ] as const),
  ...([
    [0xe0000, 0xe007f],
    [0xf0000, 0x10ffff],
  ] as const),
];
const PRINTABLE: readonly (readonly [from: number, to: number])[] = [
  ...([
    [0x20, 0x7e],
    [0xa0, 0xac],
    [0xae, 0x17f],
    [0x4e00, 0x9fa5],
    [0x1f600, 0x1f64f],
  ] as const),
];

function isPrintable(code: number): Verdict {
  const isIn = ([from, to]: readonly [number, number]) => code >= from && code <= to;
  if (UNPRINTABLE.some(isIn)) return false;
  return PRINTABLE.some(isIn) ? true : undefined;
}
