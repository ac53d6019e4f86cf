/** Numbers, times, messages and events as people read them. */
import type { OperatorEvent } from "@callnumber/protocol/api";
import { expect, test } from "vitest";
import {
  commandsIn,
  escapeText,
  formatAge,
  formatDateTime,
  formatDuration,
  formatEnd,
  formatLargeNumber,
  formatMessage,
  formatShare,
  formatTick,
  formatWindow,
  formatZone,
  ticksIn,
} from "../src/format.js";
import { eventLines, formatEvent, isAboutGuard } from "../src/format-event.js";

const NOW_MS = Date.UTC(2026, 10, 21);
const YEAR_MS = 365.25 * 86_400_000;

function event(name: string, fields: Record<string, unknown>, more: Partial<OperatorEvent> = {}): OperatorEvent {
  return { id: 1, atMs: NOW_MS, level: "info", event: name, namespace: "main", code: null, fields, ...more };
}

test("a share is never rounded to 0 % or 100 %", () => {
  expect([0, 1e-8, 0.9999, 1].map(formatShare)).toEqual(["0 %", "below 0.1 %", "99.9 %", "100 %"]);
});

test("a time of the coordinator is shown in the time zone of the reader", () => {
  expect(formatMessage("leased at 2026-11-21T21:30:59.542Z, by x")).toBe(
    `Leased at ${formatDateTime(Date.UTC(2026, 10, 21, 21, 30, 59))}, by x`,
  );
});

test("a time has its zone", () => {
  expect(formatDateTime(NOW_MS)).toMatch(/^2026-11-2\d \d\d:\d\d:00 [A-Z]{3,}/);
  expect(formatDateTime(NOW_MS)).toBe(`${formatDateTime(NOW_MS).slice(0, 19)} ${formatZone(NOW_MS)}`);
});

test("the numbers of a message have separators, and those of its commands and times do not", () => {
  const message = "65735 leases since 2026-11-21T21:30:59.542Z: `callnumber recover --min-run 65735`";
  expect(formatMessage(message)).toMatch(/^65,735 leases since 2026-11-2\d .*`callnumber recover --min-run 65735`$/);
});

test.each([
  ["an hour", 3_600_000, 4, 15 * 60_000],
  ["a day", 24 * 3_600_000, 4, 6 * 3_600_000],
  ["a week", 7 * 24 * 3_600_000, 7, 24 * 3_600_000],
])("the axis of %s names full times of the reader", (_, lengthMs, count, stepMs) => {
  const fromMs = NOW_MS + 61_000;
  const ticks = ticksIn(fromMs, lengthMs);
  expect(ticks).toHaveLength(count);
  expect(ticks[0]).toBeGreaterThanOrEqual(fromMs);
  expect(ticks.at(-1)).toBeLessThan(fromMs + lengthMs);
  expect((ticks[1] as number) - (ticks[0] as number)).toBe(stepMs);
  for (const atMs of ticks) expect(formatTick(atMs, lengthMs)).toMatch(/^(\d\d:\d[05]|\d\d? Nov)$/);
});

test("characters that are invisible or change the order of others are escaped, and no others", () => {
  expect(escapeText("a\u202eb\u2066\u001b[31m\u0000\u00ad\ud800")).toBe(
    "a\\u{202e}b\\u{2066}\\u{1b}[31m\\u{0}\\u{ad}\\u{d800}",
  );
  for (const text of ["two\nlines", "Bücher", "ספרים", "图书馆", "<b>"]) expect(escapeText(text)).toBe(text);
});

test("large numbers are rounded down", () => {
  expect(formatLargeNumber(999_999)).toBe("999,999");
  expect(formatLargeNumber(17_592_186_028_032)).toBe("17.5 trillion");
});

test("a duration is shown in one unit", () => {
  const durations = ["a moment", "1 second", "59 seconds", "1 hour", "1 day"];
  expect([0, 1_000, 59_999, 3_600_000, 90_000_000].map(formatDuration)).toEqual(durations);
  expect([3_600_000, 604_800_000].map(formatWindow)).toEqual(["hour", "7 days"]);
  expect(formatAge(NOW_MS - 5_000, NOW_MS)).toBe("5 seconds ago");
});

test("the end of the runs is shown as exactly as it matters", () => {
  const end = (exhaustedAtMs: number | null, windowMs = 3_600_000) =>
    formatEnd({ windowMs, runs: 7, runsPerDay: 168, exhaustedAtMs }, NOW_MS);
  expect(end(NOW_MS + 9 * 86_400_000)).toMatch(/^on 2026-\d\d-\d\d$/);
  expect(end(NOW_MS + 60 * YEAR_MS)).toBe("in the year 2086");
  expect(end(NOW_MS + 123_456 * YEAR_MS)).toBe("in more than 100,000 years");
  expect(end(null)).toBe("in no year that a calendar has");
  expect(end(null, 60_000)).toBe("not known yet");
});

test("the commands that a message quotes are found", () => {
  const command = "callnumber recover --store redis://store --namespace lists --min-run 0/65735";
  expect(commandsIn(`Restore the store, or run \`${command}\`. See \`doctor\`.`)).toEqual([command]);
});

test("a stop is shown with its cause, and without what to do, which the headline has", () => {
  const explanation =
    'namespace "main" is missing, but runs up to 65735 were leased or skipped. Nothing is leased. Restore it';
  expect(formatEvent(event("stopped", { explanation }))).toBe(
    'leasing stopped: namespace "main" is missing, but runs up to 65735 were leased or skipped',
  );
});

test("a recovery is shown with the runs that it skipped", () => {
  expect(formatEvent(event("recovered", { version: 0, before: 3, mark: 65_733, reason: "epoch_changed" }))).toBe(
    "recovered (epoch changed): skipped from run 3 to run 65733; the runs between are never leased",
  );
});

test("a lease is shown with the first and the last of its runs", () => {
  const lease = { version: 0, firstRun: 7, runCount: 3, holder: { name: "importer" } };
  expect(formatEvent(event("lease", lease))).toBe("runs 7-9 leased to importer");
  expect(formatEvent(event("lease", { ...lease, runCount: 1 }))).toBe("run 7 leased to importer");
});

test("events without a sentence of their own are shown by their name and reason", () => {
  expect(formatEvent(event("segment_archived", { reason: "by age" }))).toBe("segment archived: by age");
  const alarm = { name: "headroom_low", severity: "warning", explanation: "7 runs are left" };
  expect(formatEvent(event("alarm", alarm))).toBe("alarm: 7 runs are left");
  expect(formatEvent(event("constructor", {}))).toBe("constructor");
});

test("a sum of events is about what it sums up", () => {
  const again = event("events_suppressed", { of: "clock_skew", eventCount: 1_596 });
  expect(formatEvent(again)).toBe("1,596 more in the same second: clock skew");
  expect(isAboutGuard(again)).toBe(true);
  expect(isAboutGuard(event("events_suppressed", { of: "lease", eventCount: 3 }))).toBe(false);
});

test("rejected requests of importers are shown and counted, and those of pages and terminals are not", () => {
  const rejected = (path: string) =>
    event("request_rejected", { path, reason: "the store is recovering" }, { code: "store_recovering" });
  expect(isAboutGuard(rejected("/v1/namespaces/main/status"))).toBe(false);
  expect(isAboutGuard(rejected("/v1/namespaces/main/leases"))).toBe(true);
  expect(eventLines([1, 2, 3].map(() => rejected("/v1/namespaces/main/leases")))).toMatchObject([{ count: 3 }]);
});
