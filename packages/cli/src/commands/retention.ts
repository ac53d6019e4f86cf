/** `retention`: for how long leases stay in the store, on the store itself. */
import { RETENTION_DAYS_MAX, RETENTION_DAYS_MIN } from "@callnumber/coordinator/internal";
import { describeStore, type Retention } from "@callnumber/coordinator/operator";
import { nameOfLedgerId, runOfLedgerId } from "@callnumber/protocol/api";
import { Command } from "commander";
import { checkedOption, namespaceOption, STORE_GROUP, switchOption, wholeNumber } from "../options.js";
import { formatCount, formatTime, formatWhere, print, printJson, type Where } from "../output.js";
import {
  addActingOptions,
  checkpointDirOption,
  openExistingStore,
  type StoreNamespaceOptions,
} from "../store-options.js";

interface Options extends StoreNamespaceOptions {
  readonly days?: number;
  readonly keepAll?: boolean;
}

export function makeCommand(): Command {
  const command = new Command("retention")
    .description(
      "Prints for how long the leases of a namespace stay in the store, and which were trimmed; with --days or --keep-all, sets it. " +
        "Coordinators with --ledger-dir append older leases to files there, and trim them. Acts on the store itself; stop the coordinator " +
        "of an embedded store first.",
    )
    .addHelpText("after", "\nExamples:\n  $ callnumber retention\n  $ callnumber retention --days 90")
    .action(retention);
  const days = wholeNumber(RETENTION_DAYS_MIN, RETENTION_DAYS_MAX);
  const whichDays = `trim leases that are older, ${RETENTION_DAYS_MIN} to ${RETENTION_DAYS_MAX} days`;
  return addActingOptions(command, [
    checkedOption("--days <n>", whichDays, days).conflicts("keepAll"),
    switchOption("keep-all", "trim nothing"),
    namespaceOption(STORE_GROUP),
    checkpointDirOption(),
  ]);
}

async function retention({ namespace, days, keepAll, json, ...place }: Options): Promise<void> {
  const { address, store } = await openExistingStore(place, "it has no retention");
  try {
    const { storeId, version } = await store.readNamespace(namespace);
    const wanted = keepAll ? 0 : days;
    if (wanted !== undefined) await store.setRetentionDays(namespace, wanted);
    const found = await store.readRetention(namespace);
    const where = { store: describeStore(address), storeId, namespace };
    if (json) printJson({ ...where, ...asJson(found) });
    else print(formatRetention(where, found, version));
  } finally {
    await store.close();
  }
}

function asJson({ days, through, leasedAtMs }: Retention): object {
  const { version: upToVersion, run: upToRun } = runOfLedgerId(through);
  const trimmed = through === 0 ? null : { upToVersion, upToRun, lastLeasedAtMs: leasedAtMs };
  return { days: days === 0 ? null : days, trimmed };
}

function formatRetention(where: Where, { days, through, leasedAtMs }: Retention, version: number): string {
  return [
    formatWhere(where),
    `  leases stay    ${days === 0 ? "permanently" : `${formatCount(days)} days`}`,
    `  trimmed        ${through === 0 ? "none" : `up to run ${nameOfLedgerId(through, version)}, the last leased at ${formatTime(leasedAtMs)}`}`,
  ].join("\n");
}
