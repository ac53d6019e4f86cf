/** `backup`: a copy of the embedded store, also while a coordinator leases from it. */
import { backupSqliteFile, parseStoreUrl } from "@callnumber/coordinator/operator";
import { Command } from "commander";
import { z } from "zod";
import { checkedOption } from "../options.js";
import { formatCount, print, printJson } from "../output.js";
import { storeOption } from "../store-options.js";

interface Options {
  readonly store: string;
  readonly to: string;
  readonly json?: boolean;
}

export function backupCommand(): Command {
  return new Command("backup")
    .summary("copy the embedded store, also while it is in use")
    .description(
      "Writes the embedded store as it stands at one moment into a new file. It keeps the ledger; it can never lease again by itself: wherever " +
        "it is put back, it is refused until `callnumber recover` has put it above everything that was leased since. Redis has its own ways to " +
        "be backed up, and the same holds there.",
    )
    .addOption(storeOption())
    .addOption(
      checkedOption("--to <path>", "the file to write; it must not exist", z.string().min(1)).makeOptionMandatory(),
    )
    .action(backup);
}

async function backup({ store, to, json }: Options): Promise<void> {
  const address = parseStoreUrl(store);
  if (address.kind !== "sqlite") {
    throw new TypeError(
      "only an embedded store (sqlite:PATH) is backed up this way; back up a Redis with its own means",
    );
  }
  const { path, bytes } = await backupSqliteFile(address.path, to);
  if (json) return printJson({ backup: path, bytes });
  print(
    `${path}, ${formatCount(bytes)} bytes. To use it in place of the store: put it there, and start the coordinator, which prints how to recover it`,
  );
}
