/** The verdict of `status --check`: one of four states, one line, one exit code, as Nagios plugins have them. Pure. */
import { withSeparators } from "@callnumber/protocol/api";
import type { Alarm, GuardStatus, StatusResponse } from "@callnumber/protocol/schemas";
import { formatCount } from "./output.js";

type CheckState = "ok" | "warning" | "critical" | "unknown";

export const EXIT_CODES: Readonly<Record<CheckState, number>> = { ok: 0, warning: 1, critical: 2, unknown: 3 };

export interface Verdict {
  readonly state: CheckState;
  readonly explanation: string;
  /** Null without a response. */
  readonly figures: { readonly runsUsed: number; readonly runsLeft: number; readonly headroomRuns: number } | null;
}

/** Of the run space. The rest lasts for years, but the operator must plan the step to the next version. */
const WARNING_SHARE = 0.8;
const CRITICAL_SHARE = 0.95;

const GUARD_STATES: Readonly<Record<GuardStatus["state"], CheckState>> = {
  active: "ok",
  recovering: "warning",
  stopped: "critical",
};

/** Codes that do not show the state: no coordinator answered, or not to this client. */
const UNKNOWN_CODES: ReadonlySet<string> = new Set([
  "coordinator_unreachable",
  "certificate_rejected",
  "invalid_response",
  "token_invalid",
  "unauthorized",
  "forbidden",
]);

/** A notice needs no action. */
const ALARM_STATES: Readonly<Record<Alarm["severity"], CheckState>> = {
  critical: "critical",
  warning: "warning",
  notice: "ok",
};

/** `alarms`: the most severe first, as the coordinator returns them; none where they are not known. */
export function verdictOf(
  { namespace, guard, runsUsed, runsLeft, highWaterMark }: StatusResponse,
  alarms: readonly Alarm[],
): Verdict {
  const { headroomRuns } = guard;
  const figures = { runsUsed, runsLeft, headroomRuns };
  const atGuard = GUARD_STATES[guard.state];
  if (atGuard !== "ok") {
    const explanation = `namespace ${namespace} does not lease (${formatCause(guard)}): ${guard.explanation}`;
    return { state: atGuard, explanation, figures };
  }
  const left = `${formatCount(runsLeft)} runs left of ${formatCount(runsUsed + runsLeft)}`;
  const usedShare = runsUsed / (runsUsed + runsLeft);
  if (usedShare >= WARNING_SHARE) {
    const state = usedShare >= CRITICAL_SHARE ? "critical" : "warning";
    return { state, explanation: `namespace ${namespace} comes to the end of its run space: ${left}`, figures };
  }
  const alarm = alarms.find(({ severity }) => ALARM_STATES[severity] !== "ok");
  if (alarm !== undefined) {
    const explanation = `namespace ${namespace}, alarm ${alarm.name}: ${alarm.explanation}`;
    return { state: ALARM_STATES[alarm.severity], explanation, figures };
  }
  return {
    state: "ok",
    explanation: `namespace ${namespace} leases: mark ${formatCount(highWaterMark)}, ${left}`,
    figures,
  };
}

/** Formats why leases fail: the code, and the reason of a recovery. */
export function formatCause({ code, reason }: Pick<GuardStatus, "code" | "reason">): string {
  return reason === null ? String(code) : `${code}, ${reason}`;
}

/** A coordinator that responds with an error leases nothing. One that does not respond, or not to this client, may be well. */
export function verdictWithout(namespace: string, { code, message }: { code: string; message: string }): Verdict {
  const state = UNKNOWN_CODES.has(code) ? "unknown" : "critical";
  return { state, explanation: `namespace ${namespace} (${code}): ${message}`, figures: null };
}

/** On one line; after the bar the figures with their thresholds, for graphs. */
export function checkLine({ state, explanation, figures }: Verdict): string {
  // The bar would end the text, and the line is one.
  const text = `CALLNUMBER ${state.toUpperCase()} - ${withSeparators(explanation).replaceAll("|", "/").replace(/\s+/g, " ")}`;
  if (figures === null) return text;
  const { runsUsed, runsLeft, headroomRuns } = figures;
  const all = runsUsed + runsLeft;
  const warning = Math.ceil(all * WARNING_SHARE);
  const critical = Math.ceil(all * CRITICAL_SHARE);
  return `${text} | runs_used=${runsUsed};${warning};${critical};0;${all} headroom_runs=${headroomRuns};;;0`;
}
