/**
 * What monitoring is told of a namespace: one of four states, one line, one exit code, as the plugins of Nagios and its kin do.
 * Pure.
 */
import type { Alarm } from "@callnumber/protocol/operator";
import type { GuardAnswer, StatusAnswer } from "@callnumber/protocol/wire";
import { grouped } from "./print.js";

type CheckState = "ok" | "warning" | "critical" | "unknown";

export const EXIT_CODES: Readonly<Record<CheckState, number>> = { ok: 0, warning: 1, critical: 2, unknown: 3 };

export interface Verdict {
  readonly state: CheckState;
  readonly explanation: string;
  /** Null when nothing could be read. */
  readonly figures: { readonly runsUsed: number; readonly runsLeft: number; readonly roomRuns: number } | null;
}

/** Of the run space. Enough is left for years at any rate, and yet somebody must plan the step to the next version. */
const WARNING_SHARE = 0.8;
const CRITICAL_SHARE = 0.95;

const GUARD_STATES: Readonly<Record<GuardAnswer["state"], CheckState>> = {
  open: "ok",
  in_doubt: "warning",
  fenced: "critical",
};

/** Codes of a question that nobody answered, or that was not for the caller to ask: it is not known how it stands. */
const UNKNOWN_CODES: ReadonlySet<string> = new Set([
  "coordinator_unreachable",
  "certificate_rejected",
  "answer_not_understood",
  "token_unusable",
  "unauthorized",
  "forbidden",
]);

/** What nobody must do anything about is no warning. */
const ALARM_STATES: Readonly<Record<Alarm["severity"], CheckState>> = {
  critical: "critical",
  warning: "warning",
  notice: "ok",
};

/** `alarms`: the gravest first, as the coordinator answers; none where they can't be had. */
export function verdictOf(
  { namespace, guard, runsUsed, runsLeft, highWaterMark }: StatusAnswer,
  alarms: readonly Alarm[],
): Verdict {
  const { roomRuns } = guard;
  const figures = { runsUsed, runsLeft, roomRuns };
  const atGuard = GUARD_STATES[guard.state];
  if (atGuard !== "ok") {
    const explanation = `namespace ${namespace} does not lease (${guard.code}): ${guard.explanation}`;
    return { state: atGuard, explanation, figures };
  }
  const left = `${grouped(runsLeft)} runs left of ${grouped(runsUsed + runsLeft)}`;
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
    explanation: `namespace ${namespace} leases: mark ${grouped(highWaterMark)}, ${left}`,
    figures,
  };
}

/** A coordinator that answers with a refusal leases nothing; one that does not answer, or not to this caller, may be well. */
export function verdictWithout(namespace: string, { code, message }: { code: string; message: string }): Verdict {
  const state = UNKNOWN_CODES.has(code) ? "unknown" : "critical";
  return { state, explanation: `namespace ${namespace} (${code}): ${message}`, figures: null };
}

/** In one line; behind the bar the figures, with the values from which they warn, for graphs. */
export function checkLine({ state, explanation, figures }: Verdict): string {
  // The bar would end the text, and the line is one.
  const text = `CALLNUMBER ${state.toUpperCase()} - ${explanation.replaceAll("|", "/").replace(/\s+/g, " ")}`;
  if (figures === null) return text;
  const { runsUsed, runsLeft, roomRuns } = figures;
  const all = runsUsed + runsLeft;
  const warning = Math.ceil(all * WARNING_SHARE);
  const critical = Math.ceil(all * CRITICAL_SHARE);
  return `${text} | runs_used=${runsUsed};${warning};${critical};0;${all} room_runs=${roomRuns};;;0`;
}
