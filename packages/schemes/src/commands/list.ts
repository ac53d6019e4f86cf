/** `schemes list`: compares every numbering scheme with the call number for a load, or shows one of them in full. */
import { Command } from "commander";
import { capacityOf, type Facts, type Load, SCHEMES, type Scheme } from "../index.js";
import { factRows } from "./describe-facts.js";
import { fieldDigits, fieldRows } from "./describe-fields.js";
import {
  encodingsAsJson,
  formatChance,
  formatCount,
  formatDay,
  formatLoad,
  formatSpan,
  labeledLines,
  lineWidth,
  valuesAsJson,
  wrapped,
} from "./format.js";
import type { Column, SchemesIo } from "./io.js";
import { integerBetween, oneOf, parsedOption, parseRate, parseSpan, someOf } from "./options.js";
import { sampleOf } from "./sample.js";

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

export function listCommand(io: SchemesIo): Command {
  return new Command("list")
    .summary("compare numbering schemes: size, speed, repeats, what they reveal")
    .description(
      "Compares the call number with other numbering schemes for a load: so many numbers a second, made by so many nodes, for so long. " +
        "Every figure is computed from the fields of the scheme. With a name, shows that scheme in full.",
    )
    .argument("[name]", "a scheme to show in full, with its fields and a sample", oneOf("scheme", SCHEMES))
    .addOption(
      parsedOption("--rate <rate>", "numbers made, all nodes together: 1000/s, 2M/day", parseRate).default(
        parseRate(DEFAULT_RATE),
        DEFAULT_RATE,
      ),
    )
    .addOption(parsedOption("--nodes <n>", "processes that make them", integerBetween(1, NODES_MAX)).default(10))
    .addOption(
      parsedOption("--for <span>", "how long: 10y, 90d, 36h", parseSpan).default(parseSpan(DEFAULT_SPAN), DEFAULT_SPAN),
    )
    .addOption(parsedOption("--only <names...>", "only these schemes", someOf("scheme", SCHEMES)))
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber schemes list\n  $ callnumber schemes list --rate 50/s --nodes 4 --for 30y\n" +
        "  $ callnumber schemes list --only call-number uuid\n  $ callnumber schemes list twitter-snowflake",
    )
    .action((one: Scheme | undefined, { rate, nodes, for: seconds, only = SCHEMES, json }: Options) => {
      const load = { perSecond: rate, nodes, seconds };
      const listed = one === undefined ? only : [one];
      if (json) io.printJson({ load, schemes: listed.map((scheme) => schemeAsJson(scheme, load)) });
      else if (one !== undefined) io.printPainted(schemeInFull(one, load, io));
      else printTables(only, load, io);
    });
}

/** A repeat that is likelier than this is one that happens. */
const CHANCE_TO_WORRY = 1e-6;
/** As wide as those of a UUID, so that the points are in one column. */
const BITS_WIDTH = 5;

/** Three tables, each for a terminal of 80 columns. On a narrower one columns are left out: half a figure is misleading. */
function printTables(schemes: readonly Scheme[], load: Load, io: SchemesIo): void {
  const printTable = (heading: string, columns: readonly Column<Scheme>[]): void => {
    io.printPainted(`${io.paint("bold", heading)}\n`);
    io.printPainted(`${io.table([NAME, ...columns], schemes)}\n`);
  };
  printTable("What a number is, and what its makers must ask for", NUMBER_COLUMNS);
  printTable(`Under a load of ${formatLoad(load)}`, loadColumns(load));
  printTable("What one number reveals, and what fails first", readerColumns(load));
  io.print("One of them in full: callnumber schemes list NAME");
}

const NAME: Column<Scheme> = { heading: "SCHEME", cellOf: ({ name }) => name, expendability: 0 };

const NUMBER_COLUMNS: readonly Column<Scheme>[] = [
  { heading: "BITS", cellOf: ({ facts }) => facts.bits.toFixed(1).padStart(BITS_WIDTH), expendability: 0 },
  { heading: "CHARS", cellOf: ({ facts }) => facts.characters, expendability: 0 },
  { heading: "ORDER", cellOf: ({ facts }) => facts.order, expendability: 2 },
  { heading: "ASKS FOR", cellOf: ({ facts }) => facts.coordination, expendability: 1 },
];

function loadColumns(load: Load): readonly Column<Scheme>[] {
  const redIf = (isBad: (facts: Facts) => boolean) => (scheme: Scheme) => (isBad(scheme.facts) ? "red" : undefined);
  return [
    {
      heading: "MOST A SECOND",
      cellOf: ({ facts }) => formatCount(facts.perSecond),
      styleOf: redIf(({ perSecond }) => perSecond < load.perSecond),
      expendability: 1,
    },
    {
      heading: "NODES",
      cellOf: ({ facts }) => formatCount(facts.nodes),
      styleOf: redIf(({ nodes }) => nodes < load.nodes),
      expendability: 2,
    },
    { heading: "LASTS", cellOf: ({ facts }) => formatEnd(facts, load.perSecond), expendability: 0 },
    {
      heading: "A REPEAT",
      cellOf: ({ facts }) => formatChance(facts.repeats(load)),
      styleOf: redIf(({ repeats }) => repeats(load) > CHANCE_TO_WORRY),
      expendability: 0,
    },
  ];
}

function readerColumns(load: Load): readonly Column<Scheme>[] {
  return [
    { heading: "REVEALS", cellOf: ({ facts }) => facts.reveals.join(", "), expendability: 2 },
    { heading: "NAMES ANOTHER", cellOf: ({ facts }) => formatChance(facts.neighbor(load)), expendability: 1 },
    { heading: "FAILS FIRST BY", cellOf: firstFailure, expendability: 0 },
  ];
}

/** The end of the clock field where there is one, or of the numbers, whichever comes first. */
function formatEnd({ endsMs, lastsSeconds }: Facts, perSecond: number): string {
  const seconds = lastsSeconds(perSecond);
  return endsMs !== undefined && (endsMs - Date.now()) / 1_000 <= seconds
    ? `until ${formatDay(endsMs)}`
    : formatSpan(seconds);
}

/** `clock goes back +1`: `schemes list NAME` has the others. */
function firstFailure({ facts: { failures } }: Scheme): string {
  const [first = "", ...others] = failures;
  return others.length === 0 ? first : `${first} +${others.length}`;
}

function schemeInFull(scheme: Scheme, load: Load, io: SchemesIo): string {
  const width = lineWidth(io);
  const { values } = sampleOf(scheme);
  const encodings = scheme.encodings(values).map(({ name, text }) => [name, text] as const);
  return [
    io.paint("bold", scheme.name),
    ...wrapped(scheme.title, width),
    "",
    ...labeledLines(fieldRows(scheme), width),
    "",
    io.paint("bold", "A sample, field by field, and as it is written"),
    ...fieldDigits(scheme, values, width),
    "",
    ...labeledLines(encodings, width),
    "",
    io.paint("bold", `At ${formatLoad(load)}`),
    ...labeledLines(factRows(scheme, load), width),
  ].join("\n");
}

/** What has no bound is null: JSON has no Infinity. */
function schemeAsJson(scheme: Scheme, load: Load): object {
  const { name, title, facts } = scheme;
  const { text, values } = sampleOf(scheme);
  const finite = (value: number) => (Number.isFinite(value) ? value : null);
  return {
    name,
    title,
    fields: scheme.fields.map((field) => ({ ...field, greatest: String(capacityOf(field) - 1n) })),
    bits: facts.bits,
    characters: facts.characters,
    order: facts.order,
    coordination: facts.coordination,
    reveals: facts.reveals,
    nodesMost: finite(facts.nodes),
    perSecondMost: finite(facts.perSecond),
    clockEndsMs: facts.endsMs ?? null,
    lastsSeconds: finite(facts.lastsSeconds(load.perSecond)),
    repeatChance: facts.repeats(load),
    guessChance: facts.guessed(load),
    neighborChance: facts.neighbor(load),
    failures: facts.failures,
    sample: { text, fields: valuesAsJson(values), encodings: encodingsAsJson(scheme, values) },
  };
}
