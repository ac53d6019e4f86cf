/** `move`: takes namespaces to another store. Says what it finds and will do; with --apply it does it, or goes on with it. */

import { namespaceSchema } from "@callnumber/protocol/schemas";
import { DEFAULT_NAMESPACE } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { z } from "zod";
import { CoordinatorError } from "../errors.js";
import { type Moved, type MovePlan, moveNamespace, planMove } from "../operator/move.js";
import type { Finding, Store } from "../store.js";
import { openStore } from "../stores/open-store.js";
import { describeStore, parseStoreUrl, type StoreAddress } from "../stores/store-url.js";
import {
  findingInWords,
  movedAsJson,
  movedInWords,
  nextSteps,
  planAsJson,
  planInWords,
  type Way,
} from "./move-words.js";
import { acceptOption, checkedOption, nodesOption, setting, storeOption, switchOption } from "./options.js";
import { print, printJson } from "./print.js";
import { takeTargetFromFile } from "./store-file.js";
import { memoryOf, witnessFolderOption } from "./witness-option.js";

interface Options {
  readonly store: string;
  readonly to?: string;
  readonly namespace: string;
  readonly nodes: number;
  readonly accept: readonly string[];
  readonly witnessFolder: string;
  readonly apply?: boolean;
  readonly json?: boolean;
}

const ALL = "all";

export function moveCommand(): Command {
  const command = new Command("move")
    .summary("take a store to another place")
    .description(
      "Takes namespaces from one store to another, such as from the embedded store to Redis, with the ledger. The new store has a " +
        "store id of its own and the next of the eight versions of call numbers. The old one is sealed permanently, and nothing is leased " +
        "until a coordinator runs on the new one. Shows what it found and will do, and changes nothing without --apply. When it is cut " +
        "short, run the same again: it goes on.",
    )
    .addOption(storeOption())
    .addOption(checkedOption("--to <url>", "the new store; nothing may be kept there yet", z.string().min(1)))
    .addOption(
      setting(checkedOption("--namespace <name>", `which space of runs, or ${ALL}`, namespaceSchema)).default(
        DEFAULT_NAMESPACE,
      ),
    )
    .addOption(
      nodesOption("how many data nodes of the new store could be promoted: the master and its replicas").default(1),
    )
    .addOption(acceptOption())
    .addOption(witnessFolderOption())
    .addOption(switchOption("apply", "do it"))
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber move --to redis://127.0.0.1:6379\n" +
        "  $ callnumber move --store redis://old:6379 --to redis://new:6379 --namespace all --nodes 3 --apply",
    )
    .action(move);
  takeTargetFromFile(command);
  return command;
}

async function move(options: Options): Promise<void> {
  const { json, nodes, to, witnessFolder } = options;
  if (to === undefined) throw new TypeError("move has no new store. Pass --to URL or --to-file PATH");
  const addresses = { from: movable(options.store), to: movable(to) };
  if (placeOf(addresses.from) === placeOf(addresses.to)) {
    throw new TypeError(`--store and --to are the same place: ${describeStore(addresses.to)}`);
  }
  const way: Way = { from: describeStore(addresses.from), to: describeStore(addresses.to) };
  const { plans, findings } = await withStores(addresses, { create: false, witnessFolder }, (stores) =>
    looked(options, stores),
  );
  if (!options.apply) {
    if (json) return printJson({ ...way, findings, namespaces: plans.map(planAsJson) });
    print(plans.map((plan) => planInWords(plan, way, nodes)).join("\n\n"));
    for (const finding of findings) print(findingInWords(finding));
    print("Nothing was changed. To do it: the same with --apply");
    return;
  }
  for (const finding of findings) throw new CoordinatorError(finding.code, findingInWords(finding));
  const moved = await withStores(addresses, { create: true, witnessFolder }, async (stores) => {
    const done: Moved[] = [];
    for (const { namespace } of plans) {
      done.push(await withMove(options, stores, namespace, moveNamespace));
      if (!json) print(movedInWords(done.at(-1) as Moved));
    }
    return done;
  });
  if (json) printJson({ ...way, moved: moved.map(movedAsJson) });
  else print(nextSteps(way, moved[0]?.storeId ?? ""));
}

interface Addresses {
  readonly from: StoreAddress;
  readonly to: StoreAddress;
}

interface Stores extends Addresses {
  readonly source: Store;
  readonly target: Store;
}

type Standing = Finding & { readonly code: NonNullable<Finding["code"]> };

/** All that is to be moved, and what stands against it; changes nothing. */
async function looked(
  options: Options,
  stores: Stores,
): Promise<{ readonly plans: readonly MovePlan[]; readonly findings: readonly Standing[] }> {
  const { namespace, accept } = options;
  const plans: MovePlan[] = [];
  for (const name of namespace === ALL ? await stores.source.listNamespaces() : [namespace]) {
    plans.push(await withMove(options, stores, name, planMove));
  }
  if (plans.length === 0) {
    throw new CoordinatorError(
      "namespace_not_initialised",
      `the store ${describeStore(stores.from)} holds no namespace`,
    );
  }
  const findings = (await stores.target.preflight({ asOperator: true })).filter(
    (finding): finding is Standing =>
      finding.code !== undefined && (finding.override === undefined || !accept.includes(finding.override)),
  );
  return { plans, findings };
}

async function withMove<T>(
  { nodes, witnessFolder }: Options,
  { source, target, from, to }: Stores,
  namespace: string,
  act: (move: Parameters<typeof moveNamespace>[0]) => Promise<T>,
): Promise<T> {
  const checkpointFile = memoryOf(from, witnessFolder).checkpointFileOf(namespace);
  const targetWitness = memoryOf(to, witnessFolder).checkpointFileOf(namespace);
  try {
    const newPlace = { store: target, place: placeOf(to), checkpointFile: targetWitness };
    return await act({ store: source, namespace, checkpointFile, target: newPlace, nodeCount: nodes });
  } finally {
    checkpointFile.close();
    targetWitness.close();
  }
}

async function withStores<T>(
  { from, to }: Addresses,
  { create, witnessFolder }: { readonly create: boolean; readonly witnessFolder: string },
  act: (stores: Stores) => Promise<T>,
): Promise<T> {
  const { mustNotBeLost } = memoryOf(from, witnessFolder);
  const { store: source } = await openStore(from, { create: false, mustNotBeLost });
  try {
    const target = await openTarget(to, create);
    try {
      return await act({ from, to, source, target });
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/** A store that is not there yet is an empty one. */
async function openTarget(address: StoreAddress, create: boolean): Promise<Store> {
  try {
    return (await openStore(address, { create })).store;
  } catch (error) {
    if (!(error instanceof CoordinatorError) || error.code !== "store_missing") throw error;
    return (await openStore({ kind: "memory" }, { create })).store;
  }
}

function movable(url: string): StoreAddress {
  const address = parseStoreUrl(url);
  if (address.kind === "memory")
    throw new TypeError("a memory store ends with its process: nothing is moved from or to it");
  return address;
}

/** The same text for the same place, whoever logs in there; printable, and without spaces. */
function placeOf(address: StoreAddress): string {
  const place = describeStore("username" in address ? { ...address, username: undefined } : address);
  return place.replace(/[^!-$&-~]/gu, encodeURIComponent);
}
