/**
 * Alarms about a namespace, from its record and the leases of the last hour: what an operator should do before it hurts. All thresholds are
 * here, by name. And alarms about this process, which concern all namespaces.
 */
import { ALARM_SEVERITIES, type AlarmName, commandLine, type ErrorCode } from "@callnumber/protocol/api";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import type { Alarm } from "@callnumber/protocol/schemas";
import type { EventListener } from "../events/events.js";
import { EPS_MS } from "../guard/clocks.js";
import { type NamespaceRecord, PHASES } from "../guard/record.js";
import { refused } from "../guard/refusals.js";
import type { StartLoop } from "../limits/restart-brake.js";
import { holderUses, type LeaseWindow, runCountOf } from "./capacity.js";
import { type RunSpace, runSpaceOf } from "./status.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The leases that alarms are computed from. */
export const ALARM_WINDOW_MS = HOUR_MS;

/** Of a version's run space. */
export const USED_SHARES = { runs_used_80: 0.8, runs_used_95: 0.95 } as const;
/** Headroom below the run ceiling that lasts less long is low. */
export const HEADROOM_LASTS_MIN_MS = 6 * HOUR_MS;
/** A shortage at the run ceiling that lasts longer is an alarm; each recovery causes one of some seconds. */
export const SHORTAGE_MIN_MS = 60_000;
/** How long before the run ceiling of a version reaches its last run. */
export const CEILING_ENDING_MS = 90 * DAY_MS;

/** What is known of a namespace apart from its leases. */
export interface LeasingState {
  readonly record: NamespaceRecord;
  /** The code that leases fail with; null for none. */
  readonly code: ErrorCode | null;
  /** For how long the run ceiling has limited leasing; 0 when it does not now. */
  readonly shortageMs: number;
}

export interface AlarmSubject extends LeasingState {
  /** The leases of the last hour, as far as they were read. */
  readonly hour: LeaseWindow;
  /** Holders that restart repeatedly, the worst first. */
  readonly startLoops: readonly StartLoop[];
  /** Alarms that are raised elsewhere, about the process. */
  readonly processAlarms: readonly Alarm[];
  readonly nowMs: number;
}

const PLAN = "Plan the step to the next version, and who runs it: callnumber advance-version --help describes it";

type Raised = Omit<Alarm, "name"> | undefined;
type Raise = (subject: AlarmSubject, space: RunSpace) => Raised;

/** Returns the alarms of now, the most severe first. */
export function alarmsOf(subject: AlarmSubject): readonly Alarm[] {
  const space = runSpaceOf(subject.record, subject.nowMs);
  const raised = (Object.entries(RAISES) as [AlarmName, Raise][]).flatMap(([name, raise]) => {
    const about = raise(subject, space);
    return about === undefined ? [] : [{ name, ...about }];
  });
  return [...raised, ...subject.processAlarms].sort(
    (one, other) => ALARM_SEVERITIES.indexOf(one.severity) - ALARM_SEVERITIES.indexOf(other.severity),
  );
}

const RAISES: Readonly<Record<Exclude<AlarmName, ProcessAlarmName>, Raise>> = {
  run_space_exhausted: raiseExhausted,
  clock_moved_backward: raiseClockBack,
  runs_used_95: ({ record }, space) => raiseUsed("runs_used_95", "critical", wayOn(record), record, space),
  runs_used_80: ({ record }, space) => raiseUsed("runs_used_80", "warning", PLAN, record, space),
  run_ceiling_ending: raiseCeilingEnding,
  headroom_low: raiseHeadroomLow,
  holder_restarts: raiseHolderRestarts,
};

function raiseExhausted({ record, code }: AlarmSubject): Raised {
  if (record.highWaterMark < RUN_MAX && code !== "run_space_exhausted") return undefined;
  const explanation = `Version ${record.version} has no runs left: nothing is leased. ${wayOn(record)}`;
  return { severity: "critical", explanation };
}

function raiseClockBack({ record, nowMs }: AlarmSubject): Raised {
  const aheadMs = record.changedAtMs - EPS_MS - nowMs;
  if (aheadMs <= 0 || record.phase === PHASES.sealed) return undefined;
  return { severity: "critical", explanation: refused("CLOCKBACK", String(aheadMs), record.namespace).message };
}

function raiseUsed(
  name: keyof typeof USED_SHARES,
  severity: Alarm["severity"],
  whatToDo: string,
  { version }: NamespaceRecord,
  { usedShare, runsLeft }: RunSpace,
): Raised {
  if (usedShare < USED_SHARES[name]) return undefined;
  const percent = `${(usedShare * 100).toFixed(1)} %`;
  const explanation = `${percent} of the run space of version ${version} is used, ${runsLeft} runs are left. ${whatToDo}`;
  return { severity, explanation };
}

function wayOn({ namespace, version }: NamespaceRecord): string {
  return version < VERSION_MAX
    ? `Once its run ceiling has reached its end, continue in the next version: \`${commandLine("advance-version", namespace)}\``
    : "It is the last version: plan what comes next, another namespace or another layout";
}

/** Once the ceiling has passed the end, no recovery can end in the version. */
function raiseCeilingEnding({ record, nowMs }: AlarmSubject, { ceilingEndsAtMs }: RunSpace): Raised {
  if (ceilingEndsAtMs - nowMs > CEILING_ENDING_MS) return undefined;
  const hasEnded = ceilingEndsAtMs <= nowMs;
  const at = new Date(ceilingEndsAtMs).toISOString();
  return {
    severity: hasEnded ? "warning" : "notice",
    explanation: `The run ceiling of version ${record.version} ${hasEnded ? "reached" : "reaches"} its last run at ${at}: from then on the first recovery ends the version. ${wayOn(record)}`,
  };
}

function raiseHeadroomLow(
  { record, hour, shortageMs, nowMs }: AlarmSubject,
  { headroomRuns, runsLeft, ceilingRunsPerSecond, ceilingEndsAtMs }: RunSpace,
): Raised {
  // At the end of the run space it is not the ceiling that is near.
  if (headroomRuns >= runsLeft || ceilingEndsAtMs <= nowMs) return undefined;
  const takenRuns = runCountOf(hour.leases);
  const measuredMs = Math.max(nowMs - hour.completeFromMs, 1);
  const netRunsPerMs = takenRuns / measuredMs - ceilingRunsPerSecond / 1000;
  const lastsMs = netRunsPerMs > 0 ? headroomRuns / netRunsPerMs : Number.POSITIVE_INFINITY;
  const isShort = shortageMs > SHORTAGE_MIN_MS;
  if (lastsMs >= HEADROOM_LASTS_MIN_MS && !isShort) return undefined;
  const ceiling = `the run ceiling of version ${record.version}, which rises by ${ceilingRunsPerSecond} a second`;
  const what = isShort
    ? `Importers have waited for runs for ${minutesIn(shortageMs)}: all runs are leased up to ${ceiling}`
    : `${headroomRuns} runs may be leased up to ${ceiling}: at the rate of the last ${measuredMs < HOUR_MS ? minutesIn(measuredMs).replace(/^a /, "") : "hour"} (${takenRuns} runs) they last ${minutesIn(lastsMs)}`;
  const [greatest] = holderUses(hour.leases, nowMs);
  const leases = greatest && `. The leases of the greatest holder: ${leasesOf(record, greatest.name)}`;
  return { severity: "warning", explanation: `${what}. Start fewer importers at once${leases ?? ""}` };
}

function leasesOf({ namespace }: NamespaceRecord, holder: string): string {
  return `\`${commandLine("runs", namespace, { holder })}\``;
}

function raiseHolderRestarts({ record, startLoops }: AlarmSubject): Raised {
  const [worst, ...others] = startLoops;
  if (worst === undefined) return undefined;
  const { holder, startCount, forMs, pauseMs } = worst;
  const same =
    others.length === 0 ? "" : `. ${others.length} ${others.length === 1 ? "other does" : "others do"} the same`;
  return {
    severity: "warning",
    explanation:
      `Holder "${holder.name}" on ${holder.host} was started ${startCount} times within ${minutesIn(forMs)}, and no process of it ` +
      `came far enough to report a number or to ask for a second run. ${pauseMs > 0 ? `Each further start waits ${pauseMs / 1_000} s` : "Nothing slows it down: limits are off"}` +
      `${same}. Find out why it ends. Its leases: ${leasesOf(record, holder.name)}`,
  };
}

function minutesIn(ms: number): string {
  const minutes = Math.max(Math.ceil(ms / 60_000), 1);
  return minutes === 1 ? "a minute" : `${minutes} minutes`;
}

const RAISED = {
  connections_full: { name: "connections_full", severity: "warning" },
  tokens_reload_failed: { name: "tokens_file_unreadable", severity: "warning" },
} as const;
const CLEARED = { connections_free: "connections_full", tokens_reloaded: "tokens_file_unreadable" } as const;

export type ProcessAlarmName = (typeof RAISED)[keyof typeof RAISED]["name"];

/** Raises and clears the alarms about this process; subscribe its `take` to the hub. */
export class ProcessAlarms {
  readonly #raised = new Map<ProcessAlarmName, Alarm>();

  /** For `EventHub.subscribe`. */
  readonly take: EventListener = ({ event, fields }) => {
    const raised = RAISED[event as keyof typeof RAISED];
    const cleared = CLEARED[event as keyof typeof CLEARED];
    if (cleared !== undefined) this.#raised.delete(cleared);
    if (raised === undefined) return;
    const { reason } = fields as { readonly reason: string };
    this.#raised.set(raised.name, { ...raised, explanation: reason });
  };

  /** Returns the alarms that are raised now. */
  all(): readonly Alarm[] {
    return [...this.#raised.values()];
  }
}
