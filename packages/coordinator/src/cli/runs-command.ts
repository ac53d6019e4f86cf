/** `runs`: the newest leases, with --follow those that come, and with a run the one lease that holds it. */
import { setTimeout as delay } from "node:timers/promises";
import { runAnswerSchema, runsAnswerSchema } from "@callnumber/protocol/schemas";
import {
  type KnownRunState,
  type LedgerEntry,
  PAGE_LIMIT_MAX,
  pathOf,
  type RunAnswer,
  type RunsAnswer,
  type TrimmedLeases,
} from "@callnumber/protocol/wire";
import { Command, Option } from "commander";
import { lastLedgerIdOf } from "../ledger/lease-identity.js";
import { stateOf } from "../ledger/read-ledger.js";
import { askCoordinator } from "./ask-coordinator.js";
import { AskError } from "./ask-error.js";
import { tokenFileOption } from "./bearer-token.js";
import type { Style } from "./colours.js";
import { commandIo } from "./command-io.js";
import { failureOf } from "./failure.js";
import { type FilterOptions, filterOptions, filterQuery, LEDGER_ID_MAX } from "./ledger-filter-options.js";
import { checked, checkedOption, coordinatorOption, everyOption, namespaceOption, wholeNumber } from "./options.js";
import { grouped, instant, jsonLine, labelsInWords, print, printJson, printPainted } from "./print.js";
import { shownFields } from "./shown-fields.js";
import { type Column, nameCell, type Table } from "./table.js";
import { terminalTable } from "./terminal-table.js";
import { untilStopped } from "./until-stopped.js";

interface Options extends FilterOptions {
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly namespace: string;
  readonly limit: number;
  readonly follow?: boolean;
  readonly every: number;
  readonly json?: boolean;
}

const LIMIT_MAX = 100_000;

export function runsCommand(): Command {
  const command = new Command("runs")
    .summary("list the newest leases, or show one run")
    .description(
      "Lists leases, newest first. STATE is what the holder reported: how far it got (run/sequence; - for none), and whether it goes " +
        "on (open), used all (exhausted) or gave up the rest (closed). unreported: nothing was heard of it since. burnt: it was never " +
        "handed out. On a terminal the table fits it; elsewhere all stands in full. With a run, shows that run alone.",
    )
    .argument("[run]", "number of one run", (text) => checked(wholeNumber(0, LEDGER_ID_MAX), text));
  for (const option of filterOptions()) command.addOption(option);
  return command
    .addOption(checkedOption("--limit <count>", "how many leases", wholeNumber(1, LIMIT_MAX)).default(20))
    .addOption(followOption())
    .addOption(everyOption())
    .addOption(coordinatorOption())
    .addOption(tokenFileOption())
    .addOption(namespaceOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber runs --limit 5\n  $ callnumber runs 99\n" +
        "  $ callnumber runs --holder mbox-importer --label archive=lists --from 2026-11-21\n  $ callnumber runs --follow --host mail-1",
    )
    .action(async (run: number | undefined, options: Options, self: Command) => {
      if (run !== undefined) await showRun(run, options, self);
      else if (options.follow) await follow(options);
      else await list(options);
    });
}

function followOption(): Option {
  const description = "go on with new leases as they come, oldest first, until Ctrl-C; with --json a line of JSON each";
  return new Option("--follow", description).conflicts(["to", "toRun", "state"]);
}

/** Of one run: the others choose among leases. */
const OPTIONS_OF_ONE: ReadonlySet<string> = new Set(["coordinator", "tokenFile", "namespace", "json"]);

async function showRun(run: number, { json, ...asked }: Options, command: Command): Promise<void> {
  const other = command.options.find((option) => {
    const name = option.attributeName();
    return !OPTIONS_OF_ONE.has(name) && command.getOptionValueSource(name) === "cli";
  });
  if (other !== undefined)
    throw new TypeError(`run ${run} is one run: ${other.long} is for a list. Leave one of them out`);
  const answer = await askCoordinator(asked, pathOf("run", { namespace: asked.namespace, run }), runAnswerSchema);
  if (json) printJson(answer);
  else print(runInWords(shownFields(answer)));
}

async function list({ limit, json, ...asked }: Options): Promise<void> {
  const { leases, trimmed } = await newestLeases(asked, filterQuery(asked), limit);
  if (json) return printJson(leases);
  if (leases.length > 0) printPainted(leaseTable().linesOf(leases).join("\n"));
  else if (trimmed === null) print("no leases");
  if (trimmed !== null) print(trimmedInWords(trimmed));
}

type Asked = Pick<Options, "coordinator" | "tokenFile" | "namespace">;

interface NewestLeases {
  readonly leases: readonly LedgerEntry[];
  /** What was trimmed of older ones, where fewer were there than asked for. */
  readonly trimmed: TrimmedLeases | null;
}

/** Newest first. Follows the cursor until there are enough: a filtered page may be short although more follow. */
async function newestLeases(asked: Asked, filter: URLSearchParams, limit: number): Promise<NewestLeases> {
  const leases: LedgerEntry[] = [];
  let cursor: string | null = null;
  let trimmed: TrimmedLeases | null = null;
  do {
    const query = new URLSearchParams(filter);
    query.set("limit", String(Math.min(limit - leases.length, PAGE_LIMIT_MAX)));
    if (cursor !== null) query.set("cursor", cursor);
    const path = `${pathOf("runs", { namespace: asked.namespace })}?${query}`;
    const page: RunsAnswer = await askCoordinator(asked, path, runsAnswerSchema);
    leases.push(...page.leases);
    if (cursor !== null && page.nextCursor !== null && !(Number(page.nextCursor) < Number(cursor))) {
      // Without the address, which may hold a password.
      throw new AskError(
        "answer_not_understood",
        "a page was answered that leads no further back than the one before; is --coordinator a coordinator's address?",
      );
    }
    ({ nextCursor: cursor, trimmed } = page);
  } while (cursor !== null && leases.length < limit);
  return { leases, trimmed };
}

/**
 * Each new lease once, oldest first, and none left out: what is new lies above the newest ledger id that was there before. A
 * coordinator that stops answering is reported once, until it answers again. @throws AskError when it does not answer at first.
 */
async function follow({ limit, every, json, ...asked }: Options): Promise<void> {
  const stopping = new AbortController();
  const stopped = untilStopped().then(() => stopping.abort());
  const { stderr } = commandIo();
  const table = leaseTable();
  const show = (leases: readonly LedgerEntry[]): void => {
    if (leases.length > 0) printPainted((json ? leases.map(jsonLine) : table.linesOf(leases)).join("\n"));
  };
  let known = await leasesAbove(-1, asked, limit);
  show(known.leases);
  for (let isTroubled = false; ; ) {
    await delay(every, undefined, { signal: stopping.signal }).catch(() => {});
    if (stopping.signal.aborted) return;
    try {
      const next = await Promise.race([leasesAbove(known.upTo, asked, Number.POSITIVE_INFINITY), stopped]);
      if (next === undefined) return;
      known = next;
      show(known.leases);
      isTroubled = false;
    } catch (error) {
      if (!(error instanceof AskError)) throw error;
      if (!isTroubled) stderr.write(failureOf(error, json === true));
      isTroubled = true;
    }
  }
}

interface Known {
  /** Oldest first. */
  readonly leases: readonly LedgerEntry[];
  /** Ledger id up to which all are known; -1 for none. */
  readonly upTo: number;
}

/** Up to a lease that was there first: what comes while pages are read lies above it. */
async function leasesAbove(after: number, asked: Asked & FilterOptions, limit: number): Promise<Known> {
  const [newest] = (await newestLeases(asked, new URLSearchParams(), 1)).leases;
  const upTo = newest === undefined ? after : lastLedgerIdOf(newest);
  if (upTo <= after) return { leases: [], upTo: after };
  const filter = filterQuery({ ...asked, fromRun: Math.max(after + 1, asked.fromRun ?? 0), toRun: upTo });
  const { leases } = await newestLeases(asked, filter, limit);
  return { leases: leases.toReversed(), upTo };
}

const STATE_STYLES: Readonly<Record<KnownRunState, Style | undefined>> = {
  open: "green",
  exhausted: undefined,
  closed: "dim",
  burnt: "red",
  unreported: "yellow",
};

const columnsFor = (isTerminal: boolean): readonly Column<LedgerEntry>[] => [
  { heading: "RUNS", cellOf: runsOf, expendability: 0 },
  { heading: "LEASED AT", cellOf: ({ leasedAtMs }) => timeInWords(leasedAtMs, isTerminal), expendability: 0 },
  { heading: "HOLDER", cellOf: ({ holder }) => nameCell(holder.name), shrinksTo: 8, expendability: 1 },
  { heading: "HOST", cellOf: ({ holder }) => nameCell(holder.host), shrinksTo: 8, expendability: 2 },
  { heading: "PID", cellOf: ({ holder }) => holder.pid, expendability: 3 },
  { heading: "STATE", cellOf: progressInWords, styleOf: (lease) => STATE_STYLES[stateOf(lease)], expendability: 0 },
  { heading: "LABELS", cellOf: ({ holder }) => labelsInWords(holder), shrinksTo: 10, expendability: 4 },
];

function leaseTable(): Table<LedgerEntry> {
  return terminalTable(columnsFor(commandIo().stdout.isTTY === true));
}

function runsOf({ firstRun, runCount }: Pick<LedgerEntry, "firstRun" | "runCount">): string {
  return runCount === 1 ? String(firstRun) : `${firstRun}-${firstRun + runCount - 1}`;
}

/** Whoever looks needs no milliseconds, and the width for other things. */
function timeInWords(timeMs: number, isTerminal: boolean): string {
  return isTerminal ? `${instant(timeMs).slice(0, "2026-11-21T08:00:00".length)}Z` : instant(timeMs);
}

/** A burnt lease got nowhere. */
function progressInWords(lease: LedgerEntry): string {
  const { progress } = lease;
  if (progress === null || progress.state === "burnt") return stateOf(lease);
  return `${progress.state} at ${progress.run}/${progress.lastSequence ?? "-"}`;
}

function runInWords(answer: RunAnswer): string {
  const { namespace, version, run, lastSequence, lease } = answer;
  const { holder, runCount, leasedAtMs, coordinator, tokenId, nonce } = lease;
  const labels = labelsInWords(holder);
  return [
    `run ${run} of version ${version} in namespace ${namespace}`,
    `  state        ${stateInWords(answer)}`,
    `  sequence     ${lastSequence === null ? "none reported" : `used up to ${lastSequence}`}`,
    `  leased       at ${instant(leasedAtMs)} by coordinator ${coordinator}${runCount === 1 ? "" : `, with runs ${runsOf(lease)}`}`,
    `  holder       ${holder.name} on ${holder.host}, pid ${holder.pid}`,
    ...(labels === "" ? [] : [`  labels       ${labels}`]),
    ...(tokenId === undefined ? [] : [`  token        ${tokenId}`]),
    `  nonce        ${nonce}`,
  ].join("\n");
}

function stateInWords({ state, lease: { progress } }: RunAnswer): string {
  if (progress === null) return state;
  const at = instant(progress.reportedAtMs);
  return state === "burnt" ? `burnt: it was never handed out; noted at ${at}` : `${state}, reported at ${at}`;
}

function trimmedInWords({ upToRun, lastLeasedAtMs }: TrimmedLeases): string {
  return `leases up to run ${grouped(upToRun)}, the last of ${instant(lastLeasedAtMs)}, were trimmed: they are in the files of --ledger-dir`;
}
