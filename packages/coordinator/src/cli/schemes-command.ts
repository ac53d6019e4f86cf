/** `schemes`: every numbering scheme beside the call number, compared for a load; or one of them in full. Offline. */
import { SCHEMES, type Scheme } from "@callnumber/schemes";
import { Command } from "commander";
import { paintFor } from "./colours.js";
import { nameList } from "./name-list.js";
import { print, printJson, printPainted } from "./print.js";
import { quickOption, wholeNumberIn } from "./quick-option.js";
import { type Load, loadInWords, rateIn, spanIn } from "./schemes/load.js";
import { schemeOf } from "./schemes/scheme-choice.js";
import { schemeAsJson, schemeInFull } from "./schemes/scheme-in-full.js";
import { schemeTables } from "./schemes/scheme-tables.js";
import { terminalTable } from "./terminal-table.js";

interface Options {
  readonly rate: number;
  readonly nodes: number;
  readonly for: number;
  readonly only?: readonly Scheme[];
  readonly json?: boolean;
}

const NODES_MAX = 1e9;
const DEFAULT_RATE = "1000/s";
const DEFAULT_SPAN = "10y";

export function schemesCommand(): Command {
  return new Command("schemes")
    .summary("compares numbering schemes: size, speed, repeats, what they reveal (offline)")
    .description(
      "Compares the call number with the other numbering schemes that people choose, for a load: so many numbers a second, made by so " +
        "many nodes, for so long. Every figure is computed from what the scheme is made of. With a name, tells all of that scheme. " +
        "Needs no coordinator. docs/schemes.md says how to read it.",
    )
    .argument("[name]", "a scheme to tell in full, with its fields and a sample", (name: string) =>
      schemeOf(name, SCHEMES),
    )
    .addOption(
      quickOption("--rate <rate>", "numbers made, all nodes together: 1000/s, 2M/day", rateIn).default(
        rateIn(DEFAULT_RATE),
        DEFAULT_RATE,
      ),
    )
    .addOption(quickOption("--nodes <n>", "processes that make them", wholeNumberIn(1, NODES_MAX)).default(10))
    .addOption(
      quickOption("--for <span>", "how long: 10y, 90d, 36h", spanIn).default(spanIn(DEFAULT_SPAN), DEFAULT_SPAN),
    )
    .addOption(
      quickOption(
        "--only <names...>",
        "only these schemes",
        nameList((name) => schemeOf(name, SCHEMES)),
      ),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber schemes\n  $ callnumber schemes --rate 50/s --nodes 4 --for 30y\n" +
        "  $ callnumber schemes --only call-number uuid\n  $ callnumber schemes twitter-snowflake",
    )
    .action((one: Scheme | undefined, { rate, nodes, for: seconds, only = SCHEMES, json }: Options) => {
      const load = { perSecond: rate, nodes, seconds };
      if (json)
        return printJson({
          load,
          schemes: (one === undefined ? only : [one]).map((scheme) => schemeAsJson(scheme, load)),
        });
      if (one !== undefined) return printPainted(schemeInFull(one, load));
      printTables(only, load);
    });
}

function printTables(schemes: readonly Scheme[], load: Load): void {
  const paint = paintFor(false);
  for (const [index, { heading, columns }] of schemeTables(load, loadInWords(load)).entries()) {
    printPainted(`${index === 0 ? "" : "\n"}${paint("bold", heading)}\n`);
    printPainted(terminalTable(columns).linesOf(schemes).join("\n"));
  }
  print("\nOne of them in full: callnumber schemes NAME");
}
