/** Metrics over real sockets: what happens is counted, labels are bounded, and a scrape costs one request to the store. */
import { beforeEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { CoordinatorError } from "../src/errors.js";
import { SpareRuns } from "../src/metrics/event-counts.js";
import { holder } from "./commands-for-test.js";
import { gatedMethod, notingStore } from "./gated-store.js";
import { metricNamesIn, samplesIn } from "./metrics-text.js";
import { opened } from "./raw-client.js";
import { leaseRequest, served } from "./served.js";
import { Clock, SettableStore } from "./settable-store.js";

type Served = Awaited<ReturnType<typeof served>>;

let { store, coordinator, events, call, get, lease, place } = {} as Served;

beforeEach(async () => {
  ({ store, coordinator, events, call, get, lease, place } = await served());
});

async function scrape(from: Pick<Served, "get"> = { get }) {
  const { status, headers, text } = await from.get("/metrics");
  expect(status).toBe(200);
  const samples = samplesIn(text);
  return { text, headers, value: (key: string) => samples.get(`callnumber_${key}`), keys: [...samples.keys()] };
}

/** Writes one heartbeat. */
async function heartbeat() {
  coordinator.startHeartbeat();
  await coordinator.stopHeartbeat();
}

test("metrics count leases, their runs and how long they took", async () => {
  await lease({ runCount: 3 });
  await lease();
  const { value, headers } = await scrape();
  expect(headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  expect(value('leases_total{namespace="main"}')).toBe(2);
  expect(value('runs_leased_total{namespace="main"}')).toBe(4);
  expect(value('lease_duration_seconds_count{namespace="main"}')).toBe(2);
  expect(value('lease_duration_seconds_bucket{le="10",namespace="main"}')).toBe(2);
  expect(value('lease_duration_seconds_sum{namespace="main"}')).toBeGreaterThan(0);
});

test("metrics show the state of each namespace, of the store and of the process", async () => {
  await coordinator.initNamespace("lists", { firstRun: 100, rate: 16, nodeCount: 1 });
  await lease({ runCount: 2 });
  await lease({}, "lists");
  const { value, text } = await scrape();
  const inMain = (name: string) => value(`${name}{namespace="main"}`);
  expect(inMain("high_water_mark")).toBe(2);
  expect(inMain("runs_used")).toBe(2);
  expect(inMain("runs_left")).toBe(2 ** 30 - 1 - 2);
  expect(inMain("headroom_runs")).toBeGreaterThan(60_000);
  expect(inMain("layout_version")).toBe(0);
  expect(inMain("data_nodes")).toBe(1);
  expect(value('high_water_mark{namespace="lists"}')).toBe(100);
  expect(value('runs_used{namespace="lists"}')).toBe(1);
  expect(value('ceiling_runs_per_second{namespace="lists"}')).toBe(16);
  expect(value('guard_state{namespace="main",state="active"}')).toBe(1);
  expect(value('guard_state{namespace="main",state="stopped"}')).toBe(0);
  expect(value("store_up")).toBe(1);
  expect(value(`build_info{node="${process.version}",release="1.2.3"}`)).toBe(1);
  expect(samplesIn(text).get("process_start_time_seconds")).toBeGreaterThan(1_700_000_000);
});

test("metrics count each rejection by its code, also where no route was reached", async () => {
  await lease();
  await lease({ lastRun: 2 });
  await lease({ runCount: 0 });
  await get("/nowhere");
  await call("DELETE", "/healthz");
  const { value } = await scrape();
  const rejected = (code: string, namespace: string) =>
    value(`rejected_requests_total{code="${code}",namespace="${namespace}"}`);
  expect(rejected("run_above_high_water_mark", "main")).toBe(1);
  expect(rejected("invalid_request", "main")).toBe(1);
  expect(rejected("not_found", "")).toBe(1);
  expect(rejected("method_not_allowed", "")).toBe(1);
});

test("metrics have no label that a client invented", async () => {
  for (let index = 0; index < 20; index++) await lease({}, `invented-${index}`);
  await lease({ holder: { ...holder, name: "invented" } });
  const { text, value } = await scrape();
  expect(text).not.toContain("invented");
  // In labels: among the bytes and seconds of this process there may be any figures.
  expect(text).not.toMatch(new RegExp(`="[^"]*${holder.pid}`));
  expect(value('rejected_requests_total{code="namespace_not_found",namespace=""}')).toBe(20);
});

test.each([
  ["", false],
  [", while the namespaces can't be listed", true],
])("metrics have no label that a client requests during a heartbeat%s", async (_, isAway) => {
  await lease();
  const reads = gatedMethod(store, "readNamespace");
  const requests = Array.from({ length: 5 }, (_one, index) => lease({}, `invented-${index}`));
  await expect.poll(() => reads.count).toBe(requests.length);
  if (isAway) {
    store.listNamespaces = async () => {
      throw new Error("away");
    };
  }
  coordinator.startHeartbeat();
  for (let index = 0; index < 2; index++) await scrape();
  reads.open();
  await Promise.all([...requests, coordinator.stopHeartbeat()]);
  const { text, value } = await scrape();
  expect(text).not.toContain("invented");
  expect(value('heartbeat_duration_seconds_count{namespace="main"}')).toBe(1);
});

test("metrics show the state of a namespace whose guard can't be opened, and no figures of its record", async () => {
  await new Coordinator({ store, name: "other" }).initNamespace("lists");
  const read = store.readNamespace.bind(store);
  store.readNamespace = async (namespace) => {
    if (namespace === "lists") throw new CoordinatorError("store_corrupt", "changed by another program");
    return await read(namespace);
  };
  await heartbeat();
  const { value, keys } = await scrape();
  expect(value('heartbeat_rejections_total{code="store_corrupt",namespace="lists"}')).toBe(1);
  expect(value('guard_state{namespace="lists",state="stopped"}')).toBe(1);
  expect(value('guard_state_since_timestamp_seconds{namespace="lists"}')).toBeGreaterThan(0);
  expect(keys).not.toContain('callnumber_high_water_mark{namespace="lists"}');
});

test("metrics begin at 0 for rejections of which one is enough for an alert", async () => {
  const rejected = async (namespace: string) => {
    const codes = ["run_above_high_water_mark", "clock_skew", "clock_moved_backward", "internal_error"];
    const { value } = await scrape();
    return codes.map((code) => value(`rejected_requests_total{code="${code}",namespace="${namespace}"}`));
  };
  expect(await rejected("")).toEqual([0, 0, 0, 0]);
  expect(await rejected("main")).toEqual([undefined, undefined, undefined, undefined]);
  await lease();
  expect(await rejected("main")).toEqual([0, 0, 0, 0]);
  expect((await scrape()).value('ledger_trim_failures_total{namespace=""}')).toBe(0);
});

test.each([
  ["leases_total", 'namespace="main"'],
  ["runs_leased_total", 'namespace="main"'],
  ["epoch_changes_total", 'namespace="main"'],
  ["leases_trimmed_total", 'namespace="main"'],
  ["ledger_trim_failures_total", 'namespace="main"'],
  ["recoveries_total", 'namespace="main",reason="heartbeat_expired"'],
  ["interruptions_total", 'cause="rolled_back",namespace="main"'],
  ["runs_discarded_total", 'namespace="main",reason="requester_gone"'],
])("metrics begin at 0 for a namespace that was never leased from: %s", async (name, labels) => {
  await heartbeat();
  const { value } = await scrape();
  expect(value(`${name}{${labels}}`)).toBe(0);
  expect(value('heartbeat_duration_seconds_count{namespace="main"}')).toBe(1);
});

test("metrics count the events of other parts: alarms, trims, findings, heartbeats, dropped lines of the log", async () => {
  await lease();
  const namespace = "main";
  for (const [name, severity] of [
    ["runs_used_80", "warning"],
    ["holder_restarts", "warning"],
    ["headroom_low", "notice"],
    ["headroom_low", "warning"],
    ["run_ceiling_ending", "invented"],
    ["invented", "warning"],
  ])
    events.warn({ namespace, name, severity }, "alarm");
  events.info({ namespace, name: "holder_restarts" }, "alarm_cleared");
  events.info({ namespace, leaseCount: 7 }, "ledger_trimmed");
  events.error({ namespace }, "ledger_trim_failed");
  events.error({ code: "store_eviction_enabled", what: "a" }, "preflight_finding");
  events.warn({ what: "b" }, "preflight_finding");
  events.info({ what: "b" }, "preflight_finding_resolved");
  events.warn({ reason: "x" }, "preflight_failed");
  events.warn({ reason: "x" }, "heartbeat_failed");
  for (const lineCount of [3, 4]) events.error({ lineCount, reason: "x" }, "log_lines_dropped");
  events.warn({ namespace, runCount: Number.NaN, reason: "lease_discarded" }, "discarded");
  events.warn({ namespace, runCount: 5, reason: "invented" }, "discarded");
  events.warn({ namespace, code: "store_forked" }, "stopped");
  const { value, text } = await scrape();
  const alarm = (name: string, severity: string) =>
    value(`alarms{name="${name}",namespace="main",severity="${severity}"}`);
  expect(alarm("runs_used_80", "warning")).toBe(1);
  expect(alarm("holder_restarts", "warning")).toBe(0);
  expect(["critical", "warning", "notice"].map((severity) => alarm("headroom_low", severity))).toEqual([0, 1, 0]);
  // Node's own figures may be NaN before their first sample.
  const ours = text.split("\n").filter((line) => line.startsWith("callnumber_"));
  expect(ours.join("\n")).not.toMatch(/invented|NaN/i);
  expect(value('leases_trimmed_total{namespace="main"}')).toBe(7);
  expect(value('ledger_trim_failures_total{namespace="main"}')).toBe(1);
  expect(value('preflight_findings{effect="rejects"}')).toBe(1);
  expect(value('preflight_findings{effect="warns"}')).toBe(0);
  expect(value("preflight_failures_total")).toBe(1);
  expect(value("heartbeat_failures_total")).toBe(1);
  expect(value("log_lines_dropped_total")).toBe(7);
  expect(value('stops_total{code="store_forked",namespace="main"}')).toBe(1);
});

test("metrics belong to one server: another one in the same process has its own", async () => {
  await lease();
  const { value } = await scrape(await served({ own: { store }, namespaces: ["lists"] }));
  expect(value('leases_total{namespace="main"}')).toBeUndefined();
});

test("metrics have a help, a type and a known prefix", async () => {
  const { text } = await scrape();
  for (const name of metricNamesIn(text)) {
    expect(name).toMatch(/^(callnumber|process|nodejs)_/);
    expect(text).toMatch(new RegExp(`^# HELP ${name} \\S`, "m"));
  }
});

describe("discarded runs", () => {
  /** The samples after something was done with a coordinator on a store whose responses can be changed. */
  async function valuesAfter(act: (store: SettableStore, coordinator: Coordinator) => Promise<void>) {
    const clock = new Clock();
    const settable = new SettableStore(clock);
    const { now, pause } = clock;
    const other = await served({ own: { store: settable, now, pause, bounds: settable.boundsOf() } });
    await act(settable, other.coordinator);
    return (await scrape(other)).value;
  }

  test("discarded runs include those of a lease that was granted and not verified", async () => {
    const value = await valuesAfter(async (settable, one) => {
      settable.alter = (applied, command) =>
        command?.step === "lease" ? { ...applied, check: { role: "slave", epoch: "", generation: 0 } } : applied;
      const request = leaseRequest({ runCount: 3 });
      await expect(one.lease("main", request)).rejects.toMatchObject({ code: "lease_discarded" });
    });
    expect(value('runs_discarded_total{namespace="main",reason="lease_discarded"}')).toBeGreaterThanOrEqual(3);
  });

  test("discarded runs include those that a recovery skips, which is counted with its cause", async () => {
    const value = await valuesAfter(async (settable, one) => {
      await one.lease("main", leaseRequest());
      settable.server.epoch = "second:life:0";
      await expect(one.lease("main", leaseRequest())).rejects.toMatchObject({ code: "run_ceiling_reached" });
    });
    expect(value('recoveries_total{namespace="main",reason="epoch_changed"}')).toBe(1);
    expect(value('epoch_changes_total{namespace="main"}')).toBe(1);
    expect(value('interruptions_total{cause="epoch_changed",namespace="main"}')).toBe(1);
    expect(value('runs_discarded_total{namespace="main",reason="skipped"}')).toBeGreaterThan(60_000);
  });

  test("discarded runs include those whose client disconnected before the response, and no others", async () => {
    await lease();
    const reason = 'runs_discarded_total{namespace="main",reason="requester_gone"}';
    expect((await scrape()).value(reason)).toBe(0);
    const open = store.closeGate();
    const discarded = new Promise<object>((resolve) => {
      events.subscribe(({ event, fields }) => event === "discarded" && resolve(fields));
    });
    const socket = await opened(place);
    const body = JSON.stringify(leaseRequest({ runCount: 7 }));
    const head = "POST /v1/namespaces/main/leases HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
    socket.write(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await expect.poll(() => store.leaseCount).toBe(2);
    socket.destroy();
    // The server learns of it in an iteration of its own; a later request is answered later.
    await scrape();
    await scrape();
    open();
    expect(await discarded).toMatchObject({ namespace: "main", runCount: 7, reason: "requester_gone" });
    expect((await scrape()).value(reason)).toBe(7);
  });
});

test("a scrape sends the store one request, however many namespaces there are", async () => {
  const calls: string[] = [];
  const other = await served({ own: { store: notingStore(calls) }, namespaces: ["a", "b", "c"] });
  for (const name of ["a", "b", "c"]) await other.lease({}, name);
  calls.length = 0;
  await scrape(other);
  expect(calls).toEqual(["listNamespaces"]);
});

test("a scrape is answered while the store does not respond, with what is known", async () => {
  await lease();
  const lists = gatedMethod(store, "listNamespaces");
  for (const { value } of await Promise.all([scrape(), scrape()])) {
    expect(value("store_up")).toBe(0);
    expect(value('high_water_mark{namespace="main"}')).toBe(1);
  }
  expect((await scrape()).value("store_up")).toBe(0);
  expect(lists.count).toBe(1);
  lists.open();
  await expect.poll(async () => (await scrape()).value("store_up")).toBe(1);
});

test("a scrape is answered when the store fails", async () => {
  await lease();
  store.listNamespaces = async () => {
    throw new Error("away");
  };
  expect((await scrape()).value("store_up")).toBe(0);
});

test("spare runs are the sum of what each client reported last", async () => {
  await lease({ spareRunCount: 5 });
  await lease({ spareRunCount: 2 });
  await lease({ spareRunCount: 4, holder: { ...holder, pid: 1 } });
  await lease({ holder: { ...holder, pid: 2 } });
  const { value } = await scrape();
  expect(value('spare_runs{namespace="main"}')).toBe(6);
  expect(value('live_clients{namespace="main"}')).toBe(3);
});

test("spare runs are forgotten with clients that ask no more, in bounded memory", () => {
  let nowMs = 0;
  const spares = new SpareRuns(() => nowMs);
  spares.note({ name: "a", host: "h", pid: 1 }, 3);
  nowMs = 500_000;
  spares.note({ name: "b", host: "h", pid: 1 }, 4);
  expect(spares.sum()).toEqual({ runCount: 7, holderCount: 2 });
  nowMs = 600_001;
  expect(spares.sum()).toEqual({ runCount: 4, holderCount: 1 });
  for (let pid = 0; pid < 20_000; pid++) spares.note({ name: "loop", host: "h", pid }, 1);
  expect(spares.sum()).toEqual({ runCount: 10_000, holderCount: 10_000 });
});
