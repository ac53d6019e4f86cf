/** `runs`: the newest leases, and with a run the one lease that holds it. */
import { runResponseSchema, runsResponseSchema } from "@callnumber/protocol/schemas";
import {
  type KnownRunState,
  LEDGER_ID_MAX,
  type LedgerEntry,
  PAGE_LIMIT_MAX,
  pathOf,
  type RunResponse,
  type RunsResponse,
  type TrimmedLeases,
} from "@callnumber/protocol/wire";
import { Command } from "commander";
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
  print,
  printJson,
  printPainted,
  type Style,
} from "../output.js";
import { RequestError, requestJson } from "../requests.js";
import { type Column, nameCell, terminalTable } from "../table.js";

interface Options extends FilterOptions, NamespaceOptions {
  readonly limit: number;
}

const LIMIT_MAX = 100_000;

export function runsCommand(): Command {
  const command = new Command("runs")
    .description(
      "Lists leases, newest first. STATE is what the holder reported: the last number it made (run/sequence; - for none), and whether the " +
        "run is in use (open), used up (exhausted) or given up (closed). unreported: no report yet. discarded: never given to a holder. On " +
        "a terminal the table fits it; elsewhere every column is complete. With a run, shows that run alone.",
    )
    .argument("[run]", "number of one run", (text) => checked(wholeNumber(0, LEDGER_ID_MAX), text))
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber runs --limit 5\n  $ callnumber runs 99\n" +
        "  $ callnumber runs --holder mbox-importer --from 2026-11-21",
    )
    .action(async (run: number | undefined, options: Options, self: Command) => {
      if (run !== undefined) await showRun(run, options, self);
      else await list(options);
    });
  return addOptions(command, [
    checkedOption("--limit <count>", "how many leases", wholeNumber(1, LIMIT_MAX)).default(20),
    ...filterOptions(),
    ...coordinatorOptions(),
    namespaceOption(),
  ]);
}

/** Those of one run: the others select leases of a list. */
const OPTIONS_OF_ONE: ReadonlySet<string> = new Set(["coordinator", "tokenFile", "namespace", "json"]);

async function showRun(run: number, { json, ...place }: Options, command: Command): Promise<void> {
  const other = command.options.find((option) => {
    const name = option.attributeName();
    return !OPTIONS_OF_ONE.has(name) && command.getOptionValueSource(name) === "cli";
  });
  if (other !== undefined)
    throw new TypeError(`run ${run} is one run: ${other.long} is for a list. Leave one of them out`);
  const found = await requestJson(place, pathOf("run", { namespace: place.namespace, run }), runResponseSchema);
  if (json) printJson(found);
  else print(formatRun(escapeFields(found)));
}

async function list(options: Options): Promise<void> {
  const { leases, trimmed } = await newestLeases(options);
  if (options.json) return printJson(leases);
  if (leases.length > 0) printPainted(terminalTable(columnsFor(invocation().io.stdout.isTTY === true), leases));
  else if (trimmed === null) print("no leases");
  if (trimmed !== null) print(formatTrimmed(trimmed));
}

/**
 * Reads leases, newest first. Follows the cursor up to the limit: a filtered page may be short although more follow. `trimmed`: which
 * older ones were trimmed, when there are fewer than the limit.
 */
async function newestLeases({ limit, ...place }: Options) {
  const leases: LedgerEntry[] = [];
  let cursor: string | null = null;
  let trimmed: TrimmedLeases | null = null;
  do {
    const query = filterQuery(place);
    query.set("limit", String(Math.min(limit - leases.length, PAGE_LIMIT_MAX)));
    if (cursor !== null) query.set("cursor", cursor);
    const path = `${pathOf("runs", { namespace: place.namespace })}?${query}`;
    const page: RunsResponse = await requestJson(place, path, runsResponseSchema);
    leases.push(...page.leases);
    if (cursor !== null && page.nextCursor !== null && !(Number(page.nextCursor) < Number(cursor))) {
      // Without the URL, which may contain a password.
      throw new RequestError(
        "invalid_response",
        "the response is a page that leads no further back than the one before; is --coordinator the URL of a coordinator?",
      );
    }
    ({ nextCursor: cursor, trimmed } = page);
  } while (cursor !== null && leases.length < limit);
  return { leases, trimmed };
}

const STATE_STYLES: Readonly<Record<KnownRunState, Style | undefined>> = {
  open: "green",
  exhausted: undefined,
  closed: "dim",
  discarded: "red",
  unreported: "yellow",
};

const columnsFor = (isTerminal: boolean): readonly Column<LedgerEntry>[] => [
  { heading: "RUNS", cellOf: runsOf, expendability: 0 },
  { heading: "LEASED AT", cellOf: ({ leasedAtMs }) => formatLeaseTime(leasedAtMs, isTerminal), expendability: 0 },
  { heading: "HOLDER", cellOf: ({ holder }) => nameCell(holder.name), shrinksTo: 8, expendability: 1 },
  { heading: "HOST", cellOf: ({ holder }) => nameCell(holder.host), shrinksTo: 8, expendability: 2 },
  { heading: "PID", cellOf: ({ holder }) => holder.pid, expendability: 3 },
  { heading: "STATE", cellOf: formatProgress, styleOf: (lease) => STATE_STYLES[stateOf(lease)], expendability: 0 },
  { heading: "LABELS", cellOf: ({ holder }) => formatLabels(holder), shrinksTo: 10, expendability: 4 },
];

function runsOf({ firstRun, runCount }: Pick<LedgerEntry, "firstRun" | "runCount">): string {
  return runCount === 1 ? String(firstRun) : `${firstRun}-${firstRun + runCount - 1}`;
}

/** On a terminal without milliseconds: other columns need the width. */
function formatLeaseTime(timeMs: number, isTerminal: boolean): string {
  return isTerminal ? `${formatTime(timeMs).slice(0, "2026-11-21T08:00:00".length)}Z` : formatTime(timeMs);
}

function stateOf({ progress }: LedgerEntry): KnownRunState {
  return progress?.state ?? "unreported";
}

function formatProgress(lease: LedgerEntry): string {
  const { progress } = lease;
  if (progress === null || progress.state === "discarded") return stateOf(lease);
  return `${progress.state} at ${progress.run}/${progress.lastSequence ?? "-"}`;
}

function formatRun(found: RunResponse): string {
  const { namespace, version, run, lastSequence, lease } = found;
  const { holder, runCount, leasedAtMs, coordinator, tokenId, nonce } = lease;
  const labels = formatLabels(holder);
  return [
    `run ${run} of version ${version} in namespace ${namespace}`,
    `  state        ${formatState(found)}`,
    `  sequence     ${lastSequence === null ? "none reported" : `used up to ${lastSequence}`}`,
    `  leased       at ${formatTime(leasedAtMs)} by coordinator ${coordinator}${runCount === 1 ? "" : `, with runs ${runsOf(lease)}`}`,
    `  holder       ${holder.name} on ${holder.host}, pid ${holder.pid}`,
    ...(labels === "" ? [] : [`  labels       ${labels}`]),
    ...(tokenId === undefined ? [] : [`  token        ${tokenId}`]),
    `  nonce        ${nonce}`,
  ].join("\n");
}

function formatState({ state, lease: { progress } }: RunResponse): string {
  if (progress === null) return state;
  const at = formatTime(progress.reportedAtMs);
  return state === "discarded"
    ? `discarded: it was never given to a holder; recorded at ${at}`
    : `${state}, reported at ${at}`;
}

function formatTrimmed({ upToRun, lastLeasedAtMs }: TrimmedLeases): string {
  return `leases up to run ${formatCount(upToRun)}, the last of ${formatTime(lastLeasedAtMs)}, were trimmed: they are in the files of --ledger-dir`;
}
