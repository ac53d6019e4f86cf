/** `init`: makes a namespace, on the store itself. */
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { Holder } from "@callnumber/protocol/wire";
import { Command, Option } from "commander";
import { Coordinator } from "../coordinator.js";
import { newLabelsSchema } from "../http/names-without-tokens.js";
import type { NamespaceRecord } from "../store.js";
import { RATE_DEFAULT, RATE_MAX } from "../store-id.js";
import { openStore } from "../stores/open-store.js";
import { describeStore, parseStoreUrl } from "../stores/store-url.js";
import {
  checked,
  checkedOption,
  namespaceOption,
  nodesOption,
  storeOption,
  switchOption,
  wholeNumber,
} from "./options.js";
import { print, printJson } from "./print.js";
import { memoryOf, witnessFolderOption } from "./witness-option.js";

type Labels = Holder["labels"];

interface Options {
  readonly store: string;
  readonly namespace: string;
  readonly label?: Labels;
  readonly firstRun: number;
  readonly rate: number;
  readonly nodes: number;
  readonly witnessFolder: string;
  readonly create?: boolean;
  readonly json?: boolean;
}

export function initCommand(): Command {
  return new Command("init")
    .summary("make a namespace in a store")
    .description(
      "Makes a namespace: once for each, before the first lease, in a new store or in one that has others. Acts on the store itself; an " +
        "embedded store must not be in use. If an archive already holds call numbers, give a first run above all of theirs.",
    )
    .addOption(storeOption())
    .addOption(namespaceOption())
    .addOption(labelOption())
    .addOption(switchOption("create", "make the file of the default store (a store that is named needs no flag)"))
    .addOption(checkedOption("--first-run <run>", "the first run to lease", wholeNumber(1, RUN_MAX)).default(1))
    .addOption(
      checkedOption(
        "--rate <runs>",
        "by how many runs a second the clock line rises: 16,384 numbers each; never changes",
        wholeNumber(1, RATE_MAX),
      ).default(RATE_DEFAULT),
    )
    .addOption(nodesOption("how many data nodes could be promoted: the master and its replicas").default(1))
    .addOption(witnessFolderOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber init --store redis://127.0.0.1:6379\n" +
        "  $ callnumber init --namespace lists --label archive=lists --first-run 200000",
    )
    .action(init);
}

/** Once for each label. */
function labelOption(): Option {
  return new Option(
    "--label <name=value>",
    "a label of the namespace, for people; may be given up to 8 times",
  ).argParser((text: string, before: Labels = {}) => {
    const [, name = "", value = ""] = /^([^=]*)=(.*)$/s.exec(text) ?? [];
    return checked(newLabelsSchema, { ...before, [name]: value });
  });
}

/** @throws TypeError for a memory store. CoordinatorError as `Coordinator.initNamespace`. */
async function init(options: Options, command: Command): Promise<void> {
  const { namespace, label: labels = {}, firstRun, rate, nodes, create } = options;
  const address = parseStoreUrl(options.store);
  if (address.kind === "memory") throw new TypeError("a memory store ends with its process: there is nothing to init");
  const { checkpointFileOf, mustNotBeLost, makeFolder } = memoryOf(address, options.witnessFolder);
  const mayMake = create ?? command.getOptionValueSource("store") !== "default";
  const { store } = await openStore(address, {
    create: mayMake,
    mustNotBeLost: () => {
      mustNotBeLost();
      if (mayMake) makeFolder();
    },
  });
  try {
    const coordinator = new Coordinator({ store, name: command.name(), checkpointFileOf });
    const record = await coordinator.initNamespace(namespace, { firstRun, rate, nodeCount: nodes });
    if (Object.keys(labels).length > 0) await store.describeNamespace(namespace, labels);
    if (options.json) printJson({ store: describeStore(address), ...told(record), labels });
    else print(announcement(record, describeStore(address)));
  } finally {
    await store.close();
  }
}

/** Without the key of the receipts, which nobody needs to see. */
function told(record: NamespaceRecord): Omit<NamespaceRecord, "receiptKey"> {
  const { receiptKey: _, ...rest } = record;
  return rest;
}

/** What everybody should read who begins a space of runs. */
export function announcement({ namespace, storeId, firstRun }: NamespaceRecord, store: string): string {
  return [
    `Made namespace "${namespace}" in ${store}`,
    `  store id   ${storeId}`,
    `  first run  ${firstRun}`,
    "Keep the store id beside your archive and give it to the importers (expectedStoreId): they then refuse any other store.",
    firstRun === 1
      ? "If an archive already holds call numbers of this namespace, stop here: its runs begin at 1 too. Find its store, or init with --first-run."
      : `Runs below ${firstRun} are never leased here.`,
  ].join("\n");
}
