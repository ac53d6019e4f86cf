/** `init`: makes a namespace, on the store itself. */
import { RATE_DEFAULT, RATE_MAX } from "@callnumber/coordinator/internal";
import { Coordinator, checkpointsOf, describeStore, type NamespaceRecord } from "@callnumber/coordinator/operator";
import { type NamedRun, runName } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import { runNameSchema } from "@callnumber/protocol/schemas";
import { Command } from "commander";
import { checkedOption, namespaceOption, STORE_GROUP, switchOption, wholeNumber } from "../options.js";
import { print, printJson } from "../output.js";
import {
  addActingOptions,
  checkpointDirOption,
  ignoreFindingsOption,
  nodesOption,
  openStoreWithCheckpoints,
  persistentAddress,
  type StoreNamespaceOptions,
} from "../store-options.js";

interface Options extends StoreNamespaceOptions {
  readonly firstRun: NamedRun;
  readonly rate: number;
  readonly nodes: number;
  readonly ignoreFindings: readonly string[];
  readonly create?: boolean;
}

const firstRunSchema = runNameSchema.refine(({ run }) => run >= 1, `must be a whole number from 1 to ${RUN_MAX}`);

export function makeCommand(): Command {
  const command = new Command("init")
    .description(
      "Makes a namespace: once for each, before the first lease, in a new store or in one that has others. Acts on the store itself; an " +
        "embedded store must not be in use. If an archive already holds call numbers, pass a --first-run above all of theirs.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber init --store redis://127.0.0.1:6379\n  $ callnumber init --store postgres://owner@127.0.0.1/archive\n" +
        "  $ callnumber init --namespace lists --first-run 200000",
    )
    .action(init);
  const rate = "runs per second by which the run ceiling rises, 16,384 numbers each; never changes";
  return addActingOptions(command, [
    switchOption("create", "make the file of the default store; not needed with --store"),
    checkedOption(
      "--first-run <run>",
      "the first run to lease, such as 200000, or 1/65548 (version/run)",
      firstRunSchema,
    ).default({ run: 1 }, "1"),
    checkedOption("--rate <runs>", rate, wholeNumber(1, RATE_MAX)).default(RATE_DEFAULT),
    nodesOption("data nodes that could be promoted: the master and its replicas").default(1),
    ignoreFindingsOption(),
    namespaceOption(STORE_GROUP),
    checkpointDirOption(),
  ]);
}

/** @throws TypeError for a memory store. CoordinatorError as `Coordinator.initNamespace`. */
async function init(options: Options, command: Command): Promise<void> {
  const { namespace, firstRun, rate, nodes, ignoreFindings: overrides, checkpointDir } = options;
  const address = persistentAddress(options.store, "there is nothing to init");
  const checkpoints = checkpointsOf(address, checkpointDir);
  const create = options.create ?? command.getOptionValueSource("store") !== "default";
  const { store } = await openStoreWithCheckpoints(address, checkpoints, { create });
  try {
    const { checkpointFileOf } = checkpoints;
    const coordinator = new Coordinator({ store, name: command.name(), checkpointFileOf, overrides });
    const { version: firstVersion = 0, run } = firstRun;
    const record = await coordinator.initNamespace(namespace, { firstVersion, firstRun: run, rate, nodeCount: nodes });
    // The key of the lease proofs is secret.
    const { proofKey: _, ...rest } = record;
    if (options.json) printJson({ store: describeStore(address), ...rest });
    else print(formatNewNamespace(record, describeStore(address)));
  } finally {
    await store.close();
  }
}

/** What the operator of a new namespace must know. */
export function formatNewNamespace(
  { namespace, storeId, firstVersion, firstRun }: NamespaceRecord,
  store: string,
): string {
  const first = runName(firstVersion, firstRun);
  return [
    `Made namespace "${namespace}" in ${store}`,
    `  store id   ${storeId}`,
    `  first run  ${first}`,
    "Store the store id with your archive and give it to the importers (expectedStoreId): they then reject any other store.",
    firstVersion === 0 && firstRun === 1
      ? "If an archive already holds call numbers of this namespace, stop here: its runs begin at 1 too. Find its store, or init with --first-run."
      : `Runs below ${first} are never leased here.`,
  ].join("\n");
}
