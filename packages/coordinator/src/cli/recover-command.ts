/** `recover`: says what it finds, what it would set and what that costs; with --apply it does it. */

import { stderr } from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { RUN_COUNT, VERSION_COUNT } from "@callnumber/protocol/codec";
import type { CommandOptions } from "@callnumber/protocol/operator";
import { Command } from "commander";
import { z } from "zod";
import { TOUCH_EVERY_MS } from "../guard/bounds.js";
import { planRecovery, recoverNamespace, refusalOf } from "../operator/recover.js";
import type { Floor, RecoverPlan } from "../operator/recover-plan.js";
import { openStore } from "../stores/open-store.js";
import { describeStore, parseStoreUrl } from "../stores/store-url.js";
import { checkedOption, namespaceOption, nodesOption, storeOption, switchOption, wholeNumber } from "./options.js";
import { grouped, print, printJson } from "./print.js";
import { planAsJson, planInWords } from "./recover-words.js";
import { floorsOf, mustBeOfVersion, type ScanOptions, scanned, scanOptions } from "./scan-option.js";
import { typedAgain } from "./typed-again.js";
import { witnessesOf, witnessFolderOption } from "./witness-option.js";

interface Options extends ScanOptions {
  readonly store: string;
  readonly namespace: string;
  readonly witnessFolder: string;
  readonly storeId?: string;
  readonly floor?: number;
  readonly nodes?: number;
  readonly clockIsRight?: boolean;
  readonly apply?: boolean;
  readonly json?: boolean;
}

/** A coordinator that still leases touches the record in this time. */
const WATCH_MS = 2 * TOUCH_EVERY_MS + 1_000;

export function recoverCommand(): Command {
  const command = new Command("recover")
    .summary("put a store that can't be believed any more right again")
    .description(
      "Looks at a namespace of a store, for some seconds, and says what it found, what recovering would set, and what that costs. Changes " +
        "nothing without --apply. The mark is put onto the clock line, above everything that was ever leased; the next coordinator then " +
        "claims the store and leases on. Stop all coordinators of the store first.",
    )
    .addOption(storeOption())
    .addOption(namespaceOption())
    .addOption(
      checkedOption(
        "--store-id <id>",
        "which store it was, where neither record nor witness can tell, or where the logs name another",
        z.string().min(1),
      ),
    )
    .addOption(
      checkedOption(
        "--floor <run>",
        "a run that is known to be leased (its ledger id)",
        wholeNumber(0, VERSION_COUNT * RUN_COUNT - 1),
      ),
    )
    .addOption(nodesOption("how many data nodes there are (default: as the record or the witness says)"))
    .addOption(witnessFolderOption())
    .addOption(
      switchOption("clock-is-right", "after a silence of more than 30 days: I have looked at the clock, it is right"),
    )
    .addOption(switchOption("apply", "do it"))
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber recover --store redis://127.0.0.1:6379\n  $ callnumber recover --store redis://127.0.0.1:6379 --apply" +
        "\n  $ callnumber recover --scan numbers.txt\n  $ callnumber recover --scan archive.sqlite --scan-column messages.call_number" +
        "\n  $ zcat messages.csv.gz | callnumber recover --scan - --scan-column call_number" +
        "\n  $ callnumber recover --scan coordinator.log --scan coordinator.log.1.gz",
    )
    .action(recover);
  for (const option of scanOptions()) command.addOption(option);
  return command;
}

async function recover(options: Options, command: Command): Promise<void> {
  const { namespace, storeId, floor, nodes, witnessFolder, clockIsRight, apply, json } = options;
  const address = parseStoreUrl(options.store);
  if (address.kind === "memory")
    throw new TypeError("a memory store ends with its process: there is nothing to recover");
  const read = await scanned(options, address, { namespace, json });
  const { store } = await openStore(address, { create: false, acceptCopy: true });
  const witness = witnessesOf(address, witnessFolder)(namespace);
  const floors: readonly Floor[] = [
    ...(floor === undefined ? [] : [{ from: "--floor", ledgerId: floor }]),
    ...floorsOf(read, namespace),
  ];
  const asked = {
    store,
    namespace,
    witness,
    storeId,
    // What stands in an environment was said for all recoveries, and not of this one.
    isStoreIdTyped: command.getOptionValueSource("storeId") === "cli",
    floors,
    nodeCount: nodes,
    isClockChecked: clockIsRight ?? false,
    // Nobody else can have an embedded store open.
    watchMs: store.isExclusive ? 0 : WATCH_MS,
    pause: async (pauseMs: number) => void (await delay(pauseMs)),
    again: (more: CommandOptions) => typedAgain(command, "recover", more),
  };
  try {
    if (!store.isExclusive && !json) stderr.write(`Looking for ${WATCH_MS / 1000} s whether somebody still leases …\n`);
    const plan = await planRecovery(asked);
    mustBeOfVersion(read, plan);
    const told = planInWords(plan, describeStore(address), read);
    if (!apply) {
      const refusal = refusalOf(plan);
      if (json) printJson(planAsJson(plan, read));
      else print(refusal === undefined ? `${told}\nNothing was changed. ${howToApply(plan)}` : told);
      if (refusal !== undefined) throw refusal;
      return;
    }
    const { after, movedAside = [] } = await recoverNamespace(asked, plan);
    const { highWaterMark, generation } = after;
    if (json) return printJson({ recovered: namespace, highWaterMark, generation, movedAside });
    const aside = movedAside.map((key) => `\nAnother program's key was in the way. It is now called ${key}`).join("");
    print(
      `${told}${aside}\nDone: the mark is at run ${grouped(highWaterMark)}, generation ${generation}. ` +
        `Start the coordinator: it claims the store, and leases about ${Math.ceil(plan.nextRunInMs / 1000)} s later.`,
    );
  } finally {
    witness.close();
    await store.close();
  }
}

function howToApply({ isStoreIdFromLogs, storeId, again }: RecoverPlan): string {
  if (!isStoreIdFromLogs) return `To do it:\n  ${again({ apply: true })}`;
  return (
    "Nothing but the logs says which store it was, and they may be logs of another one: compare with the id\n" +
    "that was kept beside the archive. When it is the same, do it:\n" +
    `  ${again({ "store-id": storeId, apply: true })}`
  );
}
