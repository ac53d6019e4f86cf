/** `advance-version`: prints what it means to leave a version. With --apply, numbering continues in the next one. */
import { CORRUPT, PHASES } from "@callnumber/coordinator/internal";
import {
  type AdvancePlan,
  advanceVersion,
  describeStore,
  planAdvance,
  refusalOfAdvance,
} from "@callnumber/coordinator/operator";
import { runName } from "@callnumber/protocol/api";
import { VERSION_MAX } from "@callnumber/protocol/codec";
import { Command } from "commander";
import { checkedOption, namespaceOption, STORE_GROUP, switchOption, wholeNumber } from "../options.js";
import { formatCount, formatRecord, formatTime, formatWhere, print, printJson, type Where } from "../output.js";
import {
  addActingOptions,
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
  readonly apply?: boolean;
}

export function makeCommand(): Command {
  const command = new Command("advance-version")
    .description(
      "Ends the version that a namespace leases from, permanently, and continues at run 1 of the next one: there are eight, 0 to 7. Prints " +
        "what that means, and changes nothing without --apply. Coordinators of a server may run meanwhile, and continue automatically; stop the coordinator of an embedded " +
        "store first. Fails before the run ceiling of the version has reached its last run.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber advance-version --store redis://127.0.0.1:6379\n  $ callnumber advance-version --store redis://127.0.0.1:6379 --to 1 --apply",
    )
    .action(advance);
  const to = "version to continue in, for scripts; if it is reached, nothing changes";
  return addActingOptions(command, [
    checkedOption("--to <version>", to, wholeNumber(1, VERSION_MAX)),
    switchOption(
      "force-early",
      "give up the runs left, if less than 95 % are used; only once the run ceiling is at the end",
    ),
    confirmClockOption(),
    switchOption("apply", "advance to the next version"),
    namespaceOption(STORE_GROUP),
    checkpointDirOption(),
  ]);
}

async function advance(options: Options, command: Command): Promise<void> {
  const { namespace, to, apply, json } = options;
  const { address, store, checkpoints } = await openExistingStore(options, "its version never does");
  const checkpointFile = checkpoints.checkpointFileOf(namespace);
  const { forceEarly: isForcedEarly = false, confirmClock: isClockChecked = false } = options;
  const request = { store, namespace, checkpointFile, isForcedEarly, isClockChecked };
  try {
    const plan = await planAdvance(request);
    const { storeId, found } = plan;
    const { version } = found;
    const where = { store: describeStore(address), storeId, namespace };
    if (to !== undefined && version >= to) {
      if (json) printJson({ ...where, version, changed: false });
      else print(`${formatWhere(where)}\nIt is at version ${version} already. Nothing was changed.`);
      return;
    }
    if (to !== undefined && to !== version + 1) {
      throw new TypeError(
        `--to ${to}: namespace "${namespace}" is at version ${version}, and a version is never left out`,
      );
    }
    const refusal = refusalOfAdvance(plan, request);
    if (refusal !== undefined) throw refusal;
    if (!json) print(formatPlan(plan, where));
    if (!apply) {
      if (json) printJson({ ...where, ...planAsJson(plan), changed: false });
      else print(`Nothing was changed. To do it:\n  ${commandAgain(command, "advance-version", { apply: true })}`);
      return;
    }
    const { after } = await advanceVersion(request, plan);
    const { phase } = await store.readNamespace(namespace);
    if (json) printJson({ ...where, version: after.version, generation: after.generation, changed: true });
    else print(formatDone(namespace, after.version, phase === PHASES.claimed));
  } finally {
    checkpointFile.close();
    await store.close();
  }
}

function formatPlan({ found, checkpoint, mayHaveRolledBack, ...plan }: AdvancePlan, where: Where): string {
  const { version } = found;
  const next = version + 1;
  const usedPercent = (plan.usedShare * 100).toFixed(3);
  const givenUp = `${formatCount(plan.givenUpRunCount)} runs, ${formatCount(plan.givenUpCallNumberCount)} call numbers`;
  return [
    formatWhere(where),
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
      : `  version ${next}          begins at run ${runName(next, 1)}, or at its run ceiling if the store has rolled back`,
    `  versions           ${VERSION_MAX - next} are left after that`,
    "  there is no way back",
  ].join("\n");
}

function planAsJson({ found, ...plan }: AdvancePlan): object {
  const { usedShare, givenUpRunCount, ceilingEndsAtMs, mayHaveRolledBack } = plan;
  const { version, highWaterMark, generation } = found;
  return { version, highWaterMark, generation, usedShare, givenUpRunCount, ceilingEndsAtMs, mayHaveRolledBack };
}

function formatDone(namespace: string, version: number, isClaimed: boolean): string {
  const begin = isClaimed
    ? "The store may have rolled back: the next coordinator recovers it, and leases from the run ceiling of the version on"
    : `The next lease is run ${runName(version, 1)}`;
  return `Done: namespace "${namespace}" is at version ${version}. ${begin}. Coordinators that run notice within seconds.`;
}
