/** `advance-version`: prints what it means to leave a version, and asks. Then numbering continues in the next one. */
import { createInterface } from "node:readline/promises";
import {
  type AdvancePlan,
  advanceVersion,
  CORRUPT,
  describeStore,
  PHASES,
  planAdvance,
  refusalOfAdvance,
} from "@callnumber/coordinator/operator";
import { VERSION_MAX } from "@callnumber/protocol/codec";
import { Command } from "commander";
import { invocation } from "../invocation.js";
import { checkedOption, namespaceOption, STORE_GROUP, switchOption, wholeNumber } from "../options.js";
import { formatCount, formatRecord, formatTime, print, printJson } from "../output.js";
import {
  addStoreOptions,
  checkpointDirOption,
  commandAgain,
  confirmClockOption,
  openExistingStore,
  type StoreNamespaceOptions,
} from "../store-options.js";

interface Options extends StoreNamespaceOptions {
  readonly to?: number;
  readonly forceEarly?: boolean;
  readonly confirmClock?: boolean;
  readonly yes?: boolean;
}

export function advanceVersionCommand(): Command {
  const command = new Command("advance-version")
    .summary("Continue in the next version when a run space ends")
    .description(
      "Ends the version that a namespace leases from, permanently, and continues at run 1 of the next one: there are eight, 0 to 7. Prints " +
        "what that means, and asks. Coordinators on Redis may run meanwhile, and continue automatically; stop the coordinator of an embedded " +
        "store first. Fails before the run ceiling of the version has reached its last run.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber advance-version --store redis://127.0.0.1:6379\n  $ callnumber advance-version --store redis://127.0.0.1:6379 --to 1 --yes",
    )
    .action(advance);
  const to = "version to continue in, for scripts; if it is reached, nothing changes";
  return addStoreOptions(command, [
    checkedOption("--to <version>", to, wholeNumber(1, VERSION_MAX)),
    switchOption("force-early", "give up the rest of a version of which less than 95 % is used"),
    confirmClockOption(),
    switchOption("yes", "advance without asking"),
    namespaceOption(STORE_GROUP),
    checkpointDirOption(),
  ]);
}

async function advance(options: Options, command: Command): Promise<void> {
  const { namespace, to, json } = options;
  const { address, store, checkpoints } = await openExistingStore(options, "its version never does");
  const checkpointFile = checkpoints.checkpointFileOf(namespace);
  const { forceEarly: isForcedEarly = false, confirmClock: isClockChecked = false } = options;
  const request = { store, namespace, checkpointFile, isForcedEarly, isClockChecked };
  try {
    const plan = await planAdvance(request);
    const { version } = plan.found;
    if (to !== undefined && version >= to) {
      if (json) printJson({ namespace, version, changed: false });
      else print(`Namespace "${namespace}" is at version ${version} already. Nothing was changed.`);
      return;
    }
    if (to !== undefined && to !== version + 1) {
      throw new TypeError(
        `--to ${to}: namespace "${namespace}" is at version ${version}, and a version is never left out`,
      );
    }
    const refusal = refusalOfAdvance(plan, request);
    if (refusal !== undefined) throw refusal;
    if (!json) invocation().io.stderr.write(`${formatPlan(plan, describeStore(address))}\n`);
    if (!options.yes && !(await isConfirmed(namespace, json))) {
      if (json) printJson({ ...planAsJson(plan), changed: false });
      else print(`Nothing was changed. To do it:\n  ${commandAgain(command, "advance-version", { yes: true })}`);
      return;
    }
    const { after } = await advanceVersion(request, plan);
    const { phase } = await store.readNamespace(namespace);
    if (json) printJson({ namespace, version: after.version, generation: after.generation, changed: true });
    else print(formatDone(namespace, after.version, phase === PHASES.claimed));
  } finally {
    checkpointFile.close();
    await store.close();
  }
}

function formatPlan(
  { namespace, storeId, found, checkpoint, mayHaveRolledBack, ...plan }: AdvancePlan,
  store: string,
): string {
  const { version } = found;
  const next = version + 1;
  const usedPercent = (plan.usedShare * 100).toFixed(3);
  const givenUp = `${formatCount(plan.givenUpRunCount)} runs, ${formatCount(plan.givenUpCallNumberCount)} call numbers`;
  return [
    `namespace ${namespace} of ${store}, store id ${storeId}`,
    "found",
    `  version            ${version}, of which ${usedPercent} % are used`,
    `  the record         ${formatRecord(found)}`,
    `  the run ceiling    reached the last run of version ${version} at ${formatTime(plan.ceilingEndsAtMs)}`,
    ...(checkpoint === CORRUPT ? ["  the checkpoint     can't be read any more: the store may have rolled back"] : []),
    "advancing means",
    `  version ${version}          is never leased from again: ${givenUp}, are given up.`,
    "                     Importers that hold runs of it use them up. Numbers made so far stay as they are",
    mayHaveRolledBack
      ? `  version ${next}          begins at its run ceiling, because the store may have lost an earlier begin`
      : `  version ${next}          begins at run 1, or at its run ceiling if the store has rolled back`,
    `  versions           ${VERSION_MAX - next} are left after that`,
    "  there is no way back",
  ].join("\n");
}

function planAsJson({ found, ...plan }: AdvancePlan): object {
  const { namespace, storeId, usedShare, givenUpRunCount, ceilingEndsAtMs, mayHaveRolledBack } = plan;
  const { version, highWaterMark, generation } = found;
  const record = { namespace, storeId, version, highWaterMark, generation };
  return { ...record, usedShare, givenUpRunCount, ceilingEndsAtMs, mayHaveRolledBack };
}

/** Asks at a terminal only. */
async function isConfirmed(namespace: string, json: boolean | undefined): Promise<boolean> {
  const { stdin, stderr } = invocation().io;
  if (json || !stdin.isTTY) return false;
  const terminal = createInterface({ input: stdin, output: stderr });
  try {
    return (await terminal.question("Type the name of the namespace to do it: ")).trim() === namespace;
  } finally {
    terminal.close();
  }
}

function formatDone(namespace: string, version: number, isClaimed: boolean): string {
  const begin = isClaimed
    ? "The store may have rolled back: the next coordinator recovers it, and leases from the run ceiling of the version on"
    : "The next lease is run 1 of it";
  return `Done: namespace "${namespace}" is at version ${version}. ${begin}. Coordinators that run notice within seconds.`;
}
