/** The events of the stream as sentences. Pure. */
import { type OperatorEvent, runName, runsName, withSeparators } from "@callnumber/protocol/api";
import { formatCount, formatNumber } from "./format.js";

type Formatter = (fields: Readonly<Record<string, unknown>>, event: OperatorEvent) => string;

/** Events that are not about the guard. */
const ORDINARY = /^(leases?|numbers|start|stop|pin|ledger_(not_)?trimmed|sighup_ignored|log_lines_dropped)$/;

const SENTENCES: Readonly<Record<string, Formatter>> = {
  lease: ({ holder, ...fields }) =>
    `${runsIn(fields)} leased to ${text((holder as { name?: unknown } | undefined)?.name)}`,
  leases: ({ leaseCount, runCount }) =>
    `${formatCount(number(leaseCount), "more lease")} in the same second, ${formatCount(number(runCount), "run")}`,
  numbers: ({ count, holder }) =>
    `${formatCount(number(count), "call number")} made for ${text((holder as { name?: unknown } | undefined)?.name ?? "a request")}`,
  request_rejected: ({ reason }, { code }) => `request rejected (${code ?? "?"}): ${firstSentence(reason)}`,
  rejections_suppressed: ({ rejectionCount }, { code }) =>
    `${formatCount(number(rejectionCount), "more rejection")} in the same second (${code ?? "?"})`,
  events_suppressed: ({ of, eventCount }) =>
    `${formatNumber(number(eventCount))} more in the same second: ${text(of).replaceAll("_", " ")}`,
  recovering: ({ explanation }) => `recovering: ${firstSentence(explanation)}`,
  stopped: ({ explanation }) => `leasing stopped: ${firstSentence(explanation)}`,
  active: () => "leasing is active",
  recovered: ({ version, before, mark, reason }) =>
    `recovered (${text(reason).replaceAll("_", " ")}): skipped from run ${runName(number(version), number(before))} to run ${runName(number(version), number(mark))}; the runs between are never leased`,
  discarded: ({ reason, ...fields }) => `${runsIn(fields)} discarded, and never handed out: ${text(reason)}`,
  alarm_cleared: ({ name }) => `the alarm ${text(name).replaceAll("_", " ")} is over`,
  ledger_trimmed: ({ leaseCount }) => `${formatCount(number(leaseCount), "lease")} trimmed from the store, into a file`,
  init: ({ firstRun }) => `the namespace was made, with first run ${runName(0, number(firstRun))}`,
  checkpoint_created: ({ storeId }) =>
    `no checkpoint for the namespace, so its store was trusted once: ${text(storeId)}`,
  run_above_high_water_mark: ({ lastVersion, lastRun, version, mark }) =>
    `an importer holds run ${runName(number(lastVersion), number(lastRun), number(version))}, and the high-water mark is ${runName(number(version), number(mark))}`,
  clock_skew: ({ aheadMs }) => `a holder’s clock is ${formatNumber(number(aheadMs))} ms ahead`,
  preflight_finding: ({ what, remedy }) => `${text(what)}. To fix it: ${text(remedy)}`,
  start: ({ release }) => `the coordinator started, release ${text(release)}`,
  stop: ({ reason }) => `the coordinator stops: ${text(reason)}`,
};

export function formatEvent(event: OperatorEvent): string {
  return withSeparators(sentenceOf(event));
}

function sentenceOf(event: OperatorEvent): string {
  const formatter = Object.hasOwn(SENTENCES, event.event) ? SENTENCES[event.event] : undefined;
  if (formatter !== undefined) return formatter(event.fields, event);
  // The names of the others explain themselves.
  const { reason, explanation, what, endsAt } = event.fields;
  return [event.event.replaceAll("_", " "), reason ?? explanation ?? what ?? endsAt]
    .filter(Boolean)
    .map(text)
    .join(": ");
}

/** Whether the event is about the guard, the store, or an importer that was rejected. */
export function isAboutGuard(event: OperatorEvent): boolean {
  const name = event.event === "events_suppressed" ? text(event.fields["of"]) : event.event;
  return !ORDINARY.test(name) && isAboutImporters(event);
}

/** All but rejected requests of pages and terminals, whose user knows of them. */
export function isAboutImporters({ event, fields }: OperatorEvent): boolean {
  const { path } = fields;
  return event !== "request_rejected" || typeof path !== "string" || /\/(leases|numbers|report)$/.test(path);
}

interface EventLine {
  readonly event: OperatorEvent;
  readonly sentence: string;
  /** How many events in a row have this sentence; `event` is the newest of them. */
  readonly count: number;
}

/** One line for each event, newest first, and for repeated ones together. */
export function eventLines(events: readonly OperatorEvent[]): readonly EventLine[] {
  const lines: EventLine[] = [];
  for (const event of events) {
    const sentence = formatEvent(event);
    const last = lines.at(-1);
    if (last?.sentence === sentence) lines[lines.length - 1] = { ...last, count: last.count + 1 };
    else lines.push({ event, sentence, count: 1 });
  }
  return lines;
}

/** run 7, runs 1/7-9 */
function runsIn({ version, firstRun, runCount }: Readonly<Record<string, unknown>>): string {
  const runs = { version: number(version), firstRun: number(firstRun), runCount: number(runCount) };
  return `${runs.runCount === 1 ? "run" : "runs"} ${runsName(runs)}`;
}

/** What happened, without what to do: the headline has all of it while it lasts. */
function firstSentence(explanation: unknown): string {
  return text(explanation).split(/\. (?=[A-Z])/, 1)[0] as string;
}

function number(value: unknown): number {
  return typeof value === "number" ? value : Number.NaN;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
