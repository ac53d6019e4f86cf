/** A flood of one event passes in bounded number, is counted in a sum, and suppresses no other event. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  CALLER_EVENTS,
  CALLERS_KEPT_MAX,
  CALLERS_SHOWN_MAX,
  EVENTS_PER_SECOND_MAX,
  type EventLevel,
  EventSuppressor,
  SUMS_PER_SECOND_MAX,
} from "../src/events/events.js";

let passed: [level: string, event: string, fields: object][];
let suppressor: EventSuppressor;

beforeEach(() => {
  vi.useFakeTimers();
  passed = [];
  suppressor = new EventSuppressor(CALLER_EVENTS, ({ level, event, fields }) => passed.push([level, event, fields]));
});

afterEach(() => {
  suppressor.close();
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

function send(count: number, event: string, fields: object = {}, level: EventLevel = "info"): void {
  for (let sent = 0; sent < count; sent++) suppressor.take({ level, event, fields });
}

const refuse = (count: number, code: string, more: object = {}) =>
  send(count, "request_rejected", { code, remoteAddress: "10.0.0.1", ...more });
const sumsOf = (name: string) => passed.filter(([, event]) => event === name).map(([, , fields]) => fields);
const caller = (rejectionCount: number, more: object = {}) => ({ remoteAddress: "10.0.0.1", rejectionCount, ...more });

test("a second lets the first rejections of a code pass, and one sum of the others", () => {
  refuse(1_000, "unauthorized");
  refuse(EVENTS_PER_SECOND_MAX + 1, "forbidden");
  expect(passed).toHaveLength(2 * EVENTS_PER_SECOND_MAX);
  vi.advanceTimersByTime(1_000);
  const suppressed = 1_000 - EVENTS_PER_SECOND_MAX;
  expect(sumsOf("rejections_suppressed")).toEqual([
    { code: "unauthorized", rejectionCount: suppressed, callers: [caller(suppressed)] },
    { code: "forbidden", rejectionCount: 1, callers: [caller(1)] },
  ]);
});

test("the next second lets events pass again, and passes no sum where nothing was suppressed", () => {
  refuse(EVENTS_PER_SECOND_MAX, "unauthorized");
  vi.advanceTimersByTime(1_000);
  refuse(EVENTS_PER_SECOND_MAX, "unauthorized");
  vi.advanceTimersByTime(10_000);
  expect(passed).toHaveLength(2 * EVENTS_PER_SECOND_MAX);
});

test("events that no client can cause at will all pass", () => {
  send(100, "recovered", { namespace: "main" }, "warn");
  expect(passed).toHaveLength(100);
});

test.each([...CALLER_EVENTS].filter((event) => event !== "request_rejected"))(
  "a flood of %s passes its first events, and one sum of the others at their level",
  (event) => {
    send(100, event, { namespace: "main" }, "warn");
    expect(passed).toHaveLength(EVENTS_PER_SECOND_MAX);
    vi.advanceTimersByTime(1_000);
    const fields = { namespace: "main", of: event, eventCount: 100 - EVENTS_PER_SECOND_MAX };
    expect(passed.slice(EVENTS_PER_SECOND_MAX)).toEqual([["warn", "events_suppressed", fields]]);
  },
);

test("a flood suppresses neither another event, nor another code, nor another level", () => {
  send(100, "clock_skew", {}, "warn");
  send(100, "request_rejected", { code: "forbidden" }, "debug");
  refuse(EVENTS_PER_SECOND_MAX, "clock_skew");
  refuse(EVENTS_PER_SECOND_MAX, "forbidden");
  send(1, "run_above_high_water_mark", {}, "warn");
  expect(passed).toHaveLength(4 * EVENTS_PER_SECOND_MAX + 1);
  vi.advanceTimersByTime(1_000);
  expect(passed.slice(4 * EVENTS_PER_SECOND_MAX + 1).map(([level, event]) => [level, event])).toEqual([
    ["warn", "events_suppressed"],
    ["debug", "rejections_suppressed"],
  ]);
});

test("each namespace has a sum, and invented namespaces have one together", () => {
  refuse(EVENTS_PER_SECOND_MAX, "forbidden");
  for (let count = 0; count < 1_000; count++) refuse(1, "forbidden", { namespace: `invented-${count}` });
  vi.advanceTimersByTime(1_000);
  const sums = sumsOf("rejections_suppressed") as { namespace?: string; rejectionCount: number }[];
  expect(sums).toHaveLength(SUMS_PER_SECOND_MAX + 1);
  expect(sums[0]).toMatchObject({ namespace: "invented-0", rejectionCount: 1 });
  expect(sums.at(-1)).toMatchObject({ namespace: undefined, rejectionCount: 1_000 - SUMS_PER_SECOND_MAX });
});

test("a sum names the callers that caused most of it, in bounded memory", () => {
  refuse(EVENTS_PER_SECOND_MAX, "forbidden");
  for (let index = 0; index < 2 * CALLERS_KEPT_MAX; index++)
    refuse(1, "forbidden", { remoteAddress: `10.1.0.${index}` });
  // Too late to be kept, and still counted.
  refuse(7, "forbidden", { tokenId: "late0000" });
  refuse(3, "forbidden", { remoteAddress: "10.1.0.4" });
  vi.advanceTimersByTime(1_000);
  refuse(EVENTS_PER_SECOND_MAX, "forbidden");
  refuse(4, "forbidden", { tokenId: "aaaaaaaa" });
  refuse(9, "forbidden", { tokenId: "bbbbbbbb" });
  vi.advanceTimersByTime(1_000);
  const [first, second] = sumsOf("rejections_suppressed") as { rejectionCount: number; callers: object[] }[];
  expect(first?.rejectionCount).toBe(2 * CALLERS_KEPT_MAX + 7 + 3);
  expect(first?.callers).toHaveLength(CALLERS_SHOWN_MAX);
  expect(first?.callers[0]).toEqual({ remoteAddress: "10.1.0.4", rejectionCount: 4 });
  const callers = [caller(9, { tokenId: "bbbbbbbb" }), caller(4, { tokenId: "aaaaaaaa" })];
  expect(second).toEqual({ code: "forbidden", rejectionCount: 13, callers });
});

test("a sum that is pending passes at the close", () => {
  refuse(EVENTS_PER_SECOND_MAX + 5, "unauthorized");
  suppressor.close();
  expect(sumsOf("rejections_suppressed")).toMatchObject([{ code: "unauthorized", rejectionCount: 5 }]);
});
