/**
 * What is counted as it happens: a table from each event to what it adds. Labels are bounded: a namespace that no event has proved
 * to exist, because a client invented it perhaps, is left empty; holders and processes are never labels.
 */
import { ALARM_NAMES, ALARM_SEVERITIES, type Holder, isErrorCode, RECOVERY_REASONS } from "@callnumber/protocol/api";
import { Counter, Gauge, Histogram } from "prom-client";
import type { EventListener } from "../events/events.js";

type Registers = NonNullable<ConstructorParameters<typeof Counter>[0]["registers"]>;
type Fields = Readonly<Record<string, unknown>>;
type Rule = (counts: EventCounts, fields: Fields, namespace: string) => void;

/** By name without its prefix: the help, and the labels. Those that have a namespace as their only label are counted from 0. */
const COUNTERS = {
  leases_total: ["Leases granted.", "namespace"],
  runs_leased_total: ["Runs in the leases granted.", "namespace"],
  number_requests_total: ["Requests for call numbers that got them.", "namespace"],
  numbers_made_total: ["Call numbers made for these requests.", "namespace"],
  runs_discarded_total: ["Runs that are never used, by reason.", "namespace", "reason"],
  heartbeat_rejections_total: ["Heartbeats rejected, by code.", "namespace", "code"],
  heartbeat_failures_total: ["Rounds of heartbeats that failed."],
  rejected_requests_total: ["Requests rejected over HTTP, by code.", "namespace", "code"],
  requesters_gone_total: ["Leases and reports for which nothing was done, since their client had left."],
  recoveries_total: ["Completed recoveries, by their reason.", "namespace", "reason"],
  interruptions_total: ["Interruptions of leasing, by cause.", "namespace", "cause"],
  stops_total: ["Times that leasing was stopped, by code.", "namespace", "code"],
  epoch_changes_total: ["Changes of the store's epoch.", "namespace"],
  preflight_failures_total: ["Checks of the store's servers that failed."],
  log_lines_dropped_total: ["Lines that could not be written to the log."],
  leases_trimmed_total: ["Leases trimmed from the store.", "namespace"],
  ledger_trim_failures_total: ["Trims of the ledger that failed.", "namespace"],
} as const;

const GAUGES = {
  preflight_findings: ["Findings about the store's servers now, by effect.", "effect"],
  alarms: ["1 for an alarm that is raised.", "namespace", "name", "severity"],
  spare_runs: ["Spare runs, as live clients reported them last.", "namespace"],
  live_clients: ["Processes that requested a lease within ten minutes.", "namespace"],
} as const;

const HISTOGRAMS = {
  lease_duration_seconds: ["How long the coordinator took for a lease it granted.", "namespace"],
  numbers_duration_seconds: ["How long the coordinator took to generate the numbers of a request.", "namespace"],
  heartbeat_duration_seconds: ["How long the store took for a heartbeat: one step of it.", "namespace"],
} as const;

/** From a store in memory to one whose every write waits for a quorum, and beyond: what a client waits for before it gives up. */
const DURATION_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Why leasing is interrupted: with these labels counted from 0, so that a first one shows as an increase. */
const RECOVERED_REASONS = RECOVERY_REASONS.filter((reason) => reason !== "conflict");
const INTERRUPTIONS = [...RECOVERED_REASONS, "store_unavailable"] as const;
const DISCARD_REASONS = [
  "skipped",
  "lease_discarded",
  "quorum_missing",
  "store_id_mismatch",
  "requester_gone",
] as const;
/** Rejections of which one is enough for an alert: counted from 0, too. */
const GRAVE_REJECTIONS = ["run_above_high_water_mark", "clock_skew", "clock_moved_backward", "internal_error"] as const;
/** What concerns no namespace, or none that is known. */
const NO_NAMESPACE = "";
/** Written only for a namespace that a guard has met in the store. */
const PROOFS = new Set([
  "lease",
  "init",
  "checkpoint_created",
  "heartbeat",
  "recovered",
  "active",
  "recovering",
  "stopped",
]);

const RULES: Readonly<Record<string, Rule>> = {
  lease: (counts, { runCount, durationMs, holder, spareRunCount }, namespace) => {
    counts.add("leases_total", { namespace });
    counts.add("runs_leased_total", { namespace }, runCount);
    counts.observe("lease_duration_seconds", namespace, durationMs);
    counts.spareRunsIn(namespace).note(holder as Holder, amount(spareRunCount));
  },
  numbers: (counts, { count, durationMs }, namespace) => {
    counts.add("number_requests_total", { namespace });
    counts.add("numbers_made_total", { namespace }, count);
    counts.observe("numbers_duration_seconds", namespace, durationMs);
  },
  discarded: (counts, { runCount, reason }, namespace) => counts.discard(namespace, reason, runCount),
  recovered: (counts, { reason, before, mark }, namespace) => {
    counts.add("recoveries_total", { namespace, reason: recoveryReason(reason) });
    counts.discard(namespace, "skipped", amount(mark) - amount(before));
  },
  request_rejected: (counts, { code }, namespace) => counts.addCode("rejected_requests_total", namespace, code),
  requester_gone: (counts) => counts.add("requesters_gone_total", {}),
  internal_error: (counts, _, namespace) => counts.addCode("rejected_requests_total", namespace, "internal_error"),
  heartbeat: (counts, { durationMs }, namespace) => counts.observe("heartbeat_duration_seconds", namespace, durationMs),
  // Heartbeats go to what the store lists and to opened namespaces: these names may be labels.
  heartbeat_rejected: (counts, { namespace, code }) =>
    counts.addCode("heartbeat_rejections_total", String(namespace), code),
  heartbeat_failed: (counts) => counts.add("heartbeat_failures_total", {}),
  recovering: (counts, { code, reason }, namespace) => {
    counts.add("interruptions_total", { namespace, cause: recoveryReason(reason) || errorCode(code) });
    if (reason === "epoch_changed") counts.add("epoch_changes_total", { namespace });
  },
  stopped: (counts, { code }, namespace) => counts.addCode("stops_total", namespace, code),
  preflight_finding: (counts, { code }) => counts.gauges.preflight_findings.inc({ effect: effectOf(code) }),
  preflight_finding_resolved: (counts, { code }) => counts.gauges.preflight_findings.dec({ effect: effectOf(code) }),
  preflight_failed: (counts) => counts.add("preflight_failures_total", {}),
  alarm: (counts, { name, severity }, namespace) => counts.setAlarm(namespace, name, severity),
  alarm_cleared: (counts, { name }, namespace) => counts.setAlarm(namespace, name, null),
  log_lines_dropped: (counts, { lineCount }) => counts.add("log_lines_dropped_total", {}, lineCount),
  ledger_trimmed: (counts, { leaseCount }, namespace) => counts.add("leases_trimmed_total", { namespace }, leaseCount),
  ledger_trim_failed: (counts, _, namespace) => counts.add("ledger_trim_failures_total", { namespace }),
};

export class EventCounts {
  readonly gauges: Readonly<Record<keyof typeof GAUGES, Gauge>>;
  readonly #counters: Readonly<Record<keyof typeof COUNTERS, Counter>>;
  readonly #histograms: Readonly<Record<keyof typeof HISTOGRAMS, Histogram>>;
  readonly #spareRuns = new Map<string, SpareRuns>();
  readonly #known = new Set<string>();

  constructor(registers: Registers) {
    this.#counters = madeOf(COUNTERS, (about) => new Counter({ ...about, registers }));
    this.gauges = madeOf(GAUGES, (about) => new Gauge({ ...about, registers }));
    const buckets = DURATION_BUCKETS_S;
    this.#histograms = madeOf(HISTOGRAMS, (about) => new Histogram({ ...about, registers, buckets }));
    for (const effect of ["rejects", "warns"]) this.gauges.preflight_findings.set({ effect }, 0);
    for (const code of GRAVE_REJECTIONS) this.add("rejected_requests_total", { namespace: NO_NAMESPACE, code }, 0);
    this.add("ledger_trim_failures_total", { namespace: NO_NAMESPACE }, 0);
  }

  /** Counts what an event adds. Most add nothing. */
  count({ event, fields }: Parameters<EventListener>[0]): void {
    const { namespace } = fields as Fields;
    if (typeof namespace === "string" && PROOFS.has(event)) this.know(namespace);
    if (!Object.hasOwn(RULES, event)) return;
    RULES[event]?.(this, fields as Fields, this.#known.has(namespace as string) ? (namespace as string) : NO_NAMESPACE);
  }

  /** The namespace exists: it may be a label, and what can happen to it is counted from 0. */
  know(namespace: string): void {
    if (this.#known.has(namespace)) return;
    this.#known.add(namespace);
    for (const [name, [, ...labels]] of Object.entries(COUNTERS))
      if (labels.join() === "namespace") this.add(name as keyof typeof COUNTERS, { namespace }, 0);
    for (const reason of RECOVERED_REASONS) this.add("recoveries_total", { namespace, reason }, 0);
    for (const cause of INTERRUPTIONS) this.add("interruptions_total", { namespace, cause }, 0);
    for (const reason of DISCARD_REASONS) this.add("runs_discarded_total", { namespace, reason }, 0);
    for (const code of GRAVE_REJECTIONS) this.add("rejected_requests_total", { namespace, code }, 0);
    for (const name of ALARM_NAMES) this.setAlarm(namespace, name, null);
    for (const histogram of Object.values(this.#histograms)) histogram.zero({ namespace });
  }

  /** Values that are no amounts count as 0. */
  add(name: keyof typeof COUNTERS, labels: Readonly<Record<string, string>>, value: unknown = 1): void {
    this.#counters[name].inc(labels, amount(value));
  }

  addCode(name: keyof typeof COUNTERS, namespace: string, code: unknown): void {
    this.add(name, { namespace, code: errorCode(code) });
  }

  observe(name: keyof typeof HISTOGRAMS, namespace: string, durationMs: unknown): void {
    this.#histograms[name].observe({ namespace }, amount(durationMs) / 1_000);
  }

  discard(namespace: string, reason: unknown, runCount: unknown): void {
    const known = DISCARD_REASONS.find((one) => one === reason);
    if (known !== undefined) this.add("runs_discarded_total", { namespace, reason: known }, runCount);
  }

  /** An alarm has one severity at a time; null for one that is not raised. */
  setAlarm(namespace: string, name: unknown, raised: unknown): void {
    const known = ALARM_NAMES.find((one) => one === name);
    if (known === undefined) return;
    for (const severity of ALARM_SEVERITIES) {
      this.gauges.alarms.set({ namespace, name: known, severity }, severity === raised ? 1 : 0);
    }
  }

  spareRunsIn(namespace: string): SpareRuns {
    const known = this.#spareRuns.get(namespace) ?? new SpareRuns();
    this.#spareRuns.set(namespace, known);
    return known;
  }

  /** Sets the gauges of clients, at each scrape. */
  collect(): void {
    for (const [namespace, spares] of this.#spareRuns) {
      const { runCount, holderCount } = spares.sum();
      this.gauges.spare_runs.set({ namespace }, runCount);
      this.gauges.live_clients.set({ namespace }, holderCount);
    }
  }
}

/** Makes a metric of each entry of a table. */
export function madeOf<Name extends string, Metric>(
  table: Readonly<Record<Name, readonly [help: string, ...labels: string[]]>>,
  make: (about: { readonly name: string; readonly help: string; readonly labelNames: string[] }) => Metric,
): Readonly<Record<Name, Metric>> {
  const entries = Object.entries(table) as [Name, readonly [string, ...string[]]][];
  return Object.fromEntries(
    entries.map(([name, [help, ...labelNames]]) => [name, make({ name: `callnumber_${name}`, help, labelNames })]),
  ) as Record<Name, Metric>;
}

function amount(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : 0;
}

function errorCode(value: unknown): string {
  return isErrorCode(value) ? value : "";
}

function recoveryReason(value: unknown): string {
  return RECOVERY_REASONS.find((reason) => reason === value) ?? "";
}

function effectOf(code: unknown): "rejects" | "warns" {
  return code === undefined ? "warns" : "rejects";
}

/** As long as a holder counts as live. */
const LIVE_MS = 600_000;
const HOLDER_COUNT_MAX = 10_000;

/**
 * The spare runs of clients: what each process that asked for a lease within ten minutes reported last. Remembers a bounded number of
 * processes: a crash loop makes new ones all the time.
 */
export class SpareRuns {
  readonly #now: () => number;
  /** By holder, the oldest report first. */
  readonly #reported = new Map<string, { readonly spareRunCount: number; readonly atMs: number }>();

  /** @param now a monotonic clock, ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  note({ name, host, pid }: Pick<Holder, "name" | "host" | "pid">, spareRunCount: number): void {
    const holder = `${pid} ${host} ${name}`;
    this.#reported.delete(holder);
    this.#reported.set(holder, { spareRunCount, atMs: this.#now() });
    const [oldest] = this.#reported.keys();
    if (this.#reported.size > HOLDER_COUNT_MAX && oldest !== undefined) this.#reported.delete(oldest);
  }

  /** Returns the spare runs of the processes that asked within ten minutes, and how many these are. */
  sum(): { readonly runCount: number; readonly holderCount: number } {
    const liveFromMs = this.#now() - LIVE_MS;
    let runCount = 0;
    for (const [holder, { spareRunCount, atMs }] of this.#reported) {
      if (atMs < liveFromMs) this.#reported.delete(holder);
      else runCount += spareRunCount;
    }
    return { runCount, holderCount: this.#reported.size };
  }
}
