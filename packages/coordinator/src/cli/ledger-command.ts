/** `ledger verify`: reads every file of a ledger folder and says what is wrong. Needs no store, and changes nothing. */
import { Argument, Command } from "commander";
import { type VerifiedLedger, verifyFolder } from "../ledger-archive/verify-folder.js";
import { visible } from "../shown-text.js";
import { running } from "./command-io.js";
import { ledgerFolderOption } from "./ledger-option.js";
import { grouped, print, printJson, printPainted } from "./print.js";
import type { Column } from "./table.js";
import { terminalTable } from "./terminal-table.js";

interface Options {
  readonly ledgerFolder: string;
  readonly json?: boolean;
}

const COLUMNS: readonly Column<VerifiedLedger>[] = [
  { heading: "NAMESPACE", cellOf: ({ namespace }) => namespace, expendability: 0 },
  { heading: "STORE", cellOf: ({ storeUuid }) => storeUuid, shrinksTo: 8, expendability: 2 },
  { heading: "FILES", cellOf: ({ fileCount }) => fileCount, expendability: 1 },
  { heading: "LEASES", cellOf: ({ leaseCount }) => leaseCount, expendability: 0 },
  { heading: "BYTES", cellOf: ({ byteCount }) => byteCount, expendability: 3 },
  { heading: "THROUGH", cellOf: ({ through }) => through, expendability: 0 },
];

export function ledgerCommand(): Command {
  return new Command("ledger")
    .summary("look whether the archived part of the ledger is whole")
    .description(
      "verify: reads every file of the ledger folder: its name, its checksum, each block, the order of its leases; and whether a file is " +
        "missing between two others. The exit code is 1 when anything is wrong. Needs no store and no coordinator.",
    )
    .addArgument(new Argument("<action>", "what to do").choices(["verify"]))
    .addOption(ledgerFolderOption().makeOptionMandatory())
    .addHelpText("after", "\nExamples:\n  $ callnumber ledger verify --ledger-folder /var/lib/callnumber/ledger")
    .action(async (_action: string, { ledgerFolder, json }: Options) => {
      const ledgers = await verifyFolder(ledgerFolder);
      const faultCount = ledgers.reduce((count, { faults }) => count + faults.length, 0);
      if (faultCount > 0) running().exitCode = 1;
      if (json) printJson({ ledgerFolder, faultCount, ledgers });
      else printInWords(ledgerFolder, ledgers, faultCount);
    });
}

function printInWords(folder: string, ledgers: readonly VerifiedLedger[], faultCount: number): void {
  if (ledgers.length === 0) return print(`${folder} holds no archived ledger`);
  printPainted(terminalTable(COLUMNS).linesOf(ledgers).join("\n"));
  for (const { namespace, faults } of ledgers)
    for (const fault of faults) print(visible(`WRONG in ${namespace}: ${fault}`));
  print(faultCount === 0 ? "all of it is whole" : `${grouped(faultCount)} faults`);
}
