/**
 * What is counted as it happens: a table from each event to what it adds. Labels are bounded: a namespace that no event has proved
 * to exist, a stranger's invention perhaps, is left empty; holders and processes are never labels.
 */
import { ALARM_NAMES, ALARM_SEVERITIES } from "@callnumber/protocol/operator";
import { type ErrorCode, type Holder, isErrorCode, RECOVERY_REASONS } from "@callnumber/protocol/wire";
import { Counter, Gauge, Histogram } from "prom-client";
import type { EventListener } from "../events/events.js";
import { SpareRuns } from "./spare-runs.js";

type Registers = NonNullable<ConstructorParameters<typeof Counter>[0]["registers"]>;
type Fields = Readonly<Record<string, unknown>>;
type Rule = (counts: EventCounts, fields: Fields, namespace: string) => void;

/** From a store in memory to one whose every write waits for a quorum, and beyond: what a client waits for before it gives up. */
const DURATION_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Why leasing is interrupted: with these labels from the beginning, so that a first one shows as an increase. */
const RECOVERED_REASONS = RECOVERY_REASONS.filter((reason) => reason !== "conflict");
const INTERRUPTIONS = [...RECOVERED_REASONS, "store_unavailable"] as const;
const DISCARD_REASONS = ["jump", "lease_discarded", "quorum_missing", "store_id_mismatch", "requester_gone"] as const;
/** Refusals of which one is enough for an alert: from the beginning, too. */
const GRAVE_REFUSALS = [
  "run_above_high_water_mark",
  "clock_skew",
  "clock_moved_backward",
  "internal_error",
] as const satisfies readonly ErrorCode[];
/** What concerns no namespace, or none that is known. */
const NO_NAMESPACE = "";
/** Written only for a namespace that a guard has met in the store. */
const PROOFS: ReadonlySet<string> = new Set([
  "lease",
  "init",
  "pin",
  "heartbeat",
  "jump",
  "active",
  "recovering",
  "stopped",
]);

const RULES: Readonly<Record<string, Rule>> = {
  lease: (counts, { runCount, durationMs, holder, spareRunCount }, namespace) => {
    counts.leases.inc({ namespace }, 1);
    counts.runsLeased.inc({ namespace }, amount(runCount));
    counts.leaseDuration.observe({ namespace }, amount(durationMs) / 1_000);
    counts.spareRunsIn(namespace).note(holder as Holder, amount(spareRunCount));
  },
  discarded: (counts, { runCount, reason }, namespace) => counts.discard(namespace, text(reason), amount(runCount)),
  jump: (counts, { reason, before, mark }, namespace) => {
    counts.recoveries.inc({ namespace, reason: recoveryReason(reason) }, 1);
    counts.discard(namespace, "jump", Math.max(amount(mark) - amount(before), 0));
  },
  request_rejected: (counts, { code }, namespace) => counts.refusals.inc({ namespace, code: errorCode(code) }, 1),
  internal_error: (counts, _, namespace) => counts.refusals.inc({ namespace, code: "internal_error" }, 1),
  heartbeat: (counts, { durationMs }, namespace) =>
    counts.heartbeatDuration.observe({ namespace }, amount(durationMs) / 1_000),
  // Heartbeats go to what the store lists and to opened namespaces: these names may be labels.
  heartbeat_rejected: (counts, { namespace, code }) =>
    counts.heartbeatRejections.inc({ namespace: text(namespace), code: errorCode(code) }, 1),
  heartbeat_failed: (counts) => counts.heartbeatFailures.inc(),
  recovering: (counts, { code, reason }, namespace) => {
    counts.interruptions.inc({ namespace, cause: recoveryReason(reason) || errorCode(code) }, 1);
    if (reason === "epoch_changed") counts.epochChanges.inc({ namespace }, 1);
  },
  stopped: (counts, { code }, namespace) => counts.fences.inc({ namespace, code: errorCode(code) }, 1),
  preflight_finding: (counts, { code }) => counts.findings.inc({ effect: effectOf(code) }, 1),
  preflight_finding_resolved: (counts, { code }) => counts.findings.dec({ effect: effectOf(code) }, 1),
  preflight_failed: (counts) => counts.preflightFailures.inc(),
  alarm: (counts, { name, severity }, namespace) => counts.alarm(namespace, name, severity),
  alarm_cleared: (counts, { name }, namespace) => counts.alarm(namespace, name, null),
  log_lines_dropped: (counts, { lineCount }) => counts.logLinesLost.inc(amount(lineCount)),
  ledger_trimmed: (counts, { leaseCount }, namespace) => counts.leasesTrimmed.inc({ namespace }, amount(leaseCount)),
  ledger_trim_failed: (counts, _, namespace) => counts.trimFailures.inc({ namespace }, 1),
};

export class EventCounts {
  readonly leases: Counter;
  readonly runsLeased: Counter;
  readonly runsDiscarded: Counter;
  readonly leaseDuration: Histogram;
  readonly heartbeatDuration: Histogram;
  readonly heartbeatRejections: Counter;
  readonly heartbeatFailures: Counter;
  readonly refusals: Counter;
  readonly recoveries: Counter;
  readonly interruptions: Counter;
  readonly fences: Counter;
  readonly epochChanges: Counter;
  readonly findings: Gauge;
  readonly preflightFailures: Counter;
  readonly alarms: Gauge;
  readonly logLinesLost: Counter;
  readonly leasesTrimmed: Counter;
  readonly trimFailures: Counter;
  readonly #spareRuns = new Map<string, SpareRuns>();
  readonly #known = new Set<string>();

  constructor(registers: Registers) {
    const counter = (name: string, help: string, ...labelNames: string[]) =>
      new Counter({ name: `callnumber_${name}`, help, labelNames, registers });
    const gauge = (name: string, help: string, ...labelNames: string[]) =>
      new Gauge({ name: `callnumber_${name}`, help, labelNames, registers });
    const durations = (name: string, help: string) =>
      new Histogram({
        name: `callnumber_${name}`,
        help,
        labelNames: ["namespace"],
        buckets: DURATION_BUCKETS_S,
        registers,
      });
    this.leases = counter("leases_total", "Leases granted.", "namespace");
    this.runsLeased = counter("runs_leased_total", "Runs in the leases granted.", "namespace");
    this.runsDiscarded = counter(
      "runs_discarded_total",
      "Runs that nobody will mint from, by reason.",
      "namespace",
      "reason",
    );
    this.leaseDuration = durations("lease_duration_seconds", "How long the coordinator took for a lease it granted.");
    this.heartbeatDuration = durations(
      "heartbeat_duration_seconds",
      "How long the store took for a heartbeat: one step of it.",
    );
    this.heartbeatRejections = counter(
      "heartbeat_rejections_total",
      "Heartbeats rejected, by code.",
      "namespace",
      "code",
    );
    this.heartbeatFailures = counter("heartbeat_failures_total", "Rounds of heartbeats that came to nothing.");
    this.refusals = counter("rejected_requests_total", "Requests refused over HTTP, by code.", "namespace", "code");
    this.recoveries = counter("recoveries_total", "Completed recoveries, by their reason.", "namespace", "reason");
    this.interruptions = counter("interruptions_total", "Interruptions of leasing, by cause.", "namespace", "cause");
    this.fences = counter("stops_total", "Times that leasing was stopped, by code.", "namespace", "code");
    this.epochChanges = counter("epoch_changes_total", "Changed epochs of the store that were met.", "namespace");
    this.findings = gauge("preflight_findings", "What stands against the store's servers now, by effect.", "effect");
    this.preflightFailures = counter("preflight_failures_total", "Looks at the store's servers that failed.");
    this.alarms = gauge("alarms", "1 for an alarm that is raised.", "namespace", "name", "severity");
    this.logLinesLost = counter("log_lines_dropped_total", "Lines that the log could not take.");
    this.leasesTrimmed = counter("leases_trimmed_total", "Leases trimmed from the store.", "namespace");
    this.trimFailures = counter("ledger_trim_failures_total", "Trims of the ledger that failed.", "namespace");
    this.#spareGauges(gauge);
    for (const effect of ["refuses", "warns"]) this.findings.set({ effect }, 0);
    this.#zeroRefusals(NO_NAMESPACE);
    this.trimFailures.inc({ namespace: NO_NAMESPACE }, 0);
  }

  /** An event, and what it adds. Most add nothing. */
  count({ event, fields }: Parameters<EventListener>[0]): void {
    const { namespace } = fields as Fields;
    if (typeof namespace === "string" && PROOFS.has(event) && !this.#known.has(namespace)) this.know(namespace);
    if (!Object.hasOwn(RULES, event)) return;
    RULES[event]?.(this, fields as Fields, this.#known.has(namespace as string) ? (namespace as string) : NO_NAMESPACE);
  }

  /** The namespace exists: it may be a label, and what can happen to it is counted from 0. */
  know(namespace: string): void {
    if (this.#known.has(namespace)) return;
    this.#known.add(namespace);
    const perNamespace = [this.leases, this.runsLeased, this.epochChanges, this.leasesTrimmed];
    for (const counter of [...perNamespace, this.trimFailures]) counter.inc({ namespace }, 0);
    for (const reason of RECOVERED_REASONS) this.recoveries.inc({ namespace, reason }, 0);
    for (const cause of INTERRUPTIONS) this.interruptions.inc({ namespace, cause }, 0);
    for (const reason of DISCARD_REASONS) this.runsDiscarded.inc({ namespace, reason }, 0);
    for (const name of ALARM_NAMES) this.alarm(namespace, name, null);
    this.#zeroRefusals(namespace);
    this.leaseDuration.zero({ namespace });
    this.heartbeatDuration.zero({ namespace });
  }

  discard(namespace: string, reason: string, runCount: number): void {
    if ((DISCARD_REASONS as readonly string[]).includes(reason))
      this.runsDiscarded.inc({ namespace, reason }, runCount);
  }

  /** An alarm has one severity at a time; null for one that is not raised. */
  alarm(namespace: string, name: unknown, raised: unknown): void {
    if (!(ALARM_NAMES as readonly unknown[]).includes(name)) return;
    for (const severity of ALARM_SEVERITIES) {
      this.alarms.set({ namespace, name: name as string, severity }, severity === raised ? 1 : 0);
    }
  }

  spareRunsIn(namespace: string): SpareRuns {
    const known = this.#spareRuns.get(namespace) ?? new SpareRuns();
    this.#spareRuns.set(namespace, known);
    return known;
  }

  #zeroRefusals(namespace: string): void {
    for (const code of GRAVE_REFUSALS) this.refusals.inc({ namespace, code }, 0);
  }

  #spareGauges(gauge: (name: string, help: string, ...labelNames: string[]) => Gauge): void {
    const collected = (figureOf: (sum: ReturnType<SpareRuns["sum"]>) => number) => {
      const spareRuns = this.#spareRuns;
      return function collect(this: Gauge): void {
        for (const [namespace, spares] of spareRuns) this.set({ namespace }, figureOf(spares.sum()));
      };
    };
    Object.assign(gauge("spare_runs", "Spare runs that live clients told of when they asked last.", "namespace"), {
      collect: collected(({ runCount }) => runCount),
    });
    Object.assign(gauge("live_clients", "Processes that asked for a lease within ten minutes.", "namespace"), {
      collect: collected(({ holderCount }) => holderCount),
    });
  }
}

function amount(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : 0;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function errorCode(value: unknown): string {
  return isErrorCode(value) ? value : "";
}

function recoveryReason(value: unknown): string {
  return (RECOVERY_REASONS as readonly unknown[]).includes(value) ? (value as string) : "";
}

function effectOf(code: unknown): "refuses" | "warns" {
  return code === undefined ? "warns" : "refuses";
}
