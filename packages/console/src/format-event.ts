/** The events of the stream as sentences. Pure. */
import type { OperatorEvent } from "@callnumber/protocol/operator";
import { counted, grouped, labelsInWords } from "./format.js";

type Tell = (fields: Readonly<Record<string, unknown>>, event: OperatorEvent) => string;

/** Leases and refusals are many, and have pages of their own; these say what became of the guard. */
const ORDINARY: ReadonlySet<string> = new Set([
  "lease",
  "leases",
  "start",
  "stop",
  "pin",
  "labels",
  "ledger_trimmed",
  "ledger_not_trimmed",
  "hang_up_ignored",
  "log_lines_lost",
]);

const REFUSALS: Tell = ({ refusalCount }, { code }) =>
  `${counted(number(refusalCount), "more refusal")} in the same second (${code ?? "?"})`;

/** Which event it sums up says the sum itself. */
const summedUp = (of: unknown) => (typeof of === "string" ? of : "?").replaceAll("_", " ");

const SENTENCES: Readonly<Record<string, Tell>> = {
  lease: ({ firstRun, runCount, holder }) =>
    `${runs(number(firstRun), number(runCount))} leased to ${text((holder as { name?: unknown } | undefined)?.name)}`,
  leases: ({ leaseCount, runCount }) =>
    `${counted(number(leaseCount), "more lease")} in the same second, ${counted(number(runCount), "run")}`,
  refusal: ({ reason }, { code }) => `refused (${code ?? "?"}): ${text(reason)}`,
  refusals: REFUSALS,
  repeated: ({ of, eventCount }) => `${grouped(number(eventCount))} more in the same second: ${summedUp(of)}`,
  in_doubt: ({ explanation }) => `in doubt: ${text(explanation)}`,
  fenced: ({ explanation }) => `fenced: ${text(explanation)}`,
  open: () => "leasing is open",
  jump: ({ before, mark, reason }) =>
    `jumped from run ${grouped(number(before))} to run ${grouped(number(mark))}, because of ${text(reason)}; the runs between are never leased`,
  burnt: ({ firstRun, runCount, reason }) =>
    `${runs(number(firstRun), number(runCount))} burnt, and never handed out: ${text(reason)}`,
  alarm: ({ explanation }) => `alarm: ${text(explanation)}`,
  alarm_ended: ({ name }) => `the alarm ${text(name).replaceAll("_", " ")} is over`,
  alarms_failed: ({ reason }) => `the alarms could not be looked at: ${text(reason)}`,
  ledger_trimmed: ({ leaseCount }) => `${counted(number(leaseCount), "lease")} trimmed from the store, into a file`,
  ledger_not_trimmed: ({ days, reason }) =>
    `leases older than ${counted(number(days), "day")} stay in the store: ${text(reason)}`,
  ledger_trim_failed: ({ reason }) => `the ledger could not be trimmed, and nothing is lost: ${text(reason)}`,
  labels: ({ labels }) =>
    `the namespace has new labels: ${labelsInWords((labels ?? {}) as Readonly<Record<string, string>>) || "none"}`,
  init: ({ firstRun }) => `the namespace was made, with first run ${grouped(number(firstRun))}`,
  pin: ({ storeId }) => `the store was met for the first time from here, and believed: ${text(storeId)}`,
  run_beyond_mark: ({ lastRun, mark }) =>
    `an importer holds run ${grouped(number(lastRun))}, and the mark is ${grouped(number(mark))}`,
  clocks_disagree: ({ aheadMs }) => `a holder’s clock is ${grouped(number(aheadMs))} ms ahead`,
  touch_failed: ({ reason }) => `the store could not be touched: ${text(reason)}`,
  seal_failed: ({ reason }) => `the forked store could not be sealed: ${text(reason)}`,
  preflight_failed: ({ reason }) => `the store’s servers could not be looked at: ${text(reason)}`,
  preflight_finding: ({ what, remedy }) => `${text(what)}. ${text(remedy)}`,
  preflight_finding_gone: ({ what }) => `mended: ${text(what)}`,
  internal_error: () => "the coordinator met a fault of its own; its log says more",
  tokens_reread: ({ tokenCount }) => `the tokens were read again: ${counted(number(tokenCount), "token")}`,
  tokens_not_reread: ({ reason }) => `the tokens could not be read again: ${text(reason)}`,
  hang_up_ignored: () => "the coordinator was sent SIGHUP, and has no files to read again",
  log_lines_lost: ({ lineCount, reason }) => `the log misses ${counted(number(lineCount), "line")}: ${text(reason)}`,
  certificate_reloaded: ({ endsAt }) => `a new TLS certificate is in use, until ${text(endsAt)}`,
  certificate_not_reloaded: ({ reason }) => `the new TLS certificate can’t be used: ${text(reason)}`,
  certificate_ends_soon: ({ daysLeft }) => `the TLS certificate ends in ${counted(number(daysLeft), "day")}`,
  certificate_ended: ({ endsAt }) => `the TLS certificate has ended on ${text(endsAt)}`,
  start: ({ release }) => `the coordinator started, release ${text(release)}`,
  stop: ({ reason }) => `the coordinator stops: ${text(reason)}`,
};

export function sentenceOf(event: OperatorEvent): string {
  const tell = Object.hasOwn(SENTENCES, event.event) ? SENTENCES[event.event] : undefined;
  if (tell !== undefined) return tell(event.fields, event);
  const { reason, explanation, what } = event.fields;
  return [event.event.replaceAll("_", " "), reason ?? explanation ?? what].filter(Boolean).map(text).join(": ");
}

/** Whether it says what became of the guard, of the store, or of an importer that was refused. */
export function isOfGuard(event: OperatorEvent): boolean {
  const name = event.event === "repeated" ? text(event.fields["of"]) : event.event;
  return !ORDINARY.has(name) && isOfImporters(event);
}

/** A refused question of a page or a terminal is nobody's trouble but of whoever asked, who was told. */
export function isOfImporters({ event, fields }: OperatorEvent): boolean {
  const { path } = fields;
  return event !== "refusal" || typeof path !== "string" || /\/(leases|report)$/.test(path);
}

export interface Happening {
  readonly event: OperatorEvent;
  readonly sentence: string;
  /** How often in a row the same was told; `event` is the newest of them. */
  readonly count: number;
}

/** Events, newest first, with what was told again and again told once. */
export function happenings(events: readonly OperatorEvent[]): readonly Happening[] {
  const told: Happening[] = [];
  for (const event of events) {
    const sentence = sentenceOf(event);
    const before = told.at(-1);
    if (before?.sentence === sentence) told[told.length - 1] = { ...before, count: before.count + 1 };
    else told.push({ event, sentence, count: 1 });
  }
  return told;
}

export function runs(firstRun: number, runCount: number): string {
  if (runCount === 1) return `run ${grouped(firstRun)}`;
  return `runs ${grouped(firstRun)} to ${grouped(firstRun + runCount - 1)}`;
}

function number(value: unknown): number {
  return typeof value === "number" ? value : Number.NaN;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
