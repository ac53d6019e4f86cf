/** `schemes list`: compares every numbering scheme with the call number for a load, or shows one of them in full. */
import { Command, Option } from "commander";
import type { Load } from "../chances.js";
import type { Facts } from "../facts.js";
import { capacityOf } from "../fields.js";
import { SCHEMES } from "../index.js";
import type { Generated, Scheme } from "../scheme.js";
import { seededRandom } from "../simulation/random.js";
import { schemeInFull } from "./describe-scheme.js";
import { formatChance, formatCount, formatDay, formatLoad, formatSpan, valuesAsJson, YEAR_S } from "./format.js";
import type { Column, SchemesIo } from "./io.js";
import { integerBetween, oneScheme, parseSpan, rateOption, someSchemes } from "./options.js";

interface Options {
  readonly rate: number;
  readonly nodes: number;
  readonly for: number;
  readonly only?: readonly Scheme[];
  readonly json?: boolean;
}

const NODES_MAX = 1e9;

export function listCommand(io: SchemesIo): Command {
  return new Command("list")
    .summary("Compare numbering schemes, or show one in full")
    .description(
      "Compares the call number with other numbering schemes for a load: so many numbers a second, made by so many nodes, for so long. " +
        "Every figure is computed from the fields of the scheme. With a name, shows that scheme in full.",
    )
    .argument("[name]", "a scheme to show in full, with its fields and a sample", oneScheme)
    .addOption(rateOption("numbers made, all nodes together: 1000/s, 2M/day"))
    .option("--nodes <n>", "processes that make them", integerBetween(1, NODES_MAX), 10)
    .addOption(new Option("--for <span>", "how long: 10y, 90d, 36h").argParser(parseSpan).default(10 * YEAR_S, "10y"))
    .option("--only <names...>", "only these schemes", someSchemes)
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber schemes list\n  $ callnumber schemes list --rate 50/s --nodes 4 --for 30y\n" +
        "  $ callnumber schemes list --only call-number uuid\n  $ callnumber schemes list twitter-snowflake",
    )
    .action((one: Scheme | undefined, { rate, nodes, for: seconds, only = SCHEMES, json }: Options) => {
      const load = { perSecond: rate, nodes, seconds };
      const listed = one === undefined ? only : [one];
      if (json) io.printJson({ load, schemes: listed.map((scheme) => schemeAsJson(scheme, load)) });
      else if (one !== undefined) io.printPainted(schemeInFull(one, sampleOf(one).values, load, io));
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
    io.printPainted(`${io.table([column("SCHEME", 0, ({ name }) => name), ...columns], schemes)}\n`);
  };
  printTable("What a number is, and what its makers must ask for", [
    column("BITS", 0, ({ facts }) => facts.bits.toFixed(1).padStart(BITS_WIDTH)),
    column("CHARS", 0, ({ facts }) => facts.characters),
    column("ORDER", 2, ({ facts }) => facts.order),
    column("ASKS FOR", 1, ({ facts }) => facts.coordination),
  ]);
  const isTooSlow = ({ perSecond }: Facts) => perSecond < load.perSecond;
  const hasTooFewNodes = ({ nodes }: Facts) => nodes < load.nodes;
  const isWorrying = ({ repeats }: Facts) => repeats(load) > CHANCE_TO_WORRY;
  printTable(`Under a load of ${formatLoad(load)}`, [
    column("MOST A SECOND", 1, ({ facts }) => formatCount(facts.perSecond), isTooSlow),
    column("NODES", 2, ({ facts }) => formatCount(facts.nodes), hasTooFewNodes),
    column("LASTS", 0, ({ facts }) => formatEnd(facts, load.perSecond)),
    column("A REPEAT", 0, ({ facts }) => formatChance(facts.repeats(load)), isWorrying),
  ]);
  printTable("What one number reveals, and what fails first", [
    column("REVEALS", 2, ({ facts }) => facts.reveals.join(", ")),
    column("NAMES ANOTHER", 1, ({ facts }) => formatChance(facts.neighbor(load))),
    column("FAILS FIRST BY", 0, firstFailure),
  ]);
  io.print("One of them in full: callnumber schemes list NAME");
}

/** `isBad`: the cell is red. */
function column(
  heading: string,
  expendability: number,
  cellOf: Column<Scheme>["cellOf"],
  isBad: (facts: Facts) => boolean = () => false,
): Column<Scheme> {
  return { heading, expendability, cellOf, styleOf: ({ facts }) => (isBad(facts) ? "red" : undefined) };
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
    sample: { text, fields: valuesAsJson(values), encodings: scheme.encodings(values) },
  };
}

/** The day of the examples in the documents that describe the schemes. */
const SAMPLE_MS = Date.UTC(2018, 5, 9, 10);
const SAMPLE_RUN = 99n;

/** A number that no archive gets: generated under a clock of the past, with random numbers that are the same every time. */
function sampleOf(scheme: Scheme): Generated {
  const step = scheme.generate({
    clock: { nowMs: () => SAMPLE_MS },
    random: seededRandom("sample"),
    node: { given: 3, server: 1, pid: 14_013, macs: ["de:ad:be:ef:00:01"] },
    memory: new Map(),
    disk: new Map(),
    counter: { next: () => SAMPLE_RUN },
  });
  if (step.outcome === "generated") return step;
  throw new Error(`${scheme.name} waits before its first number`);
}
