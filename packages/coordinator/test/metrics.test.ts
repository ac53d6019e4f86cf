/** What Prometheus is told: everything that happens is counted, labels are bounded, and a scrape hurts nobody. */
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { CoordinatorError } from "../src/errors.js";
import { EventHub } from "../src/events/events.js";
import { createServer, type Server } from "../src/http/server.js";
import { SILENT_LOG } from "../src/log.js";
import { SpareRuns } from "../src/metrics/spare-runs.js";
import { MemoryStore } from "../src/stores/memory.js";
import type { Outcome, StepCommand, Store } from "../src/stores/store.js";
import { SHORT_BOUNDS } from "./commands-for-test.js";
import { metricNamesIn, samplesIn } from "./metrics-text.js";
import { Clock, SettableStore } from "./settable-store.js";

const request = {
  runCount: 1,
  nonce: "nonce-0123456789",
  holder: { name: "importer", host: "mail-1", pid: 4711, labels: {} },
  lastRun: null,
  receipt: null,
  sentAtMs: 1_700_000_000_000,
};

/** A store that counts what it is asked, and answers when it is let. */
class WatchedStore extends MemoryStore {
  readonly asked: string[] = [];
  gate: Promise<void> = Promise.resolve();
  leaseGate: Promise<void> = Promise.resolve();
  recordGate: Promise<void> = Promise.resolve();
  onLease = () => {};
  isAway = false;
  damaged = "";
  override async step(namespace: string, command: StepCommand): Promise<Outcome> {
    this.asked.push(command.step);
    if (command.step === "lease") {
      this.onLease();
      await this.leaseGate;
    }
    return super.step(namespace, command);
  }
  override async readNamespace(namespace: string) {
    this.asked.push("readNamespace");
    await this.recordGate;
    if (namespace === this.damaged) throw new CoordinatorError("store_corrupt", "another hand");
    return super.readNamespace(namespace);
  }
  override async listNamespaces() {
    this.asked.push("listNamespaces");
    await this.gate;
    if (this.isAway) throw new Error("away");
    return super.listNamespaces();
  }
}

let store: WatchedStore;
let events: EventHub;
let coordinator: Coordinator;
let server: Server;
let base: string;

beforeEach(async () => {
  store = new WatchedStore();
  events = new EventHub(SILENT_LOG);
  coordinator = new Coordinator({ store, name: "test", log: events });
  await coordinator.initNamespace("main");
  server = await createServer({ coordinator, release: "1.2.3", events });
  base = await server.listen({ host: "127.0.0.1", port: 0 });
});

afterEach(() => server.stop());

async function scrape(from = base) {
  const answer = await fetch(`${from}/metrics`);
  expect(answer.status).toBe(200);
  const text = await answer.text();
  const samples = samplesIn(text);
  return { text, answer, value: (key: string) => samples.get(key), keys: [...samples.keys()] };
}

async function lease(body: object = request, namespace = "main") {
  const headers = { "content-type": "application/json" };
  return await fetch(`${base}/v1/namespaces/${namespace}/leases`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
}

describe("metrics", () => {
  test("count leases, their runs and how long they took", async () => {
    await lease({ ...request, runCount: 3 });
    await lease();
    const { value, answer } = await scrape();
    expect(answer.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(value('callnumber_leases_total{namespace="main"}')).toBe(2);
    expect(value('callnumber_runs_leased_total{namespace="main"}')).toBe(4);
    expect(value('callnumber_lease_duration_seconds_count{namespace="main"}')).toBe(2);
    expect(value('callnumber_lease_duration_seconds_bucket{le="10",namespace="main"}')).toBe(2);
    expect(value('callnumber_lease_duration_seconds_sum{namespace="main"}')).toBeGreaterThan(0);
  });

  test("show how each namespace stands", async () => {
    await coordinator.initNamespace("lists", { firstRun: 100, rate: 16, nodeCount: 1 });
    await lease({ ...request, runCount: 2 });
    await lease(request, "lists");
    const { value } = await scrape();
    const of = (name: string, namespace: string) => value(`callnumber_${name}{namespace="${namespace}"}`);
    expect(of("high_water_mark", "main")).toBe(2);
    expect(of("runs_left", "main")).toBe(2 ** 30 - 1 - 2);
    expect(of("high_water_mark", "lists")).toBe(100);
    expect(of("runs_used", "lists")).toBe(1);
    expect(of("ceiling_runs_per_second", "lists")).toBe(16);
    expect(of("headroom_runs", "main")).toBeGreaterThan(60_000);
    expect(of("generation", "main")).toBe(0);
    expect(value('callnumber_guard_state{namespace="main",state="active"}')).toBe(1);
    expect(value('callnumber_guard_state{namespace="main",state="stopped"}')).toBe(0);
    expect(value("callnumber_store_up")).toBe(1);
    expect(value(`callnumber_build_info{node="${process.version}",release="1.2.3"}`)).toBe(1);
    expect(value("process_start_time_seconds")).toBeGreaterThan(1_700_000_000);
  });

  test("count each refusal by its code, those that reach no route too", async () => {
    await lease();
    await lease({ ...request, lastRun: 2 });
    await lease({ ...request, runCount: 0 });
    await fetch(`${base}/nowhere`);
    await fetch(`${base}/healthz`, { method: "DELETE" });
    const { value } = await scrape();
    const refused = (code: string, namespace: string) =>
      value(`callnumber_rejected_requests_total{code="${code}",namespace="${namespace}"}`);
    expect(refused("run_above_high_water_mark", "main")).toBe(1);
    expect(refused("invalid_request", "main")).toBe(1);
    expect(refused("not_found", "")).toBe(1);
    expect(refused("method_not_allowed", "")).toBe(1);
  });

  test("never take a label from a stranger", async () => {
    for (let index = 0; index < 20; index++) await lease(request, `invented-${index}`);
    await lease({ ...request, holder: { ...request.holder, name: "stranger" } });
    const { text, value } = await scrape();
    expect(text).not.toContain("invented");
    expect(text).not.toContain("stranger");
    // In labels: among the bytes and seconds of this process there may be any figures.
    expect(text).not.toMatch(/="[^"]*4711/);
    expect(value('callnumber_rejected_requests_total{code="namespace_not_found",namespace=""}')).toBe(20);
  });

  test.each([
    ["that", false],
    ["that, while the namespaces can't be listed", true],
  ])("never take a label from a name that is asked for during a heartbeat: %s", async (_, isAway) => {
    await lease();
    let open = () => {};
    store.recordGate = new Promise((resolve) => {
      open = resolve;
    });
    store.asked.length = 0;
    const asking = Array.from({ length: 5 }, (_one, index) => lease(request, `invented-${index}`));
    while (store.asked.filter((one) => one === "readNamespace").length < asking.length) await scrape();
    store.isAway = isAway;
    coordinator.startHeartbeat();
    for (let index = 0; index < 2; index++) await scrape();
    open();
    await Promise.all([...asking, coordinator.stopHeartbeat()]);
    const { text, value } = await scrape();
    expect(text).not.toContain("invented");
    expect(value('callnumber_heartbeat_duration_seconds_count{namespace="main"}')).toBe(1);
  });

  test("show the state of what the store lists and no guard could open, and no figures of its record", async () => {
    await new Coordinator({ store, name: "other" }).initNamespace("lists");
    store.damaged = "lists";
    coordinator.startHeartbeat();
    await coordinator.stopHeartbeat();
    const { value, keys } = await scrape();
    expect(value('callnumber_heartbeat_rejections_total{code="store_corrupt",namespace="lists"}')).toBe(1);
    expect(value('callnumber_guard_state{namespace="lists",state="stopped"}')).toBe(1);
    expect(value('callnumber_guard_state_since_timestamp_seconds{namespace="lists"}')).toBeGreaterThan(0);
    expect(keys).not.toContain('callnumber_high_water_mark{namespace="lists"}');
  });

  test("begin at 0 with each refusal that alone is enough for an alert", async () => {
    const codes = ["run_above_high_water_mark", "clock_skew", "clock_moved_backward", "internal_error"];
    await scrape();
    const refused = async (namespace: string) => {
      const { value } = await scrape();
      return codes.map((code) => value(`callnumber_rejected_requests_total{code="${code}",namespace="${namespace}"}`));
    };
    expect(await refused("")).toEqual([0, 0, 0, 0]);
    expect(await refused("main")).toEqual([undefined, undefined, undefined, undefined]);
    await lease();
    expect(await refused("main")).toEqual([0, 0, 0, 0]);
    expect((await scrape()).value('callnumber_ledger_trim_failures_total{namespace=""}')).toBe(0);
  });

  test("begin at 0 for a namespace that was never leased from, so that a first time shows as a rise", async () => {
    coordinator.startHeartbeat();
    await coordinator.stopHeartbeat();
    const { value } = await scrape();
    expect(value('callnumber_leases_total{namespace="main"}')).toBe(0);
    expect(value('callnumber_recoveries_total{namespace="main",reason="heartbeat_expired"}')).toBe(0);
    expect(value('callnumber_interruptions_total{cause="rolled_back",namespace="main"}')).toBe(0);
    expect(value('callnumber_runs_discarded_total{namespace="main",reason="requester_gone"}')).toBe(0);
    expect(value('callnumber_heartbeat_duration_seconds_count{namespace="main"}')).toBe(1);
  });

  test("count what other parts tell: alarms, trims, findings, failed touches, lost lines of the log", async () => {
    await lease();
    events.warn({ namespace: "main", name: "runs_used_80", severity: "warning" }, "alarm");
    events.warn({ namespace: "main", name: "holder_share", severity: "warning" }, "alarm");
    events.warn({ namespace: "main", name: "headroom_low", severity: "notice" }, "alarm");
    events.warn({ namespace: "main", name: "headroom_low", severity: "warning" }, "alarm");
    events.warn({ namespace: "main", name: "run_ceiling_ending", severity: "invented" }, "alarm");
    events.info({ namespace: "main", name: "holder_share" }, "alarm_cleared");
    events.warn({ namespace: "main", name: "invented", severity: "warning" }, "alarm");
    events.info({ namespace: "main", leaseCount: 7 }, "ledger_trimmed");
    events.error({ namespace: "main" }, "ledger_trim_failed");
    events.error({ code: "store_eviction_enabled", what: "a" }, "preflight_finding");
    events.warn({ what: "b" }, "preflight_finding");
    events.info({ what: "b" }, "preflight_finding_resolved");
    events.warn({ reason: "x" }, "heartbeat_failed");
    for (const lineCount of [3, 4]) events.error({ lineCount, reason: "x" }, "log_lines_dropped");
    events.warn({ namespace: "main", runCount: Number.NaN, reason: "lease_discarded" }, "discarded");
    const { value, text } = await scrape();
    const alarm = (name: string, severity: string) =>
      value(`callnumber_alarms{name="${name}",namespace="main",severity="${severity}"}`);
    expect(alarm("runs_used_80", "warning")).toBe(1);
    expect(alarm("holder_share", "warning")).toBe(0);
    expect(["critical", "warning", "notice"].map((severity) => alarm("headroom_low", severity))).toEqual([0, 1, 0]);
    expect(text).not.toContain("invented");
    expect(value('callnumber_leases_trimmed_total{namespace="main"}')).toBe(7);
    expect(value('callnumber_ledger_trim_failures_total{namespace="main"}')).toBe(1);
    expect(value('callnumber_preflight_findings{effect="refuses"}')).toBe(1);
    expect(value('callnumber_preflight_findings{effect="warns"}')).toBe(0);
    expect(value("callnumber_heartbeat_failures_total")).toBe(1);
    expect(value("callnumber_log_lines_dropped_total")).toBe(7);
  });

  test("belong to one server: another in the same process has its own", async () => {
    await lease();
    const other = await createServer({ coordinator, release: "1.2.3", events: new EventHub(SILENT_LOG) });
    const url = await other.listen({ host: "127.0.0.1", port: 0 });
    const { value } = await scrape(url);
    expect(value('callnumber_leases_total{namespace="main"}')).toBe(0);
    expect(value('callnumber_high_water_mark{namespace="main"}')).toBe(1);
    await other.stop();
  });

  test("have help, a type and our name", async () => {
    const { text } = await scrape();
    for (const name of metricNamesIn(text)) {
      expect(name).toMatch(/^(callnumber|process|nodejs)_/);
      expect(text).toMatch(new RegExp(`^# HELP ${name} \\S`, "m"));
    }
  });
});

describe("discarded runs", () => {
  test("are those of a lease that was granted and not believed", async () => {
    const clock = new Clock();
    const settable = new SettableStore(clock);
    await scrapeOf(settable, clock, async (one) => {
      settable.alter = (outcome, { step }) =>
        step === "lease" ? { ...outcome, check: { ...outcome.check, role: "slave" } } : outcome;
      await expect(one.lease("main", { ...request, runCount: 3 })).rejects.toMatchObject({ code: "lease_discarded" });
    }).then((value) =>
      expect(
        value('callnumber_runs_discarded_total{namespace="main",reason="lease_discarded"}'),
      ).toBeGreaterThanOrEqual(3),
    );
  });

  test("are those that a settled doubt passes over; the doubt and the jump are counted, too", async () => {
    const clock = new Clock();
    const settable = new SettableStore(clock);
    const value = await scrapeOf(settable, clock, async (one) => {
      await one.lease("main", request);
      settable.server.epoch = "second:life:0";
      await expect(one.lease("main", request)).rejects.toMatchObject({ code: "run_ceiling_reached" });
    });
    expect(value('callnumber_recoveries_total{namespace="main",reason="epoch_changed"}')).toBe(1);
    expect(value('callnumber_epoch_changes_total{namespace="main"}')).toBe(1);
    expect(value('callnumber_interruptions_total{cause="epoch_changed",namespace="main"}')).toBe(1);
    expect(value('callnumber_runs_discarded_total{namespace="main",reason="jump"}')).toBeGreaterThan(60_000);
    expect(value('callnumber_generation{namespace="main"}')).toBeGreaterThan(0);
  });

  test("are those whose asker hung up before the answer", async () => {
    let open = () => {};
    store.leaseGate = new Promise((resolve) => {
      open = resolve;
    });
    const asked = new Promise<void>((resolve) => {
      store.onLease = resolve;
    });
    const discarded = new Promise<object>((resolve) => {
      events.subscribe(({ event, fields }) => event === "discarded" && resolve(fields));
    });
    const socket = connect(Number(new URL(base).port), "127.0.0.1");
    const body = JSON.stringify({ ...request, runCount: 7 });
    socket.write(
      `POST /v1/namespaces/main/leases HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await asked;
    socket.destroy();
    // The server hears of it in a turn of its own; a request that comes later is answered later.
    await scrape();
    await scrape();
    open();
    expect(await discarded).toMatchObject({ namespace: "main", runCount: 7, reason: "requester_gone" });
    expect((await scrape()).value('callnumber_runs_discarded_total{namespace="main",reason="requester_gone"}')).toBe(7);
  });

  test("are not those of a lease that arrived", async () => {
    await lease();
    expect((await scrape()).value('callnumber_runs_discarded_total{namespace="main",reason="requester_gone"}')).toBe(0);
  });
});

describe("a scrape", () => {
  test("asks the store one thing, however many namespaces there are, and moves nothing", async () => {
    for (const name of ["a", "b", "c"]) {
      await coordinator.initNamespace(name);
      await lease(request, name);
    }
    store.asked.length = 0;
    await scrape();
    expect(store.asked).toEqual(["listNamespaces"]);
  });

  test("is answered while the store is silent, with what is known", async () => {
    await lease();
    let open = () => {};
    store.gate = new Promise((resolve) => {
      open = resolve;
    });
    store.asked.length = 0;
    const [one, another] = await Promise.all([scrape(), scrape()]);
    for (const { value } of [one, another]) {
      expect(value("callnumber_store_up")).toBe(0);
      expect(value('callnumber_high_water_mark{namespace="main"}')).toBe(1);
    }
    expect((await scrape()).value("callnumber_store_up")).toBe(0);
    expect(store.asked).toEqual(["listNamespaces"]);
    open();
    store.gate = Promise.resolve();
    expect((await scrape()).value("callnumber_store_up")).toBe(1);
  });

  test("is answered when the store refuses to answer", async () => {
    await lease();
    store.isAway = true;
    expect((await scrape()).value("callnumber_store_up")).toBe(0);
  });
});

describe("spare runs", () => {
  test("are the sum of what each client told last", async () => {
    await lease({ ...request, spareRunCount: 5 });
    await lease({ ...request, spareRunCount: 2 });
    await lease({ ...request, spareRunCount: 4, holder: { ...request.holder, pid: 1 } });
    await lease({ ...request, holder: { ...request.holder, pid: 2 } });
    const { value } = await scrape();
    expect(value('callnumber_spare_runs{namespace="main"}')).toBe(6);
    expect(value('callnumber_live_clients{namespace="main"}')).toBe(3);
  });

  test("are forgotten with clients that ask no more, and need bounded memory", () => {
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

  test.each([[-1], [1.5], ["2"], [null]])("can't be %s", async (spareRunCount) => {
    expect((await lease({ ...request, spareRunCount })).status).toBe(400);
  });
});

/** A coordinator of its own on that store; resolves to the samples after something was done. */
async function scrapeOf(settable: Store, clock: Clock, act: (one: Coordinator) => Promise<void>) {
  const log = new EventHub(SILENT_LOG);
  const { now, pause } = clock;
  const one = new Coordinator({ store: settable, name: "test", log, now, pause, bounds: SHORT_BOUNDS });
  await one.initNamespace("main");
  const own = await createServer({ coordinator: one, release: "1.2.3", events: log });
  await act(one);
  const { value } = await scrape(await own.listen({ host: "127.0.0.1", port: 0 }));
  await own.stop();
  return value;
}
