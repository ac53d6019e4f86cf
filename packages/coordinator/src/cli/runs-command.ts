/** `runs`: the newest leases. */
import { runsAnswerSchema } from "@callnumber/protocol/schemas";
import { type LedgerEntry, PAGE_LIMIT_MAX, pathOf, type RunsAnswer } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { z } from "zod";
import { askCoordinator } from "./ask-coordinator.js";
import { checkedOption, coordinatorOption, holderOption, namespaceOption, wholeNumber } from "./options.js";
import { instant, labelsInWords, print, printJson, printTable } from "./print.js";

interface Options {
  readonly coordinator: string;
  readonly namespace: string;
  readonly holder?: string;
  readonly from?: number;
  readonly to?: number;
  readonly limit: number;
  readonly json?: boolean;
}

const LIMIT_MAX = 100_000;

const timeSchema = z
  .string()
  .transform((text) => Date.parse(text))
  .pipe(z.number({ error: "must be a time such as 2026-11-21 or 2026-11-21T08:00:00Z" }).min(0));

export function runsCommand(): Command {
  return new Command("runs")
    .summary("the newest leases: who got which runs")
    .description(
      "Lists leases, newest first. STATE is what the holder reported: how far it got (run/sequence; - for none), and whether it goes " +
        "on (open), used all (exhausted) or gave up the rest (closed). unreported: nothing was heard of it since.",
    )
    .addOption(holderOption())
    .addOption(checkedOption("--from <time>", "leased at this time or later", timeSchema))
    .addOption(checkedOption("--to <time>", "leased before this time", timeSchema))
    .addOption(checkedOption("--limit <count>", "how many leases", wholeNumber(1, LIMIT_MAX)).default(20))
    .addOption(coordinatorOption())
    .addOption(namespaceOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber runs --limit 5\n  $ callnumber runs --holder mbox-importer --from 2026-11-21",
    )
    .action(async (options: Options) => {
      const leases = await collect(options);
      if (options.json) printJson(leases);
      else if (leases.length === 0) print("no leases");
      else printTable(["RUNS", "LEASED AT", "HOLDER", "HOST", "PID", "STATE", "LABELS"], leases.map(rowOf));
    });
}

/** Follows the cursor until there are enough: a filtered page may be short although more follow. */
async function collect({ coordinator, namespace, holder, from, to, limit }: Options): Promise<LedgerEntry[]> {
  const leases: LedgerEntry[] = [];
  let cursor: string | null = null;
  do {
    const query = new URLSearchParams({ limit: String(Math.min(limit - leases.length, PAGE_LIMIT_MAX)) });
    if (holder !== undefined) query.set("holder", holder);
    if (from !== undefined) query.set("leasedFromMs", String(from));
    if (to !== undefined) query.set("leasedToMs", String(to));
    if (cursor !== null) query.set("cursor", cursor);
    const page: RunsAnswer = await askCoordinator(
      coordinator,
      `${pathOf("runs", { namespace })}?${query}`,
      runsAnswerSchema,
    );
    leases.push(...page.leases);
    cursor = page.nextCursor;
  } while (cursor !== null && leases.length < limit);
  return leases;
}

function rowOf({ firstRun, runCount, leasedAtMs, holder, progress }: LedgerEntry): (string | number)[] {
  const runs = runCount === 1 ? String(firstRun) : `${firstRun}-${firstRun + runCount - 1}`;
  const state =
    progress === null ? "unreported" : `${progress.state} at ${progress.run}/${progress.lastSequence ?? "-"}`;
  return [runs, instant(leasedAtMs), holder.name, holder.host, holder.pid, state, labelsInWords(holder)];
}
