/** Figures and times as people read them. Pure. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = 365.25 * DAY_MS;

const UNITS: readonly (readonly [lengthMs: number, name: string])[] = [
  [YEAR_MS, "year"],
  [DAY_MS, "day"],
  [HOUR_MS, "hour"],
  [MINUTE_MS, "minute"],
  [SECOND_MS, "second"],
];

/** 1,073,741,823 */
export function grouped(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 1 });
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

const MAGNITUDES: readonly (readonly [size: number, name: string])[] = [
  [1e12, "million million"],
  [1e9, "thousand million"],
  [1e6, "million"],
];

/** 17.6 million million; below a million every digit. */
export function roughly(value: number): string {
  const [size, name] = MAGNITUDES.find(([size]) => value >= size) ?? [];
  return size === undefined ? grouped(value) : `${grouped(Math.floor((value / size) * 10) / 10)} ${name}`;
}

/** Shares below a tenth of a per cent are said to be so, as 0 % would be wrong. */
export function perCent(share: number): string {
  if (share > 0 && share < 0.001) return "below 0.1 %";
  return `${grouped(Math.floor(share * 1000) / 10)} %`;
}

/** 14 seconds, 3 hours, 12 days: the greatest unit alone. */
export function duration(lengthMs: number): string {
  if (lengthMs < SECOND_MS) return "a moment";
  const [unitMs, name] = UNITS.find(([unitMs]) => lengthMs >= unitMs) ?? [SECOND_MS, "second"];
  return counted(Math.floor(lengthMs / unitMs), name);
}

/** For "in the last …": hour, day, 3 days. */
export function span(lengthMs: number): string {
  return duration(lengthMs).replace(/^1 /, "");
}

export function ago(atMs: number, nowMs: number): string {
  return nowMs - atMs < SECOND_MS ? "just now" : `${duration(nowMs - atMs)} ago`;
}

/** 2026-11-21 17:03:09, by the clock of whoever reads. */
export function dateAndTime(atMs: number): string {
  const date = new Date(atMs);
  if (Number.isNaN(date.getTime())) return "beyond any calendar";
  return `${dateOnly(atMs)} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function timeOnly(atMs: number): string {
  const date = new Date(atMs);
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

export function dateOnly(atMs: number): string {
  const date = new Date(atMs);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** When something will end: the day while days matter, else the year, else that it does not matter. */
export function farDate(atMs: number | null, nowMs: number): string {
  if (atMs === null) return "not in any calendar";
  const years = (atMs - nowMs) / YEAR_MS;
  if (years > 10_000) return `in more than ${roughly(10 ** Math.floor(Math.log10(years)))} years`;
  if (years > 10) return `in the year ${new Date(atMs).getFullYear()}`;
  return `on ${dateOnly(atMs)}`;
}

/** What a coordinator says begins in the middle of a sentence. */
export function asSentence(text: string): string {
  const told = text.replace(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, (instant) => dateAndTime(Date.parse(instant)));
  return told.charAt(0).toUpperCase() + told.slice(1);
}

export function labelsInWords(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** With every character spelt out that is not seen, or that turns the order of others: `\u{202e}`. */
export function readable(text: string): string {
  return text.replace(/[^\P{C}\n]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
