/** `recover`: says what it finds, what it would set and what that costs; with --apply it does it. */

import { stderr } from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { RUN_COUNT, VERSION_COUNT } from "@callnumber/protocol/codec";
import { runOfLedgerId } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { z } from "zod";
import { TOUCH_EVERY_MS } from "../guard/bounds.js";
import { type Floor, planRecovery, type RecoverPlan, recoverNamespace } from "../operator/recover.js";
import { openStore } from "../stores/open-store.js";
import { describeStore, parseStoreUrl } from "../stores/store-url.js";
import { checkedOption, namespaceOption, nodesOption, storeOption, switchOption, wholeNumber } from "./options.js";
import { grouped, instant, print, printJson } from "./print.js";
import { witnessesOf, witnessFolderOption } from "./witness-option.js";

interface Options {
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
  return new Command("recover")
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
        "which store it was, where neither record nor witness can tell",
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
      "\nExamples:\n  $ callnumber recover --store redis://127.0.0.1:6379\n  $ callnumber recover --store redis://127.0.0.1:6379 --apply",
    )
    .action(recover);
}

async function recover(options: Options): Promise<void> {
  const { namespace, storeId, floor, nodes, witnessFolder, clockIsRight, apply, json } = options;
  const address = parseStoreUrl(options.store);
  if (address.kind === "memory")
    throw new TypeError("a memory store ends with its process: there is nothing to recover");
  const { store } = await openStore(address, { create: false, acceptCopy: true });
  const witness = witnessesOf(address, witnessFolder)(namespace);
  const floors: readonly Floor[] = floor === undefined ? [] : [{ from: "--floor", ledgerId: floor }];
  const asked = {
    store,
    namespace,
    witness,
    storeId,
    floors,
    nodeCount: nodes,
    isClockChecked: clockIsRight ?? false,
    // Nobody else can have an embedded store open.
    watchMs: store.isExclusive ? 0 : WATCH_MS,
    pause: async (pauseMs: number) => void (await delay(pauseMs)),
  };
  try {
    if (!store.isExclusive && !json) stderr.write(`Looking for ${WATCH_MS / 1000} s whether somebody still leases …\n`);
    const plan = await planRecovery(asked);
    if (!apply) {
      if (json) printJson(planAsJson(plan));
      else print(`${planInWords(plan, describeStore(address))}\nNothing was changed. To do it: the same with --apply`);
      return;
    }
    const { after } = await recoverNamespace(asked, plan);
    if (json)
      return printJson({ recovered: namespace, highWaterMark: after.highWaterMark, generation: after.generation });
    print(
      `${planInWords(plan, describeStore(address))}\nDone: the mark is at run ${grouped(after.highWaterMark)}, generation ${after.generation}. ` +
        `Start the coordinator: it claims the store, and leases about ${Math.ceil(plan.nextRunInMs / 1000)} s later.`,
    );
  } finally {
    witness.close();
    await store.close();
  }
}

function planInWords(plan: RecoverPlan, store: string): string {
  const { namespace, storeId, found, fault, witnessed, floors, target, skippedRunCount, nextRunInMs, nodeCount } = plan;
  return [
    `namespace ${namespace} of ${store}, store id ${storeId}`,
    "found",
    found === undefined
      ? `  the record         ${fault === undefined || fault.code === "namespace_not_initialised" ? "none: the store holds no such namespace" : fault.message}`
      : `  the record         mark ${grouped(found.highWaterMark)}, generation ${found.generation}, ${PHASE_WORDS[found.phase] ?? "?"}, written ${instant(found.changedAtMs)}`,
    witnessed === undefined
      ? "  the witness        nothing is remembered on this machine"
      : `  the witness        run ${grouped(runOfLedgerId(witnessed.ledgerId).run)}, generation ${witnessed.generation}`,
    ...floors
      .filter(({ from }) => !from.startsWith("the "))
      .map(({ from, ledgerId }) => `  ${from.padEnd(17)}  run ${grouped(runOfLedgerId(ledgerId).run)}`),
    "recovering sets",
    `  the mark           to run ${grouped(target)}, on the clock line: no run above it was ever leased`,
    `  data nodes         ${nodeCount}`,
    "and costs",
    `  runs               ${grouped(skippedRunCount)} are never leased`,
    `  time               the next run is free ${Math.ceil(nextRunInMs / 1000)} s later, about`,
  ].join("\n");
}

const PHASE_WORDS: Readonly<Record<number, string>> = { 0: "open", 1: "claimed, not confirmed", 2: "sealed" };

function planAsJson({ found, fault, ...plan }: RecoverPlan): object {
  if (found === undefined) return { ...plan, found: null, fault: fault?.code ?? null };
  const { receiptKey: _, ...told } = found;
  return { ...plan, found: told, fault: null };
}
