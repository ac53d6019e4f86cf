/** Numbers, times and texts as people read them. Pure. */
import { withSeparators } from "@callnumber/protocol/api";
import type { UseRate } from "@callnumber/protocol/schemas";

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

const LARGE = new Intl.NumberFormat("en-US", {
  notation: "compact",
  compactDisplay: "long",
  maximumFractionDigits: 1,
  roundingMode: "floor",
});

/** 1,073,741,823 */
export function formatNumber(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 1 });
}

/** 1 run, 2 runs */
export function formatCount(count: number, one: string): string {
  return `${formatNumber(count)} ${count === 1 ? one : `${one}s`}`;
}

/** 17.5 trillion, rounded down; below a million every digit. */
export function formatLargeNumber(value: number): string {
  return value < 1_000_000 ? formatNumber(value) : LARGE.format(value);
}

/** Rounded down, and never to 0 %. */
export function formatShare(share: number): string {
  if (share > 0 && share < 0.001) return "below 0.1 %";
  return `${formatNumber(Math.floor(share * 1000) / 10)} %`;
}

/** 14 seconds, 3 hours, 12 days: the greatest unit alone. */
export function formatDuration(lengthMs: number): string {
  if (lengthMs < SECOND_MS) return "a moment";
  const [unitMs, name] = UNITS.find(([unitMs]) => lengthMs >= unitMs) ?? [SECOND_MS, "second"];
  return formatCount(Math.floor(lengthMs / unitMs), name);
}

/** For "in the last …": hour, day, 3 days. */
export function formatWindow(lengthMs: number): string {
  return formatDuration(lengthMs).replace(/^1 /, "");
}

export function formatAge(atMs: number, nowMs: number): string {
  return nowMs - atMs < SECOND_MS ? "just now" : `${formatDuration(nowMs - atMs)} ago`;
}

/** CET, GMT−5: the time zone of the reader at a time. */
export function formatZone(atMs: number): string {
  return formatDateTime(atMs).replace(/^\S+ \S+ /, "");
}

/** 2026-11-21 17:03:09 CET, in the time zone of the reader. */
export function formatDateTime(atMs: number): string {
  const date = new Date(atMs);
  // Sweden writes dates as ISO 8601 does.
  const style = { dateStyle: "short", timeStyle: "long" } as const;
  return Number.isNaN(date.getTime()) ? "no date" : date.toLocaleString("sv-SE", style);
}

/** The times that a chart names: at most seven, at full quarters, hours or days of the reader. */
export function ticksIn(fromMs: number, lengthMs: number): readonly number[] {
  const stepMs = [15 * MINUTE_MS, 6 * HOUR_MS, DAY_MS].find((stepMs) => lengthMs / stepMs <= 7) ?? lengthMs;
  const zoneMs = new Date(fromMs).getTimezoneOffset() * MINUTE_MS;
  const firstMs = Math.ceil((fromMs - zoneMs) / stepMs) * stepMs + zoneMs;
  const count = Math.ceil((fromMs + lengthMs - firstMs) / stepMs);
  return Array.from({ length: count }, (_, index) => firstMs + index * stepMs);
}

/** 17:15, or 21 Nov in a chart of several days. */
export function formatTick(atMs: number, lengthMs: number): string {
  const style = lengthMs > DAY_MS ? ({ month: "short", day: "numeric" } as const) : ({ timeStyle: "short" } as const);
  return new Date(atMs).toLocaleString("en-GB", style);
}

/** When the runs will end at a rate, as exactly as it matters. */
export function formatEnd({ windowMs, exhaustedAtMs: atMs }: UseRate, nowMs: number): string {
  // In less than an hour too little is leased to say so.
  if (atMs === null) return windowMs < HOUR_MS ? "not known yet" : "in no year that a calendar has";
  const years = (atMs - nowMs) / YEAR_MS;
  if (years > 10_000) return `in more than ${formatLargeNumber(10 ** Math.floor(Math.log10(years)))} years`;
  if (years > 10) return `in the year ${new Date(atMs).getFullYear()}`;
  return `on ${formatDateTime(atMs).slice(0, 10)}`;
}

/** A message of the coordinator, which begins in lower case, and has times in UTC and numbers without separators. */
export function formatMessage(text: string): string {
  const local = withSeparators(text).replace(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, (instant) =>
    formatDateTime(Date.parse(instant)),
  );
  return local.charAt(0).toUpperCase() + local.slice(1);
}

/** The commands that a message of the coordinator quotes. */
export function commandsIn(explanation: string): readonly string[] {
  return [...explanation.matchAll(/`(callnumber [^`]+)`/g)].map(([, command]) => command as string);
}

export function formatLabels(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}

/** With every character escaped that is not seen, or that turns the order of others: `\u{202e}`. */
export function escapeText(text: string): string {
  return text.replace(/[^\P{C}\n]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
