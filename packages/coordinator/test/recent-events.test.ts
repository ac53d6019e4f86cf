/** The recent events, as they are kept for operators: numbered, bounded, without secrets, floods in sums. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CALLER_EVENTS, EVENTS_PER_SECOND_MAX, EventHub } from "../src/events/events.js";
import { NOTABLE_EVENT_COUNT, RECENT_EVENT_COUNT, RecentEvents } from "../src/events/recent-events.js";
import { SILENT_LOG } from "../src/log.js";

const NOW_MS = 1_000_000;

let recent: RecentEvents;
let hub: EventHub;

beforeEach(() => {
  vi.useFakeTimers({ now: NOW_MS });
  recent = new RecentEvents();
  hub = new EventHub(SILENT_LOG);
  hub.subscribe(recent.take);
});

afterEach(() => void vi.useRealTimers());

const LEASE = { namespace: "main", firstRun: 1, runCount: 2, nonce: "the-secret-of-its-holder" };

const shown = (from = 0) =>
  recent
    .all()
    .slice(from)
    .map(({ event, namespace, fields }) => [event, namespace, fields]);

function expectAscending(): void {
  const ids = recent.all().map(({ id }) => id);
  expect(ids).toEqual([...ids].sort((one, other) => one - other));
}

test("recent events are numbered from one, without gaps, and have namespace and code apart from their fields", () => {
  hub.info({ namespace: "main", storeId: "s" }, "init");
  hub.warn({ namespace: "main", code: "store_forked", explanation: "two copies" }, "stopped");
  hub.warn({ reason: "away" }, "heartbeat_failed");
  const [atMs, namespace] = [NOW_MS, "main"];
  const stopped = { event: "stopped", code: "store_forked", fields: { explanation: "two copies" } };
  const failed = { event: "heartbeat_failed", namespace: null, code: null, fields: { reason: "away" } };
  expect(recent.all()).toEqual([
    { id: 1, atMs, level: "info", event: "init", namespace, code: null, fields: { storeId: "s" } },
    { id: 2, atMs, level: "warn", namespace, ...stopped },
    { id: 3, atMs, level: "warn", ...failed },
  ]);
});

test("recent events have no debug events, no nonce of a lease and no stack of an error", () => {
  hub.debug({ namespace: "main" }, "report");
  hub.info(LEASE, "lease");
  hub.error({ err: new Error("with a stack"), path: "/v1" }, "internal_error");
  expect(shown()).toEqual([
    ["lease", "main", { firstRun: 1, runCount: 2 }],
    ["internal_error", null, { path: "/v1" }],
  ]);
});

test("recent events have some leases of each second, and one sum of the others for each namespace", () => {
  for (let count = 0; count < EVENTS_PER_SECOND_MAX + 30; count++) hub.info(LEASE, "lease");
  for (let count = 0; count < 5; count++) hub.info({ ...LEASE, namespace: "lists" }, "lease");
  expect(recent.all()).toHaveLength(EVENTS_PER_SECOND_MAX);
  vi.advanceTimersByTime(1_000);
  hub.info(LEASE, "lease");
  expect(shown(EVENTS_PER_SECOND_MAX)).toEqual([
    ["leases", "main", { leaseCount: 30, runCount: 60 }],
    ["leases", "lists", { leaseCount: 5, runCount: 10 }],
    ["lease", "main", { firstRun: 1, runCount: 2 }],
  ]);
});

test("recent events continue after the last one that a client has, and report when some are missing", () => {
  const lease = () => {
    vi.advanceTimersByTime(1_000);
    hub.info(LEASE, "lease");
  };
  for (let count = 0; count < 3; count++) lease();
  expect(recent.since(1)).toMatchObject({ isComplete: true, events: [{ id: 2 }, { id: 3 }] });
  expect(recent.since(3)).toEqual({ isComplete: true, events: [] });
  expect(recent.since(4).isComplete).toBe(false);
  for (let count = 0; count < RECENT_EVENT_COUNT; count++) lease();
  expect(recent.since(3)).toMatchObject({ isComplete: true });
  expect(recent.since(2)).toMatchObject({ isComplete: false });
  expect(recent.all()).toHaveLength(RECENT_EVENT_COUNT);
});

test("recent events keep a number of events of the guard, and no rejection, however many leases follow", () => {
  hub.info({ code: "forbidden" }, "request_rejected");
  for (let mark = 0; mark < NOTABLE_EVENT_COUNT + 50; mark++) hub.warn({ namespace: "main", mark }, "recovered");
  for (let count = 0; count < 2 * RECENT_EVENT_COUNT; count++) {
    vi.advanceTimersByTime(100);
    hub.info(LEASE, "lease");
  }
  const skips = recent.all().filter(({ event }) => event === "recovered");
  expect(skips).toHaveLength(NOTABLE_EVENT_COUNT);
  expect(recent.all()).toHaveLength(RECENT_EVENT_COUNT + NOTABLE_EVENT_COUNT);
  expect(skips.at(-1)?.fields).toEqual({ mark: NOTABLE_EVENT_COUNT + 49 });
  expectAscending();
});

test.each([...CALLER_EVENTS])(
  "recent events keep those of the guard and of others, however often a client causes %s",
  (event) => {
    const [other] = [...CALLER_EVENTS].filter((name) => name !== event && name !== "request_rejected") as [string];
    const before = ["init", "recovered", other];
    for (const name of before) hub.warn({ namespace: "main" }, name);
    for (let second = 0; second < 60; second++) {
      for (let count = 0; count < 2 * EVENTS_PER_SECOND_MAX; count++) hub.warn({ namespace: "main" }, event);
      vi.advanceTimersByTime(1_000);
    }
    recent.close();
    const all = recent.all();
    expect(all.slice(0, 3).map((one) => [one.id, one.event])).toEqual(before.map((name, index) => [index + 1, name]));
    expect(all).toHaveLength(RECENT_EVENT_COUNT + before.length);
    expectAscending();
    const sum = event === "request_rejected" ? "rejections_suppressed" : "events_suppressed";
    expect(all.at(-1)).toMatchObject({ event: sum, namespace: "main" });
  },
);
