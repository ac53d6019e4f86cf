/** `recover`: says what it finds, what it would set and what that costs; with --apply it does it. */
import { setTimeout as delay } from "node:timers/promises";
import { RUN_COUNT, VERSION_COUNT } from "@callnumber/protocol/codec";
import type { CommandOptions } from "@callnumber/protocol/operator";
import { Command } from "commander";
import { z } from "zod";
import { TOUCH_EVERY_MS } from "../guard/bounds.js";
import { NO_CHECKPOINT_FILE } from "../guard/checkpoint.js";
import type { Floor } from "../operator/recover.js";
import { planRecovery, recoverNamespace, refusalOf } from "../operator/recover.js";
import type { Store } from "../store.js";
import { openStore } from "../stores/open-store.js";
import { describeStore, parseStoreUrl, type StoreAddress } from "../stores/store-url.js";
import { commandIo } from "./command-io.js";
import { floorOf, numbersOption, readNumbers } from "./numbers-option.js";
import { checkedOption, namespaceOption, nodesOption, storeOption, switchOption, wholeNumber } from "./options.js";
import { grouped, print, printJson } from "./print.js";
import { planAsJson, planInWords } from "./recover-words.js";
import { typedAgain } from "./typed-again.js";
import { memoryOf, witnessFolderOption } from "./witness-option.js";

interface Options {
  readonly store: string;
  readonly namespace: string;
  readonly witnessFolder: string;
  readonly storeId?: string;
  readonly floor?: number;
  readonly numbers?: string;
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
        "claims the store and leases on. Coordinators of a Redis store may run: those that serve other namespaces lease, and lease from this one " +
        "once it is recovered. Stop the coordinator of an embedded store first, and start it again afterwards.",
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
    .addOption(numbersOption())
    .addOption(nodesOption("how many data nodes there are (default: as the record or the witness says)"))
    .addOption(witnessFolderOption())
    .addOption(
      switchOption("clock-is-right", "after a silence of more than 30 days: I have looked at the clock, it is right"),
    )
    .addOption(switchOption("apply", "do it"))
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber recover --store redis://127.0.0.1:6379\n  $ callnumber recover --store redis://127.0.0.1:6379 --apply" +
        "\n  $ callnumber recover --numbers numbers.txt",
    )
    .action(recover);
}

async function recover(options: Options, command: Command): Promise<void> {
  const { namespace, storeId, floor, numbers, nodes, witnessFolder, clockIsRight, apply, json } = options;
  const address = parseStoreUrl(options.store);
  if (address.kind === "memory")
    throw new TypeError("a memory store ends with its process: there is nothing to recover");
  const { stderr } = commandIo();
  if (numbers !== undefined && !json) stderr.write("Reading the call numbers …\n");
  const listed = numbers === undefined ? undefined : await readNumbers(numbers);
  const { store, isMissing } = await openedOrEmpty(address);
  const checkpointFile = memoryOf(address, witnessFolder).checkpointFileOf(namespace);
  let made: Store | undefined;
  const floors: readonly Floor[] = [
    ...(floor === undefined ? [] : [{ from: "--floor", ledgerId: floor }]),
    ...(listed === undefined ? [] : [floorOf(listed)]),
  ];
  const asked = {
    store,
    namespace,
    checkpointFile,
    storeId,
    floors,
    nodeCount: nodes,
    isClockChecked: clockIsRight ?? false,
    // Nobody else can have an embedded store open.
    watchMs: address.kind === "sqlite" ? 0 : WATCH_MS,
    pause: async (pauseMs: number) => void (await delay(pauseMs)),
    again: (more: CommandOptions) => typedAgain(command, "recover", more),
  };
  try {
    if (isMissing && !json) stderr.write(`There is no store at ${describeStore(address)}; --apply makes one.\n`);
    if (asked.watchMs > 0 && !json) stderr.write(`Looking for ${WATCH_MS / 1000} s whether somebody still leases …\n`);
    const plan = await planRecovery(asked);
    const told = planInWords(plan, describeStore(address), listed);
    if (!apply) {
      const refusal = refusalOf(plan);
      if (json) printJson(planAsJson(plan, listed));
      else
        print(
          refusal === undefined ? `${told}\nNothing was changed. To do it:\n  ${plan.again({ apply: true })}` : told,
        );
      if (refusal !== undefined) throw refusal;
      return;
    }
    if (isMissing) {
      // What can't be done leaves no empty store behind.
      await recoverNamespace({ ...asked, checkpointFile: NO_CHECKPOINT_FILE }, plan);
      made = (await openStore(address, { create: true })).store;
    }
    const { after, movedAside = [] } = await recoverNamespace({ ...asked, store: made ?? store }, plan);
    const { highWaterMark, generation } = after;
    if (json) return printJson({ recovered: namespace, highWaterMark, generation, movedAside });
    const aside = movedAside.map((key) => `\nAnother program's key was in the way. It is now called ${key}`).join("");
    print(
      `${told}${aside}\nDone: the mark is at run ${grouped(highWaterMark)}, generation ${generation}. ` +
        `${store.isExclusive ? "Start the coordinator: it" : "A coordinator that runs, or is started,"} claims the store, and leases about ` +
        `${Math.ceil(plan.nextRunInMs / 1000)} s later.`,
    );
  } finally {
    checkpointFile.close();
    await store.close();
    await made?.close();
  }
}

/** Where there is no embedded store, an empty one in memory, to plan with. */
async function openedOrEmpty(address: StoreAddress): Promise<{ readonly store: Store; readonly isMissing: boolean }> {
  let isMissing = false;
  const mustNotBeLost = () => {
    isMissing = true;
  };
  try {
    return { ...(await openStore(address, { create: false, acceptCopy: true, mustNotBeLost })), isMissing };
  } catch (error) {
    if (!isMissing) throw error;
    return { ...(await openStore({ kind: "memory" }, { create: true })), isMissing };
  }
}
