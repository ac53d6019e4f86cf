/** `backup`: a copy of the embedded store, also while a coordinator leases from it. */
import { backupSqliteFile, describeStore, parseStoreUrl } from "@callnumber/coordinator/operator";
import { Command } from "commander";
import { checkedOption } from "../options.js";
import { formatCount, print, printJson } from "../output.js";
import { addActingOptions } from "../store-options.js";

interface Options {
  readonly store: string;
  readonly to: string;
  readonly json?: boolean;
}

export function makeCommand(): Command {
  const command = new Command("backup")
    .description(
      "Copies the embedded store, as it is at one moment, into a new file, with the ledger. No coordinator leases from a copy: run " +
        "`callnumber recover` first, which skips everything that was leased since. Back up Redis with its own tools; the same holds there.",
    )
    .addHelpText("after", "\nExamples:\n  $ callnumber backup --to store-2026-11-26.db")
    .action(backup);
  return addActingOptions(command, [
    checkedOption("--to <path>", "the file to write; it must not exist").makeOptionMandatory(),
  ]);
}

async function backup({ store, to, json }: Options): Promise<void> {
  const address = parseStoreUrl(store);
  if (address.kind !== "sqlite") {
    throw new TypeError(
      "only an embedded store (sqlite:PATH) is backed up this way; back up a server with its own means",
    );
  }
  const { path, bytes, namespaces } = await backupSqliteFile(address.path, to);
  const source = describeStore(address);
  if (json) return printJson({ store: source, namespaces, backup: path, bytes });
  const ids = namespaces.map(({ namespace, storeId }) => `namespace ${namespace}, store id ${storeId}`);
  print(
    `Copied ${source}: ${ids.join("; ") || "no namespace"}\n${path}, ${formatCount(bytes)} bytes. To use it in place of the store: put it there, and start the coordinator, which prints how to recover it`,
  );
}
