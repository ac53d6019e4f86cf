/** `status`: how much is used, how much is left, how long it will last; once, over and over, or as a verdict for monitoring. */
import { setTimeout as delay } from "node:timers/promises";
import type { Alarm, CapacityAnswer, NamespaceDescription } from "@callnumber/protocol/operator";
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { capacityAnswerSchema, namespacesAnswerSchema } from "@callnumber/protocol/operator-schemas";
import { statusAnswerSchema } from "@callnumber/protocol/schemas";
import { filledPath, type GuardAnswer, pathOf, type StatusAnswer, type UseRate } from "@callnumber/protocol/wire";
import { Command, Option } from "commander";
import { askCoordinator } from "../ask-coordinator.js";
import { AskError } from "../ask-error.js";
import { tokenFileOption } from "../bearer-token.js";
import { type Paint, paintFor, type Style } from "../colours.js";
import { commandIo, running } from "../command-io.js";
import { failureOf } from "../failure.js";
import { coordinatorOption, everyOption, namespaceOption } from "../options.js";
import { grouped, instant, jsonLine, labelsInWords, print, printJson, printPainted } from "../print.js";
import { shownFields } from "../shown-fields.js";
import { checkLine, EXIT_CODES, type Verdict, verdictOf, verdictWithout } from "../status-check.js";
import type { Column } from "../table.js";
import { terminalTable } from "../terminal-table.js";
import { untilStopped } from "../until-stopped.js";

interface Options {
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly namespace: string;
  readonly allNamespaces?: boolean;
  readonly watch?: boolean;
  readonly every: number;
  readonly check?: boolean;
  readonly json?: boolean;
}

export function statusCommand(): Command {
  return new Command("status")
    .summary("show what is used and left, forecasts, alarms")
    .description(
      "Shows the state of a namespace: what is used and left, how fast it goes and until when, and what to do before it hurts. With " +
        "--check: one line, and an exit code for scripts and monitoring: 0 it leases · 1 it will need somebody · 2 it does not lease, or " +
        "soon can't · 3 no coordinator answers, or none without a good token.",
    )
    .addOption(coordinatorOption())
    .addOption(tokenFileOption())
    .addOption(namespaceOption())
    .addOption(new Option("--all-namespaces", "list the store's namespaces, one a line").conflicts(["check", "watch"]))
    .addOption(new Option("--check", "one line and an exit code, as monitoring plugins do").conflicts("watch"))
    .addOption(new Option("--watch", "look again and again, until Ctrl-C; with --json a line of JSON each time"))
    .addOption(everyOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber status --all-namespaces\n  $ callnumber status --watch --every 5\n" +
        "  $ callnumber status --check || mail -s callnumber operator",
    )
    .action(async (options: Options) => {
      if (options.allNamespaces) await listAll(options);
      else if (options.check) await check(options);
      else if (options.watch) await watch(options);
      else await show(options);
    });
}

interface Look {
  readonly status: StatusAnswer;
  /** What is known of the state is shown also where this can't be had. */
  readonly capacity: CapacityAnswer | Error;
}

/** @throws AskError when the state can't be had. */
async function look({ namespace, ...asked }: Options): Promise<Look> {
  const status = await askCoordinator(asked, pathOf("status", { namespace }), statusAnswerSchema);
  const path = filledPath(OPERATOR_ROUTES.capacity, { namespace });
  const capacity = await askCoordinator(asked, path, capacityAnswerSchema).catch((error: Error) => error);
  return { status, capacity };
}

async function show(options: Options): Promise<void> {
  const seen = await look(options);
  if (options.json) printJson(asJson(seen));
  else printPainted(inWords(seen, paintFor(false)));
}

async function check(options: Options): Promise<void> {
  const verdict = await verdictFrom(options);
  const exitCode = EXIT_CODES[verdict.state];
  running().exitCode = exitCode;
  if (options.json) print(jsonLine({ ...verdict, exitCode }));
  else print(checkLine(verdict));
}

async function verdictFrom(options: Options): Promise<Verdict> {
  try {
    const { status, capacity } = await look(options);
    return verdictOf(status, capacity instanceof Error ? [] : capacity.alarms);
  } catch (error) {
    if (error instanceof AskError) return verdictWithout(options.namespace, error);
    throw error;
  }
}

/** A coordinator that does not answer is shown like everything else: somebody is watching for just that. */
async function watch(options: Options): Promise<void> {
  const paint = paintFor(options.json === true);
  const stopping = new AbortController();
  void untilStopped().then(() => stopping.abort());
  const lookInWords = async () => {
    try {
      const seen = await look(options);
      return options.json ? jsonLine(asJson(seen)) : inWords(seen, paint);
    } catch (error) {
      if (!(error instanceof AskError)) throw error;
      return options.json ? failureOf(error, true).trimEnd() : paint("red", failureOf(error, false).trimEnd());
    }
  };
  await watched({ look: lookInWords, everyMs: options.every, asJson: options.json === true, signal: stopping.signal });
}

interface Watch {
  /** What is to be shown, with our colours: what others chose was made visible before. */
  readonly look: () => Promise<string>;
  readonly everyMs: number;
  readonly asJson: boolean;
  readonly signal: AbortSignal;
}

/** Names as in the manual of xterm. */
const ESCAPES = {
  enterScreen: "\u001b[?1049h\u001b[?25l",
  leaveScreen: "\u001b[?25h\u001b[?1049l",
  home: "\u001b[H",
  eraseToEndOfLine: "\u001b[K",
  eraseBelow: "\u001b[J",
} as const;

/**
 * Shows each look, until the signal comes. On a terminal it takes the place of the one before, on a screen of its own, and the last
 * one stays when it ends; elsewhere each stands behind the one before.
 */
async function watched({ look, everyMs, asJson, signal }: Watch): Promise<void> {
  const onScreen = commandIo().stdout.isTTY === true && !asJson;
  const leave = onScreen ? enterScreen() : () => {};
  let last = "";
  try {
    while (!signal.aborted) {
      last = await look();
      if (signal.aborted) break;
      if (onScreen) redraw(`${last}\n\nlooked at ${instant(Date.now())}, every ${everyMs / 1_000} s; Ctrl-C ends`);
      else printPainted(asJson ? last : `${instant(Date.now())}  ${last}`);
      await delay(everyMs, undefined, { signal }).catch(() => {});
    }
  } finally {
    leave();
  }
  if (onScreen) printPainted(last);
}

/** Answers what leaves it; a command that is ended by something else leaves it, too. */
function enterScreen(): () => void {
  const command = running();
  const { stdout } = command.io;
  stdout.write(ESCAPES.enterScreen);
  const leave = () => void stdout.write(ESCAPES.leaveScreen);
  const forget = command.onEnd(leave);
  return () => {
    forget();
    leave();
  };
}

/** Over what stands there, and without a blank moment in between. */
function redraw(text: string): void {
  const lines = text.split("\n").map((line) => line + ESCAPES.eraseToEndOfLine);
  commandIo().stdout.write(ESCAPES.home + lines.join("\n") + ESCAPES.eraseBelow);
}

async function listAll({ json, ...asked }: Options): Promise<void> {
  const { namespaces } = await askCoordinator(asked, OPERATOR_ROUTES.namespaces, namespacesAnswerSchema);
  if (json) printJson(namespaces);
  else if (namespaces.length === 0) print("no namespaces");
  else printPainted(terminalTable(COLUMNS).linesOf(namespaces).join("\n"));
}

const GUARD_STYLES: Readonly<Record<GuardAnswer["state"], Style>> = {
  open: "green",
  in_doubt: "yellow",
  fenced: "red",
};

const COLUMNS: readonly Column<NamespaceDescription>[] = [
  { heading: "NAMESPACE", cellOf: ({ namespace }) => namespace, expendability: 0 },
  { heading: "RUNS USED", cellOf: ({ record }) => record?.runsUsed ?? "?", expendability: 2 },
  { heading: "RUNS LEFT", cellOf: ({ record }) => record?.runsLeft ?? "?", expendability: 1 },
  { heading: "RATE", cellOf: ({ record }) => record?.lineRunsPerSecond ?? "?", expendability: 4 },
  {
    heading: "GUARD",
    cellOf: ({ guard }) => guard.state.replaceAll("_", " "),
    styleOf: ({ guard }) => GUARD_STYLES[guard.state],
    expendability: 0,
  },
  { heading: "LABELS", cellOf: labelsInWords, shrinksTo: 10, expendability: 3 },
];

/** Where they can't be had, the capacity figures are null. */
function asJson({ status, capacity }: Look): object {
  return { ...status, capacity: capacity instanceof Error ? null : capacity };
}

function inWords({ status: answered, capacity }: Look, paint: Paint): string {
  const status = shownFields(answered);
  const { namespace, store, coordinator, storeId, version, firstRun, runsUsed, runsLeft, callNumbersLeft } = status;
  return [
    `namespace ${paint("bold", namespace)} on the ${store} store of coordinator ${coordinator}`,
    `  store id           ${storeId}`,
    `  version            ${version}, first run ${grouped(firstRun)}`,
    `  high-water mark    ${highWaterMarkInWords(status)}`,
    `  runs used          ${grouped(runsUsed)}, ${((100 * runsUsed) / (runsUsed + runsLeft)).toFixed(3)} %`,
    `  runs left          ${grouped(runsLeft)}, for ${grouped(callNumbersLeft)} call numbers`,
    `  guard              ${guardInWords(status.guard, paint)}`,
    `  room               ${grouped(status.guard.roomRuns)} runs may be leased at once, below the clock line`,
    ...lastRecoveryInWords(status.guard),
    ...status.rates.map(rateInWords),
    ...(capacity instanceof Error
      ? [`  alarms             not known: ${shownFields(capacity.message)}`]
      : [lineInWords(capacity), ...alarmsInWords(shownFields(capacity.alarms), paint)]),
  ].join("\n");
}

function highWaterMarkInWords({ highWaterMark, runsUsed, lastLeaseAtMs }: StatusAnswer): string {
  if (runsUsed === 0) return "no run leased yet";
  const when = lastLeaseAtMs === null ? "nothing leased yet" : `last lease at ${instant(lastLeaseAtMs)}`;
  return `run ${grouped(highWaterMark)}, ${when}`;
}

function guardInWords(guard: GuardAnswer, paint: Paint): string {
  const { state, code, sinceMs, explanation, generation, nodeCount } = guard;
  const nodes = nodeCount === 1 ? "1 data node" : `${nodeCount} data nodes`;
  if (state === "open")
    return `${paint(GUARD_STYLES.open, "open")} since ${instant(sinceMs)}; generation ${generation}, ${nodes}`;
  const word = paint(GUARD_STYLES[state], state === "fenced" ? "FENCED" : "in doubt");
  return `${word} since ${instant(sinceMs)} (${code})\n      ${explanation}`;
}

function lastRecoveryInWords({ lastRecovery }: GuardAnswer): readonly string[] {
  if (lastRecovery === null) return [];
  return [`  last recovery      ${lastRecovery.explanation} (${instant(lastRecovery.atMs)})`];
}

const HOUR_MS = 3_600_000;

function rateInWords({ windowMs, runs, runsPerDay, exhaustedAtMs }: UseRate): string {
  const hours = windowMs / HOUR_MS;
  const window = hours === 1 ? "last hour" : hours === 24 ? "last day" : `last ${hours / 24} days`;
  const end = exhaustedAtMs === null ? "" : `; at this rate the runs last until ${untilWhen(exhaustedAtMs)}`;
  return `  ${window.padEnd(17)}  ${grouped(runs)} ${runs === 1 ? "run" : "runs"}, ${grouped(Math.round(runsPerDay))} a day${end}`;
}

/** The day when it is near; the year when the day would only pretend to be exact. */
function untilWhen(timeMs: number): string {
  const date = new Date(timeMs);
  const isNear = timeMs - Date.now() < 2 * 365 * 24 * HOUR_MS;
  if (isNear) return date.toISOString().slice(0, 10);
  const year = date.getUTCFullYear();
  return `the year ${year < 10_000 ? year : grouped(year)}`;
}

function lineInWords({ lineRunsPerSecond, lineEndsAtMs }: CapacityAnswer): string {
  return `  the line ends      ${instant(lineEndsAtMs)}, rising by ${lineRunsPerSecond} a second: no version is used up before`;
}

const ALARM_STYLES: Readonly<Record<Alarm["severity"], Style>> = { critical: "red", warning: "yellow", notice: "bold" };

function alarmsInWords(alarms: readonly Alarm[], paint: Paint): readonly string[] {
  if (alarms.length === 0) return ["  alarms             none"];
  return alarms.flatMap(({ name, severity, explanation }, index) => [
    `  ${(index === 0 ? "alarms" : "").padEnd(17)}  ${paint(ALARM_STYLES[severity], `${name} (${severity})`)}`,
    `      ${explanation}`,
  ]);
}
