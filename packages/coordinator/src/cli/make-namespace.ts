/** Makes a namespace on the store itself: what `init` and `namespaces create` do, and the flags of both. */
import { RUN_MAX } from "@callnumber/protocol/codec";
import type { Holder } from "@callnumber/protocol/wire";
import type { Command, Option } from "commander";
import { Coordinator } from "../coordinator.js";
import type { NamespaceRecord } from "../store.js";
import { RATE_DEFAULT, RATE_MAX } from "../store-id.js";
import { openStore } from "../stores/open-store.js";
import { describeStore, parseStoreUrl } from "../stores/store-url.js";
import { checkedOption, nodesOption, switchOption, wholeNumber } from "./options.js";
import { print, printJson } from "./print.js";
import { memoryOf, witnessFolderOption } from "./witness-option.js";

export interface MakingOptions {
  readonly store: string;
  readonly firstRun: number;
  readonly rate: number;
  readonly nodes: number;
  readonly witnessFolder: string;
  readonly create?: boolean;
  readonly json?: boolean;
}

/** What a namespace is for ever, and where it is remembered. */
export function makingOptions(): readonly Option[] {
  return [
    switchOption("create", "make the file of the default store (a store that is named needs no flag)"),
    checkedOption("--first-run <run>", "the first run to lease", wholeNumber(1, RUN_MAX)).default(1),
    checkedOption(
      "--rate <runs>",
      "by how many runs a second the clock line rises: 16,384 numbers each; never changes",
      wholeNumber(1, RATE_MAX),
    ).default(RATE_DEFAULT),
    nodesOption("how many data nodes could be promoted: the master and its replicas").default(1),
    witnessFolderOption(),
  ];
}

/** @throws TypeError for a memory store. CoordinatorError as `Coordinator.initNamespace`. */
export async function makeNamespace(
  command: Command,
  namespace: string,
  { store: url, firstRun, rate, nodes, witnessFolder, create, json }: MakingOptions,
  labels: Holder["labels"] = {},
): Promise<void> {
  const address = parseStoreUrl(url);
  if (address.kind === "memory") throw new TypeError("a memory store ends with its process: there is nothing to init");
  const { witnessOf, mustNotBeLost, makeFolder } = memoryOf(address, witnessFolder);
  const mayMake = create ?? command.getOptionValueSource("store") !== "default";
  const { store } = await openStore(address, {
    create: mayMake,
    mustNotBeLost: () => {
      mustNotBeLost();
      if (mayMake) makeFolder();
    },
  });
  try {
    const coordinator = new Coordinator({ store, name: command.name(), witnessOf });
    const record = await coordinator.initNamespace(namespace, { firstRun, rate, nodeCount: nodes });
    if (Object.keys(labels).length > 0) await store.describeNamespace(namespace, labels);
    if (json) printJson({ store: describeStore(address), ...told(record), labels });
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
