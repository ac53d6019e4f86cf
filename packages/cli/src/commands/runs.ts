/** `runs`: the newest leases, and with a run the one lease that holds it. */
import {
  type KnownRunState,
  ledgerIdOf,
  type NamedRun,
  PAGE_LIMIT_MAX,
  parseRunName,
  pathOf,
  pathOfRun,
  runName,
  runOfLedgerId,
  runsName,
} from "@callnumber/protocol/api";
import {
  type LedgerEntry,
  type RunResponse,
  type RunsResponse,
  runNameSchema,
  runResponseSchema,
  runsResponseSchema,
  type TrimmedLeases,
} from "@callnumber/protocol/schemas";
import { Command, Option } from "commander";
import { follow } from "../follow.js";
import { invocation } from "../invocation.js";
import {
  addOptions,
  checked,
  checkedOption,
  coordinatorOptions,
  type FilterOptions,
  filterOptions,
  filterQuery,
  type NamespaceOptions,
  namespaceOption,
  wholeNumber,
} from "../options.js";
import {
  escapeFields,
  formatCount,
  formatLabels,
  formatTime,
  jsonLine,
  print,
  printJson,
  printPainted,
  type Style,
} from "../output.js";
import { RequestError, requestJson } from "../requests.js";
import { type Column, nameCell, terminalTable } from "../table.js";

interface Options extends FilterOptions, NamespaceOptions {
  readonly limit: number;
  readonly follow?: boolean;
}

const LIMIT_MAX = 100_000;

export function makeCommand(): Command {
  const command = new Command("runs")
    .description(
      "Lists leases, newest first. STATE is what the holder reported: the last sequence it used (- for none) and of which run, and whether the " +
        "run is in use (open), used up (exhausted) or given up (closed). unreported: no report yet. discarded: never given to a holder. " +
        "skipped: by a recovery, never leased. On a terminal the table fits it; elsewhere every column is complete. With a run, shows that run alone.",
    )
    .argument("[run]", "one run, such as 99 or 1/65556 (version/run)", (text) => checked(runNameSchema, text))
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber runs --limit 5\n  $ callnumber runs --follow\n  $ callnumber runs 99\n  $ callnumber runs 1/65556\n" +
        "  $ callnumber runs --holder callnumber-archive --from 2026-11-21",
    )
    .action(async (run: NamedRun | undefined, options: Options, self: Command) => {
      if (run !== undefined) await showRun(run, options, self);
      else if (options.follow) await followLeases(options);
      else await list(options);
    });
  return addOptions(command, [
    checkedOption("--limit <count>", "how many leases", wholeNumber(1, LIMIT_MAX)).default(20),
    new Option("--follow", "list new leases below, as they are granted, until Ctrl-C"),
    ...filterOptions(),
    ...coordinatorOptions(),
    namespaceOption(),
  ]);
}

/** Those of one run: the others select leases of a list. */
const OPTIONS_OF_ONE: ReadonlySet<string> = new Set(["coordinator", "tokenFile", "namespace", "json"]);

async function showRun(run: NamedRun, { json, ...place }: Options, command: Command): Promise<void> {
  const other = command.options.find((option) => {
    const name = option.attributeName();
    return !OPTIONS_OF_ONE.has(name) && command.getOptionValueSource(name) === "cli";
  });
  if (other !== undefined)
    throw new TypeError(`run ${run.run} is one run: ${other.long} is for a list. Leave one of them out`);
  const found = await requestJson(place, pathOfRun(place.namespace, run), runResponseSchema);
  if (json) printJson(found);
  else print(formatRun(escapeFields(found)));
}

async function list(options: Options): Promise<void> {
  const { leases, trimmed, currentVersion } = await newestLeases(options);
  if (options.json) return printJson(leases);
  if (leases.length > 0) printPainted(terminalTable(columnsFor(currentVersion), leases));
  else if (trimmed === null) print("no leases");
  if (trimmed !== null) print(formatTrimmed(trimmed, currentVersion));
}

/** Oldest first, so that the newest is at the end. JSON is one line for each lease. */
async function followLeases(options: Options): Promise<void> {
  let shown: readonly LedgerEntry[] = [];
  let next: NamedRun | undefined;
  await follow(options, async () => {
    const query = next === undefined ? options : { ...options, fromRun: next, limit: LIMIT_MAX };
    const { leases: newestFirst, currentVersion } = await newestLeases(query);
    const [newest] = newestFirst;
    if (newest === undefined) return;
    next = runOfLedgerId(ledgerIdOf(newest.version, newest.firstRun + newest.runCount));
    const leases = newestFirst.toReversed();
    if (options.json) return print(leases.map(jsonLine).join("\n"));
    const table = terminalTable(columnsFor(currentVersion), [...shown, ...leases]).split("\n");
    // The first ones give the columns their widths.
    printPainted((shown.length === 0 ? table : table.slice(-leases.length)).join("\n"));
    if (shown.length === 0) shown = leases;
  });
}

/**
 * Reads leases, newest first. Follows the cursor up to the limit: a filtered page may be short although more follow. `trimmed`: which
 * older ones were trimmed, when there are fewer than the limit.
 */
async function newestLeases({ limit, ...place }: Options) {
  const leases: LedgerEntry[] = [];
  let cursor: string | null = null;
  let trimmed: TrimmedLeases | null = null;
  let currentVersion = 0;
  do {
    const query = filterQuery(place);
    query.set("limit", String(Math.min(limit - leases.length, PAGE_LIMIT_MAX)));
    if (cursor !== null) query.set("cursor", cursor);
    const path = `${pathOf("runs", { namespace: place.namespace })}?${query}`;
    const page: RunsResponse = await requestJson(place, path, runsResponseSchema);
    leases.push(...page.leases);
    if (cursor !== null && page.nextCursor !== null && !isBefore(page.nextCursor, cursor)) {
      // Without the URL, which may contain a password.
      throw new RequestError(
        "invalid_response",
        "the response is a page that leads no further back than the one before; is --coordinator the URL of a coordinator?",
      );
    }
    ({ nextCursor: cursor, trimmed, currentVersion } = page);
  } while (cursor !== null && leases.length < limit);
  return { leases, trimmed, currentVersion };
}

function isBefore(cursor: string, other: string): boolean {
  const [one, two] = [parseRunName(cursor), parseRunName(other)];
  if (one === undefined || two === undefined) return false;
  return ledgerIdOf(one.version ?? 0, one.run) < ledgerIdOf(two.version ?? 0, two.run);
}

const STATE_STYLES: Readonly<Record<KnownRunState, Style | undefined>> = {
  open: "green",
  exhausted: undefined,
  closed: "dim",
  discarded: "red",
  skipped: "dim",
  unreported: "yellow",
};

const columnsFor = (currentVersion: number): readonly Column<LedgerEntry>[] => [
  { heading: "RUNS", cellOf: (lease) => runsName(lease, currentVersion), expendability: 0 },
  { heading: "LEASED AT", cellOf: ({ leasedAtMs }) => formatLeaseTime(leasedAtMs), expendability: 0 },
  { heading: "HOLDER", cellOf: ({ holder }) => nameCell(holder.name), shrinksTo: 8, expendability: 1 },
  { heading: "HOST", cellOf: ({ holder }) => nameCell(holder.host), shrinksTo: 8, expendability: 2 },
  { heading: "PID", cellOf: ({ holder }) => holder.pid, expendability: 3 },
  {
    heading: "STATE",
    cellOf: (lease) => formatProgress(lease, currentVersion),
    styleOf: (lease) => STATE_STYLES[stateOf(lease)],
    expendability: 0,
  },
  { heading: "LABELS", cellOf: ({ holder }) => formatLabels(holder), shrinksTo: 10, expendability: 4 },
];

/** On a terminal without milliseconds: other columns need the width. */
function formatLeaseTime(timeMs: number): string {
  return invocation().io.stdout.isTTY
    ? `${formatTime(timeMs).slice(0, "2026-11-21T08:00:00".length)}Z`
    : formatTime(timeMs);
}

function stateOf({ progress }: LedgerEntry): KnownRunState {
  return progress?.state ?? "unreported";
}

function formatProgress(lease: LedgerEntry, currentVersion: number): string {
  const { progress } = lease;
  if (progress === null || progress.state === "discarded" || progress.state === "skipped") return stateOf(lease);
  const of = lease.runCount === 1 ? "" : ` of ${runName(lease.version, progress.run, currentVersion)}`;
  return `${progress.state} at ${progress.lastSequence ?? "-"}${of}`;
}

function formatRun(found: RunResponse): string {
  const { namespace, currentVersion, version, run, lastSequence, lease } = found;
  const { holder, runCount, leasedAtMs, coordinator, tokenId, nonce } = lease;
  const labels = formatLabels(holder);
  return [
    `run ${runName(version, run, currentVersion)} in namespace ${namespace}`,
    `  state        ${formatState(found)}`,
    `  sequence     ${lastSequence === null ? "none reported" : `used up to ${formatCount(lastSequence)}`}`,
    `  leased       at ${formatTime(leasedAtMs)} by coordinator ${coordinator}${runCount === 1 ? "" : `, with runs ${runsName(lease, currentVersion)}`}`,
    `  holder       ${holder.name} on ${holder.host}, pid ${holder.pid}`,
    ...(labels === "" ? [] : [`  labels       ${labels}`]),
    ...(tokenId === undefined ? [] : [`  token        ${tokenId}`]),
    `  nonce        ${nonce}`,
  ].join("\n");
}

function formatState({ state, lease: { progress } }: RunResponse): string {
  if (progress === null) return state;
  const at = formatTime(progress.reportedAtMs);
  if (state === "skipped") return `skipped: a recovery gave it up at ${at}; it was never leased`;
  return state === "discarded"
    ? `discarded: it was never given to a holder; recorded at ${at}`
    : `${state}, reported at ${at}`;
}

function formatTrimmed({ upToVersion, upToRun, lastLeasedAtMs }: TrimmedLeases, currentVersion: number): string {
  return `leases up to run ${runName(upToVersion, upToRun, currentVersion)}, the last of ${formatTime(lastLeasedAtMs)}, were trimmed: they are in the files of --ledger-dir`;
}
