/** `schemes list`: every numbering scheme beside the call number, compared for a load; or one of them in full. */
import { Command } from "commander";
import { type Facts, SCHEMES, type Scheme } from "../index.js";
import { evenChanceAfter, factSentences } from "./fact-words.js";
import { fieldDigits, filledBy, greatestOf, widthInWords } from "./field-words.js";
import { chanceInWords, countInWords, dayOf, spanInWords } from "./figures.js";
import type { Column, SchemesIo } from "./io.js";
import { type Load, loadInWords, rateIn, spanIn } from "./load.js";
import { nameList, oneOf, quickOption, wholeNumberIn } from "./options.js";
import { spellingsAsJson, valuesAsJson } from "./parsed-words.js";
import { sampleOf } from "./sample.js";
import { broken, labelled, lineWidth } from "./sentences.js";

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
      "Compares the call number with the other numbering schemes that people choose, for a load: so many numbers a second, made by so " +
        "many nodes, for so long. Every figure is computed from what the scheme is made of. With a name, shows all of that scheme.",
    )
    .argument("[name]", "a scheme to show in full, with its fields and a sample", oneOf("scheme", SCHEMES))
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
    .addOption(quickOption("--only <names...>", "only these schemes", nameList(oneOf("scheme", SCHEMES))))
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

function printTables(schemes: readonly Scheme[], load: Load, io: SchemesIo): void {
  for (const [index, { heading, columns }] of schemeTables(load).entries()) {
    io.printPainted(`${index === 0 ? "" : "\n"}${io.paint("bold", heading)}\n`);
    io.printPainted(io.table(columns, schemes));
  }
  io.print("\nOne of them in full: callnumber schemes list NAME");
}

interface SchemeTable {
  readonly heading: string;
  readonly columns: readonly Column<Scheme>[];
}

/** A repeat that is likelier than this is one that happens. */
const CHANCE_TO_WORRY = 1e-6;
/** As wide as those of a UUID; so the points stand under each other. */
const BITS_WIDTH = 5;
const NAME: Column<Scheme> = { heading: "SCHEME", cellOf: ({ name }) => name, expendability: 0 };

/** Each fits a terminal of 80 columns. On a narrower one columns are left out: half a figure says nothing. */
function schemeTables(load: Load): readonly SchemeTable[] {
  return [
    { heading: "What a number is, and what those who make them must ask for", columns: NUMBER_COLUMNS },
    { heading: `What it bears: ${loadInWords(load)}`, columns: loadColumns(load) },
    { heading: "What one number tells, and what goes wrong first", columns: readerColumns(load) },
  ];
}

const NUMBER_COLUMNS: readonly Column<Scheme>[] = [
  NAME,
  { heading: "BITS", cellOf: ({ facts }) => facts.bits.toFixed(1).padStart(BITS_WIDTH), expendability: 0 },
  { heading: "CHARS", cellOf: ({ facts }) => facts.characters, expendability: 0 },
  { heading: "ORDER", cellOf: ({ facts }) => facts.order, expendability: 2 },
  { heading: "ASKS FOR", cellOf: ({ facts }) => facts.coordination, expendability: 1 },
];

function loadColumns(load: Load): readonly Column<Scheme>[] {
  return [
    NAME,
    {
      heading: "MOST A SECOND",
      cellOf: ({ facts }) => countInWords(facts.perSecond),
      styleOf: ({ facts }) => (facts.perSecond < load.perSecond ? "red" : undefined),
      expendability: 1,
    },
    {
      heading: "NODES",
      cellOf: ({ facts }) => countInWords(facts.nodes),
      styleOf: ({ facts }) => (facts.nodes < load.nodes ? "red" : undefined),
      expendability: 2,
    },
    { heading: "LASTS", cellOf: ({ facts }) => lastsInWords(facts, load.perSecond), expendability: 0 },
    {
      heading: "A REPEAT",
      cellOf: ({ facts }) => chanceInWords(facts.repeats(load)),
      styleOf: ({ facts }) => (facts.repeats(load) > CHANCE_TO_WORRY ? "red" : undefined),
      expendability: 0,
    },
  ];
}

function readerColumns(load: Load): readonly Column<Scheme>[] {
  return [
    NAME,
    { heading: "REVEALS", cellOf: ({ facts }) => facts.reveals.join(", "), expendability: 2 },
    {
      heading: "NAMES ANOTHER",
      cellOf: ({ facts }) => chanceInWords(facts.neighbour(load)),
      expendability: 1,
    },
    { heading: "FAILS FIRST BY", cellOf: firstFailure, expendability: 0 },
  ];
}

/** The end of the clock field where there is one, or of the numbers, whichever comes first. */
function lastsInWords({ endsMs, lastsSeconds }: Facts, perSecond: number): string {
  const seconds = lastsSeconds(perSecond);
  const clockSeconds = endsMs === undefined ? Number.POSITIVE_INFINITY : (endsMs - Date.now()) / 1_000;
  return endsMs !== undefined && clockSeconds <= seconds ? `until ${dayOf(endsMs)}` : spanInWords(seconds);
}

/** `clock goes back +1`: `schemes list NAME` has the others. */
function firstFailure({ facts: { failures } }: Scheme): string {
  const [first = "", ...others] = failures;
  return others.length === 0 ? first : `${first} +${others.length}`;
}

function schemeInFull(scheme: Scheme, load: Load, io: SchemesIo): string {
  const width = lineWidth(io);
  const { values } = sampleOf(scheme);
  return [
    io.paint("bold", scheme.name),
    ...broken(scheme.title, width),
    "",
    ...fieldLines(scheme, width),
    "",
    io.paint("bold", "A sample, field by field, and as it is written"),
    ...fieldDigits(scheme, values, width),
    "",
    ...labelled(
      scheme.spellings(values).map(({ name, text }) => [name, text] as const),
      width,
    ),
    "",
    io.paint("bold", `At ${loadInWords(load)}`),
    ...labelled(factSentences(scheme, load), width),
  ].join("\n");
}

function fieldLines(scheme: Scheme, width: number): readonly string[] {
  const nameWidth = Math.max(...scheme.fields.map(({ name }) => name.length));
  return labelled(
    scheme.fields.map(
      (field) => [`${field.name.padEnd(nameWidth)}  ${widthInWords(field)}`, filledBy(field, scheme)] as const,
    ),
    width,
  );
}

/** What is without a bound is null: JSON has no Infinity. */
function schemeAsJson(scheme: Scheme, load: Load): object {
  const { name, title, fields, facts } = scheme;
  const { text, values } = sampleOf(scheme);
  return {
    name,
    title,
    fields: fields.map((field) => ({
      name: field.name,
      width: field.width,
      source: field.source,
      greatest: String(greatestOf(field)),
    })),
    bits: facts.bits,
    characters: facts.characters,
    order: facts.order,
    coordination: facts.coordination,
    reveals: facts.reveals,
    nodesMost: bounded(facts.nodes),
    perSecondMost: bounded(facts.perSecond),
    clockEndsMs: facts.endsMs ?? null,
    lastsSeconds: bounded(facts.lastsSeconds(load.perSecond)),
    repeatChance: facts.repeats(load),
    repeatLikelyAfterSeconds: evenChanceAfter(facts, load) ?? null,
    guessChance: facts.guessed(load),
    neighbourChance: facts.neighbour(load),
    failures: facts.failures,
    sample: { text, fields: valuesAsJson(values), spellings: spellingsAsJson(scheme, values) },
  };
}

function bounded(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
