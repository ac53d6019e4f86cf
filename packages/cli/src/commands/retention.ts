/** `retention`: for how long leases stay in the store, on the store itself. */

import {
  openStore,
  parseStoreUrl,
  RETENTION_DAYS_MAX,
  RETENTION_DAYS_MIN,
  type Retention,
  trimmedIn,
} from "@callnumber/coordinator/operator";
import { Command } from "commander";
import { checkedOption, namespaceOption, storeOption, switchOption, wholeNumber } from "../options.js";
import { grouped, instant, print, printJson } from "../print.js";
import { memoryOf, witnessFolderOption } from "../witness-option.js";

interface Options {
  readonly store: string;
  readonly namespace: string;
  readonly witnessFolder: string;
  readonly days?: number;
  readonly keepAll?: boolean;
  readonly json?: boolean;
}

export function retentionCommand(): Command {
  return new Command("retention")
    .summary("set for how long leases stay in the store")
    .description(
      "Prints for how long the leases of a namespace stay in the store, and which were trimmed; with --days or --keep-all, sets it. " +
        "Coordinators with --ledger-dir append older leases to files there, and trim them. Acts on the store itself; stop the coordinator " +
        "of an embedded store first.",
    )
    .addOption(storeOption())
    .addOption(namespaceOption())
    .addOption(witnessFolderOption())
    .addOption(
      checkedOption(
        "--days <n>",
        `trim leases that are older, ${RETENTION_DAYS_MIN} to ${RETENTION_DAYS_MAX} days`,
        wholeNumber(RETENTION_DAYS_MIN, RETENTION_DAYS_MAX),
      ).conflicts("keepAll"),
    )
    .addOption(switchOption("keep-all", "trim nothing"))
    .addHelpText("after", "\nExamples:\n  $ callnumber retention\n  $ callnumber retention --days 90")
    .action(retention);
}

async function retention({ store: url, namespace, witnessFolder, days, keepAll, json }: Options): Promise<void> {
  const address = parseStoreUrl(url);
  if (address.kind === "memory") throw new TypeError("a memory store ends with its process: it has no retention");
  const { mustNotBeLost } = memoryOf(address, witnessFolder);
  const { store } = await openStore(address, { create: false, mustNotBeLost });
  try {
    await store.readNamespace(namespace);
    const asked = keepAll ? 0 : days;
    if (asked !== undefined) await store.setRetention(namespace, asked);
    const found = await store.readRetention(namespace);
    if (json) printJson(asJson(namespace, found));
    else print(inWords(namespace, found));
  } finally {
    await store.close();
  }
}

function asJson(namespace: string, found: Retention): object {
  const { days, through } = found;
  return { namespace, days: days === 0 ? null : days, trimmed: through === 0 ? null : trimmedIn(found) };
}

function inWords(namespace: string, { days, through, leasedAtMs }: Retention): string {
  return [
    `namespace ${namespace}`,
    `  leases stay    ${days === 0 ? "permanently" : `${grouped(days)} days`}`,
    `  trimmed        ${through === 0 ? "none" : `up to run ${grouped(through)}, the last leased at ${instant(leasedAtMs)}`}`,
  ].join("\n");
}
