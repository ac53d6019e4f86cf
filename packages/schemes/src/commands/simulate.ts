/** `schemes simulate`: generates with every scheme in scenarios where something is wrong, and compares the repeats with the theory. */
import { randomInt } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Command } from "commander";
import { SCHEMES } from "../index.js";
import type { Scheme } from "../scheme.js";
import { NODES_MAX, type Outcome, SCENARIOS, type Scenario, simulate } from "../simulation/simulate.js";
import { formatCount, formatRate, grouped, labeledLines, lineWidth, wrapped } from "./format.js";
import type { Column, SchemesIo } from "./io.js";
import { integerBetween, rateOption, someOf, someSchemes } from "./options.js";

interface Options {
  readonly scheme?: readonly Scheme[];
  readonly scenario?: readonly Scenario[];
  readonly nodes: number;
  readonly numbers: number;
  readonly rate: number;
  readonly seed?: number;
  readonly json?: boolean;
}

/** All numbers are kept in memory, in one scenario five times as many: then half a gigabyte. */
const NUMBERS_MAX = 200_000;
const SEED_MAX = 2 ** 32 - 1;
const EXIT_IMPLAUSIBLE = 1;

const NOTES = [
  "by promise: the scheme promises that there is none. By overlap: two processes counted alike, and each number that both came to is one. " +
    "By birthday: drawn, as many as chance gives on average.",
  "The counter of counter-back is a bare one. The guard of the coordinator, which keeps that of call numbers from going back, " +
    "is not in this simulation.",
];

export function simulateCommand(io: SchemesIo): Command {
  return new Command("simulate")
    .summary("Count repeats where clocks, nodes and counters are wrong")
    .description(
      "Generates with every numbering scheme in simulated scenarios, each with one thing wrong, and counts exactly how many numbers were made " +
        "before, next to how many the theory expects. A repeat is a finding, no failure: the exit code is 0. It is 1 only where count and " +
        "theory disagree.",
    )
    .option("--scheme <names...>", "only these schemes", someSchemes)
    .option("--scenario <names...>", "only these scenarios", someOf("scenario", SCENARIOS))
    .option("--nodes <n>", "processes that generate", integerBetween(2, NODES_MAX), 10)
    .option(
      "--numbers <n>",
      "numbers of each scheme in each scenario, all nodes together",
      integerBetween(1, NUMBERS_MAX),
      2_000,
    )
    .addOption(rateOption("numbers requested, all nodes together: 1000/s, 2M/day"))
    .option("--seed <n>", "repeats a simulation (default: random, and printed)", integerBetween(0, SEED_MAX))
    .addHelpText("after", () => {
      const scenarios = SCENARIOS.map(({ name, title }) => [name, title] as const);
      return (
        `\nScenarios:\n${labeledLines(scenarios, lineWidth(io)).join("\n")}\n\n` +
        "Examples:\n  $ callnumber schemes simulate\n" +
        "  $ callnumber schemes simulate --seed 1 --scenario clock-back-restart one-hash\n" +
        "  $ callnumber schemes simulate --scheme random-base62-5 uuid --numbers 200,000"
      );
    })
    .action((options: Options) => simulateAndPrint(options, io));
}

async function simulateAndPrint(options: Options, io: SchemesIo): Promise<void> {
  const { nodes, numbers, rate: perSecond, seed = randomInt(SEED_MAX), json } = options;
  const { scheme: schemes = SCHEMES, scenario: scenarios = SCENARIOS } = options;
  // Fails before anything is printed.
  const onScheme = (scenario: Scenario, scheme: Scheme) => {
    io.showProgress(
      `scenario ${scenarios.indexOf(scenario) + 1} of ${scenarios.length}, ${scenario.name}: ${scheme.name}`,
    );
  };
  const simulated = simulate({ schemes, scenarios, nodes, numbers, perSecond, seed, onScheme });
  const printText = (text: string) => {
    if (!json) io.print(wrapped(text, lineWidth(io)).join("\n"));
  };
  printText(
    `${nodes} nodes, ${formatRate(perSecond)}, ${grouped(numbers)} numbers of each scheme in each scenario. ` +
      `Seed ${seed}: --seed ${seed} repeats this simulation.`,
  );
  const shown: object[] = [];
  const all: Outcome[] = [];
  for (const { scenario, outcomes } of simulated) {
    io.showProgress("");
    all.push(...outcomes);
    if (!json) io.printPainted(`\n${scenarioTable(scenario, outcomes, io)}`);
    shown.push({ name: scenario.name, title: scenario.title, outcomes: outcomes.map(outcomeAsJson) });
    if (!outcomes.every(({ plausible }) => plausible)) io.call.exitCode = EXIT_IMPLAUSIBLE;
    // A reader that has left is noticed between two scenarios.
    await nextTurn();
  }
  printText(`\n${summaryOf(all, schemes.length, scenarios.length)}`);
  for (const text of NOTES.flatMap((note) => ["", note])) printText(text);
  if (json) io.printJson({ seed, nodes, numbers, perSecond, scenarios: shown });
}

/** What was done, and whether it was as expected. */
function summaryOf(outcomes: readonly Outcome[], schemeCount: number, scenarioCount: number): string {
  const generated = outcomes.reduce((sum, outcome) => sum + outcome.generated, 0);
  const repeating = new Set(outcomes.filter(({ repeats }) => repeats > 0).map(({ scheme }) => scheme)).size;
  const wrong = outcomes.filter(({ plausible }) => !plausible).length;
  return (
    `Generated ${grouped(generated)} numbers: schemes ${schemeCount}, scenarios ${scenarioCount}. Schemes that repeated a number: ${repeating}. ` +
    (wrong === 0 ? "Every count is as the theory expects." : `Counts that the theory does not expect: ${wrong}.`)
  );
}

/** Fewer repeats by chance are not worth a row. */
const SHOWN_FROM = 0.1;

/** A row for each scheme in which something happened, and the others in a sentence. */
export function scenarioTable({ name, title }: Scenario, outcomes: readonly Outcome[], io: SchemesIo): string {
  const width = lineWidth(io);
  const shown = outcomes.filter(isShown);
  const others = outcomes.filter((outcome) => !isShown(outcome));
  const sentence = (label: string, named: readonly Outcome[]) =>
    named.length === 0 ? [] : wrapped(`${label} ${named.map(({ scheme }) => scheme.name).join(", ")}`, width);
  const warning = ({ scheme, repeats, theory }: Outcome) =>
    `${scheme.name}: ${grouped(repeats)} repeats can't occur by chance where ${formatCount(theory.expected)} are expected. ` +
    "The scheme, the theory or this simulation is wrong";
  return [
    io.paint("bold", name),
    ...wrapped(title, width),
    "",
    ...(shown.length === 0 ? [] : [io.table(columnsFor(shown), shown), ""]),
    ...sentence(
      "no repeat, as promised:",
      others.filter(({ theory }) => theory.kind === "none"),
    ),
    ...sentence(
      "no repeat, and hardly one by chance:",
      others.filter(({ theory }) => theory.kind !== "none"),
    ),
    ...shown
      .filter(({ plausible }) => !plausible)
      .flatMap((outcome) => wrapped(warning(outcome), width).map((line) => io.paint("red", line))),
  ].join("\n");
}

function isShown({ repeats, theory, waited, rejected, plausible }: Outcome): boolean {
  return repeats > 0 || theory.expected >= SHOWN_FROM || waited > 0 || totalOf(rejected) > 0 || !plausible;
}

function columnsFor(outcomes: readonly Outcome[]): readonly Column<Outcome>[] {
  const right = (heading: string, expendability: number, textOf: (outcome: Outcome) => string): Column<Outcome> => {
    const width = Math.max(heading.length, ...outcomes.map((outcome) => textOf(outcome).length));
    return { heading: heading.padStart(width), cellOf: (outcome) => textOf(outcome).padStart(width), expendability };
  };
  return [
    { heading: "SCHEME", cellOf: ({ scheme: { name } }) => name, shrinksTo: 12, expendability: 0 },
    right("GENERATED", 1, ({ generated }) => grouped(generated)),
    {
      ...right("REPEATS", 0, ({ repeats }) => grouped(repeats)),
      styleOf: ({ repeats }) => (repeats > 0 ? "red" : undefined),
    },
    right("EXPECTED", 0, ({ theory: { expected } }) => formatCount(expected)),
    { heading: "BY", cellOf: ({ theory: { kind } }) => (kind === "none" ? "promise" : kind), expendability: 2 },
    right("WAITED", 3, ({ waited }) => grouped(waited)),
    right("Rejected", 3, ({ rejected }) => grouped(totalOf(rejected))),
  ];
}

function totalOf({ clock_moved_backward, number_space_exhausted }: Outcome["rejected"]): number {
  return clock_moved_backward + number_space_exhausted;
}

export function outcomeAsJson({ scheme, generated, repeats, waited, rejected, theory, plausible }: Outcome): object {
  const { kind, expected } = theory;
  return { scheme: scheme.name, generated, repeats, expected, theory: kind, waited, rejected, plausible };
}
