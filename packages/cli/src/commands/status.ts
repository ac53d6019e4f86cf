/** `status`: what is used and left, and how long it will last; or a verdict for monitoring. */
import { pathOf, ROUTES, runName, withSeparators } from "@callnumber/protocol/api";
import {
  type Alarm,
  type CapacityResponse,
  capacityResponseSchema,
  type GuardStatus,
  type NamespaceDescription,
  namespacesResponseSchema,
  type StatusResponse,
  statusResponseSchema,
  type UseRate,
} from "@callnumber/protocol/schemas";
import { Command, Option } from "commander";
import { follow } from "../follow.js";
import { invocation } from "../invocation.js";
import { addOptions, coordinatorOptions, type NamespaceOptions, namespaceOption } from "../options.js";
import {
  escapeFields,
  formatCount,
  formatTime,
  jsonLine,
  type Paint,
  paintFor,
  print,
  printJson,
  printPainted,
  type Style,
} from "../output.js";
import { RequestError, requestJson } from "../requests.js";
import { type Column, terminalTable } from "../table.js";

/** Moves the cursor to the top, and erases what is below it. */
const CLEAR_SCREEN = "\u001b[H\u001b[J";

interface Options extends NamespaceOptions {
  readonly allNamespaces?: boolean;
  readonly check?: boolean;
  readonly watch?: boolean;
}

export function makeCommand(): Command {
  const command = new Command("status")
    .description(
      "Shows the state of a namespace: what is used and left, at which rate and until when, and alarms with what to do. With --check: one " +
        "line, and an exit code for scripts and monitoring: 0 it leases · 1 it recovers, or will need an operator · 2 it does not lease, or " +
        "soon can't · 3 no coordinator answers, or none without a valid token.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber status --all-namespaces\n  $ callnumber status --watch\n" +
        "  $ callnumber status --check || mail -s callnumber operator",
    )
    .action(async (options: Options) => {
      if (options.allNamespaces) await listAll(options);
      else if (options.check) await check(options);
      else if (options.watch) await watch(options);
      else await show(options);
    });
  return addOptions(command, [
    ...coordinatorOptions(),
    namespaceOption(),
    new Option("--all-namespaces", "list the store's namespaces, one a line").conflicts("check"),
    new Option("--check", "one line and an exit code, as monitoring plugins do"),
    new Option("--watch", "show it again with each change, until Ctrl-C").conflicts(["check", "allNamespaces"]),
  ]);
}

interface Found {
  readonly status: StatusResponse;
  /** The state is shown also without the capacity. */
  readonly capacity: CapacityResponse | Error;
}

/** @throws RequestError without the state. */
async function find({ namespace, ...place }: Options): Promise<Found> {
  const status = await requestJson(place, pathOf("status", { namespace }), statusResponseSchema);
  const path = pathOf("capacity", { namespace });
  const capacity = await requestJson(place, path, capacityResponseSchema).catch((error: Error) => error);
  return { status, capacity };
}

async function show(options: Options): Promise<void> {
  const found = await find(options);
  if (options.json) printJson(asJson(found));
  else printPainted(formatStatus(found, paintFor()));
}

/** At a terminal in the place of what was shown before; elsewhere below it, after an empty line. JSON is one line each time. */
async function watch(options: Options): Promise<void> {
  const { stdout } = invocation().io;
  let gap = "";
  await follow(options, async () => {
    const found = await find(options);
    if (options.json) return print(jsonLine(asJson(found)));
    printPainted((stdout.isTTY ? CLEAR_SCREEN : gap) + formatStatus(found, paintFor()));
    gap = "\n";
  });
}

async function check(options: Options): Promise<void> {
  const verdict = await verdictFor(options);
  const exitCode = EXIT_CODES[verdict.state];
  invocation().exitCode = exitCode;
  print(options.json ? jsonLine({ ...verdict, exitCode }) : checkLine(verdict));
}

async function verdictFor(options: Options): Promise<Verdict> {
  try {
    const { status, capacity } = await find(options);
    return verdictOf(status, capacity instanceof Error ? [] : capacity.alarms);
  } catch (error) {
    if (error instanceof RequestError) return verdictWithout(options.namespace, error);
    throw error;
  }
}

async function listAll({ json, ...place }: Options): Promise<void> {
  const { namespaces } = await requestJson(place, ROUTES.namespaces, namespacesResponseSchema);
  if (json) printJson(namespaces);
  else if (namespaces.length === 0) print("no namespaces");
  else printPainted(terminalTable(COLUMNS, namespaces));
}

const GUARD_STYLES: Readonly<Record<GuardStatus["state"], Style>> = {
  active: "green",
  recovering: "yellow",
  stopped: "red",
};

const COLUMNS: readonly Column<NamespaceDescription>[] = [
  { heading: "NAMESPACE", cellOf: ({ namespace }) => namespace, expendability: 0 },
  { heading: "RUNS USED", cellOf: ({ record }) => record?.runsUsed ?? "?", isCount: true, expendability: 2 },
  { heading: "RUNS LEFT", cellOf: ({ record }) => record?.runsLeft ?? "?", isCount: true, expendability: 1 },
  { heading: "RATE", cellOf: ({ record }) => record?.ceilingRunsPerSecond ?? "?", isCount: true, expendability: 4 },
  {
    heading: "GUARD",
    cellOf: ({ guard }) => guard.state.replaceAll("_", " "),
    styleOf: ({ guard }) => GUARD_STYLES[guard.state],
    expendability: 0,
  },
];

/** The capacity is null where it is not known. */
function asJson({ status, capacity }: Found): object {
  return { ...status, capacity: capacity instanceof Error ? null : capacity };
}

function formatStatus({ status: received, capacity }: Found, paint: Paint): string {
  const status = escapeFields(received);
  const { namespace, store, coordinator, storeId, version, firstRun, runsUsed, runsLeft, callNumbersLeft } = status;
  const { headroomRuns, lastRecovery } = status.guard;
  const usedPercent = ((100 * runsUsed) / (runsUsed + runsLeft)).toFixed(3);
  return [
    `namespace ${paint("bold", namespace)} on the ${store} store of coordinator ${coordinator}`,
    `  store id           ${storeId}`,
    `  version            ${version}, first run ${runName(version, firstRun)}`,
    `  high-water mark    ${formatHighWaterMark(status)}`,
    `  runs used          ${formatCount(runsUsed)}, leased or skipped, ${usedPercent} %`,
    `  runs left          ${formatCount(runsLeft)}, for ${formatCount(callNumbersLeft)} call numbers`,
    `  guard              ${formatGuard(status.guard, paint)}`,
    `  headroom           ${formatCount(headroomRuns)} runs may be leased now, below the run ceiling`,
    ...(lastRecovery === null
      ? []
      : [`  last recovery      ${lastRecovery.explanation} (${formatTime(lastRecovery.atMs)})`]),
    ...status.rates.map(formatRate),
    ...(capacity instanceof Error
      ? [`  alarms             not known: ${withSeparators(escapeFields(capacity.message))}`]
      : [formatCeiling(capacity), ...formatAlarms(escapeFields(capacity.alarms), paint)]),
  ].join("\n");
}

function formatHighWaterMark({ version, highWaterMark, runsUsed, lastLeaseAtMs }: StatusResponse): string {
  if (runsUsed === 0) return "no run leased yet";
  const when = lastLeaseAtMs === null ? "no lease in the ledger" : `last lease at ${formatTime(lastLeaseAtMs)}`;
  return `run ${runName(version, highWaterMark)}, ${when}`;
}

function formatGuard(guard: GuardStatus, paint: Paint): string {
  const { state, sinceMs, explanation, nodeCount } = guard;
  const nodes = nodeCount === 1 ? "1 data node" : `${formatCount(nodeCount)} data nodes`;
  if (state === "active") return `${paint(GUARD_STYLES.active, "active")} since ${formatTime(sinceMs)}; ${nodes}`;
  return `${paint(GUARD_STYLES[state], state)} since ${formatTime(sinceMs)} (${formatCause(guard)})\n      ${withSeparators(explanation)}`;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** What was measured; a rate of a day only for an hour or more, as a forecast. */
function formatRate({ windowMs, runs, runsPerDay, exhaustedAtMs }: UseRate): string {
  const hours = windowMs / HOUR_MS;
  const minutes = Math.floor(windowMs / MINUTE_MS);
  const shorter = minutes === 1 ? "last minute" : `last ${minutes} minutes`;
  const window =
    hours < 1 ? shorter : hours === 1 ? "last hour" : hours === 24 ? "last day" : `last ${hours / 24} days`;
  const leased = `  ${window.padEnd(17)}  ${formatCount(runs)} ${runs === 1 ? "run" : "runs"}`;
  if (exhaustedAtMs === null && hours < 1) return `${leased}, too short a time for a forecast`;
  const end = exhaustedAtMs === null ? "" : `; at this rate the runs last until ${formatFarTime(exhaustedAtMs)}`;
  return `${leased}, ${formatCount(Math.round(runsPerDay))} a day${end}`;
}

/** The day when it is near, else the year: a day would pretend to be exact. */
function formatFarTime(timeMs: number): string {
  const date = new Date(timeMs);
  const isNear = timeMs - Date.now() < 2 * 365 * 24 * HOUR_MS;
  if (isNear) return date.toISOString().slice(0, 10);
  const year = date.getUTCFullYear();
  return `the year ${year < 10_000 ? year : formatCount(year)}`;
}

function formatCeiling({ ceilingRunsPerSecond, ceilingEndsAtMs }: CapacityResponse): string {
  return `  run ceiling        rises by ${formatCount(ceilingRunsPerSecond)} a second, ends at ${formatTime(ceilingEndsAtMs)}; no version is used up before`;
}

const ALARM_STYLES: Readonly<Record<Alarm["severity"], Style>> = { critical: "red", warning: "yellow", notice: "bold" };

function formatAlarms(alarms: readonly Alarm[], paint: Paint): readonly string[] {
  if (alarms.length === 0) return ["  alarms             none"];
  return alarms.flatMap(({ name, severity, explanation }, index) => [
    `  ${(index === 0 ? "alarms" : "").padEnd(17)}  ${paint(ALARM_STYLES[severity], `${name} (${severity})`)}`,
    `      ${withSeparators(explanation)}`,
  ]);
}

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
  { namespace, guard, runsUsed, runsLeft, version, highWaterMark }: StatusResponse,
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
    explanation: `namespace ${namespace} leases: mark ${runName(version, highWaterMark)}, ${left}`,
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
