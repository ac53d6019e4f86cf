/** The last events, as they are kept for whoever watches: numbered, bounded, without secrets, floods in sums. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CALLER_EVENTS, EVENTS_PER_SECOND_MAX, EventHub } from "../src/events/events.js";
import {
  CALLER_EVENT_COUNT,
  NOTABLE_EVENT_COUNT,
  RECENT_EVENT_COUNT,
  RecentEvents,
} from "../src/events/recent-events.js";
import { SILENT_LOG } from "../src/log.js";

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }));
afterEach(() => void vi.useRealTimers());

function watched() {
  const recent = new RecentEvents();
  const hub = new EventHub(SILENT_LOG);
  hub.subscribe(recent.take);
  return { recent, hub };
}

const lease = { namespace: "main", firstRun: 1, runCount: 2, nonce: "the-secret-of-its-holder" };

describe("the recent events", () => {
  test("are numbered from one, without gaps, and say namespace and code beside their fields", () => {
    const { recent, hub } = watched();
    hub.info({ namespace: "main", storeId: "s" }, "init");
    hub.warn({ namespace: "main", code: "store_forked", explanation: "two copies" }, "stopped");
    hub.warn({ reason: "away" }, "heartbeat_failed");
    expect(recent.all()).toEqual([
      { id: 1, atMs: 1_000_000, level: "info", event: "init", namespace: "main", code: null, fields: { storeId: "s" } },
      {
        id: 2,
        atMs: 1_000_000,
        level: "warn",
        event: "stopped",
        namespace: "main",
        code: "store_forked",
        fields: { explanation: "two copies" },
      },
      {
        id: 3,
        atMs: 1_000_000,
        level: "warn",
        event: "heartbeat_failed",
        namespace: null,
        code: null,
        fields: { reason: "away" },
      },
    ]);
  });

  test("leave out what debugs, and never tell the nonce of a lease or the stack of an error", () => {
    const { recent, hub } = watched();
    hub.debug({ namespace: "main" }, "report");
    hub.info(lease, "lease");
    hub.error({ err: new Error("with a stack"), path: "/v1" }, "internal_error");
    expect(JSON.stringify(recent.all())).not.toMatch(/secret|stack/);
    expect(recent.all().map(({ event, fields }) => [event, fields])).toEqual([
      ["lease", { firstRun: 1, runCount: 2 }],
      ["internal_error", { path: "/v1" }],
    ]);
  });

  test("tell so many leases of a second one by one, and all beyond in one sum for each namespace", () => {
    const { recent, hub } = watched();
    for (let count = 0; count < EVENTS_PER_SECOND_MAX + 30; count++) hub.info(lease, "lease");
    for (let count = 0; count < 5; count++) hub.info({ ...lease, namespace: "lists" }, "lease");
    expect(recent.all()).toHaveLength(EVENTS_PER_SECOND_MAX);
    vi.advanceTimersByTime(1_000);
    hub.info(lease, "lease");
    const after = recent.all().slice(EVENTS_PER_SECOND_MAX);
    expect(after.map(({ event, namespace, fields }) => [event, namespace, fields])).toEqual([
      ["leases", "main", { leaseCount: 30, runCount: 60 }],
      ["leases", "lists", { leaseCount: 5, runCount: 10 }],
      ["lease", "main", { firstRun: 1, runCount: 2 }],
    ]);
  });

  test("go on where a reader stopped, and say so when that is too long ago", () => {
    const { recent, hub } = watched();
    const lease_ = () => {
      vi.advanceTimersByTime(1_000);
      hub.info(lease, "lease");
    };
    for (let count = 0; count < 3; count++) lease_();
    expect(recent.since(1)).toMatchObject({ isComplete: true, events: [{ id: 2 }, { id: 3 }] });
    expect(recent.since(3)).toEqual({ isComplete: true, events: [] });
    expect(recent.since(4).isComplete).toBe(false);
    for (let count = 0; count < RECENT_EVENT_COUNT; count++) lease_();
    expect(recent.since(3)).toMatchObject({ isComplete: true });
    expect(recent.since(2)).toMatchObject({ isComplete: false });
    expect(recent.all()).toHaveLength(RECENT_EVENT_COUNT);
  });

  test("keep what the guard did, however many leases follow, and no more of it than they say", () => {
    const { recent, hub } = watched();
    for (let count = 0; count < NOTABLE_EVENT_COUNT + 50; count++) hub.warn({ namespace: "main", mark: count }, "jump");
    for (let count = 0; count < 2 * RECENT_EVENT_COUNT; count++) {
      vi.advanceTimersByTime(100);
      hub.info(lease, "lease");
    }
    const jumps = recent.all().filter(({ event }) => event === "jump");
    expect(jumps).toHaveLength(NOTABLE_EVENT_COUNT);
    expect(jumps.at(-1)?.fields).toEqual({ mark: NOTABLE_EVENT_COUNT + 49 });
    const ids = recent.all().map(({ id }) => id);
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
  });

  test.each([...CALLER_EVENTS])(
    "keep what the guard did, however often a caller causes %s, and what others did",
    (event) => {
      const { recent, hub } = watched();
      const [other] = [...CALLER_EVENTS].filter((name) => name !== event && name !== "request_rejected") as [string];
      hub.info({ namespace: "main", storeId: "s" }, "init");
      hub.warn({ namespace: "main", mark: 7 }, "jump");
      hub.warn({ namespace: "main" }, other);
      for (let second = 0; second < 60; second++) {
        for (let count = 0; count < 2 * EVENTS_PER_SECOND_MAX; count++) hub.warn({ namespace: "main" }, event);
        vi.advanceTimersByTime(1_000);
      }
      recent.close();
      const all = recent.all();
      expect(all.slice(0, 3).map((one) => [one.id, one.event])).toEqual([
        [1, "init"],
        [2, "jump"],
        [3, other],
      ]);
      expect(all.length).toBeLessThanOrEqual(RECENT_EVENT_COUNT + CALLER_EVENT_COUNT + 3);
      const ids = all.map(({ id }) => id);
      expect(ids).toEqual([...ids].sort((a, b) => a - b));
      const sum = event === "request_rejected" ? "rejections_suppressed" : "events_suppressed";
      expect(all.at(-1)).toMatchObject({ event: sum, namespace: "main" });
    },
  );
});
