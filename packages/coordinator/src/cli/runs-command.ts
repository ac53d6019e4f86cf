/** `runs`: the newest leases, and with --follow those that come. */
import type { LedgerEntry, TrimmedLeases } from "@callnumber/protocol/wire";
import { Command, Option } from "commander";
import { tokenFileOption } from "./bearer-token.js";
import { commandIo } from "./command-io.js";
import { failureOf } from "./failure.js";
import { followedLeases } from "./follow-leases.js";
import { leaseTable } from "./lease-table.js";
import { type FilterOptions, filterOptions, filterQuery } from "./ledger-filter-options.js";
import { newestLeases } from "./newest-leases.js";
import { checkedOption, coordinatorOption, everyOption, namespaceOption, wholeNumber } from "./options.js";
import { grouped, instant, jsonLine, print, printJson, printPainted } from "./print.js";
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
    .summary("the newest leases: who got which runs")
    .description(
      "Lists leases, newest first. STATE is what the holder reported: how far it got (run/sequence; - for none), and whether it goes " +
        "on (open), used all (exhausted) or gave up the rest (closed). unreported: nothing was heard of it since. burnt: it was never " +
        "handed out. On a terminal the table fits it; elsewhere all stands in full.",
    );
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
      "\nExamples:\n  $ callnumber runs --limit 5\n  $ callnumber runs --holder mbox-importer --label archive=lists --from 2026-11-21\n  $ callnumber runs --follow --host mail-1",
    )
    .action(async (options: Options) => {
      if (options.follow) await follow(options);
      else await list(options);
    });
}

function followOption(): Option {
  const description = "go on with new leases as they come, oldest first, until Ctrl-C; with --json a line of JSON each";
  return new Option("--follow", description).conflicts(["to", "toRun", "state"]);
}

async function list({ coordinator, tokenFile, namespace, limit, json, ...filter }: Options): Promise<void> {
  const question = { coordinator, tokenFile, namespace, limit, filter: filterQuery(filter) };
  const { leases, trimmed } = await newestLeases(question);
  if (json) return printJson(leases);
  if (leases.length > 0) printPainted(leaseTable().linesOf(leases).join("\n"));
  else if (trimmed === null) print("no leases");
  if (trimmed !== null) print(trimmedInWords(trimmed));
}

async function follow({ coordinator, tokenFile, namespace, limit, every, json, ...filter }: Options): Promise<void> {
  const stopping = new AbortController();
  void untilStopped().then(() => stopping.abort());
  const { stderr } = commandIo();
  const table = leaseTable();
  const linesOf = (leases: readonly LedgerEntry[]) => (json ? leases.map(jsonLine) : table.linesOf(leases));
  const leases = followedLeases({
    coordinator,
    tokenFile,
    namespace,
    limit,
    filter: filterQuery(filter),
    everyMs: every,
    signal: stopping.signal,
    onTrouble: (error) => stderr.write(failureOf(error, json === true)),
  });
  for await (const batch of leases) printPainted(linesOf(batch).join("\n"));
}

function trimmedInWords({ upToRun, lastLeasedAtMs }: TrimmedLeases): string {
  return `leases up to run ${grouped(upToRun)}, the last of ${instant(lastLeasedAtMs)}, were trimmed: they are in the files of --ledger-dir`;
}
