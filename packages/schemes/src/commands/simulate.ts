/** `schemes simulate`: mints with every scheme in worlds where something is wrong, and counts repeats beside the theory. */
import { randomInt } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { Command } from "commander";
import { NODES_MAX, type Outcome, outcomesOf, type Play, WORLDS, type World } from "../collisions/index.js";
import { SCHEMES, type Scheme } from "../index.js";
import { countInWords } from "./figures.js";
import type { Column, RunningCall, SchemesIo } from "./io.js";
import { rateIn, rateInWords } from "./load.js";
import { nameList, oneOf, quickOption, wholeNumberIn } from "./options.js";
import { broken, labelled, lineWidth } from "./sentences.js";

interface Options {
  readonly scheme?: readonly Scheme[];
  readonly world?: readonly World[];
  readonly nodes: number;
  readonly numbers: number;
  readonly rate: number;
  readonly seed?: number;
  readonly json?: boolean;
}

/** All numbers of a play are kept in memory, in one world five times as many: then half a gigabyte. */
const NUMBERS_MAX = 200_000;
const SEED_MAX = 2 ** 32 - 1;
const DEFAULT_RATE = "1000/s";
const EXIT_DISAGREES = 1;

const NOTES = [
  "by promise: the scheme says that there is none. By overlap: two processes counted alike, and each number that both came to is one. " +
    "By birthday: drawn, as many as chance gives on average.",
  "The counter of counter-back is a bare one. What keeps it from going back for call numbers, the guard of the coordinator, " +
    "is not in this simulation: docs/guarantees.md.",
];

export function simulateCommand(io: SchemesIo): Command {
  return new Command("simulate")
    .summary("mint where clocks, nodes and counters are wrong; count repeats")
    .description(
      "Mints with every numbering scheme in simulated worlds, each with one thing wrong, and counts exactly how many numbers were made " +
        "before, beside how many the theory expects. A repeat is a finding, no failure: the exit code is 0. It is 1 only where what was " +
        "seen can't be by the theory. docs/schemes.md says how to read it, and what it does not cover.",
    )
    .addOption(quickOption("--scheme <names...>", "only these schemes", nameList(oneOf("scheme", SCHEMES))))
    .addOption(quickOption("--world <names...>", "only these worlds", nameList(oneOf("world", WORLDS))))
    .addOption(quickOption("--nodes <n>", "processes that mint", wholeNumberIn(2, NODES_MAX)).default(10))
    .addOption(
      quickOption(
        "--numbers <n>",
        "numbers of each scheme in each world, all nodes together",
        wholeNumberIn(1, NUMBERS_MAX),
      ).default(10_000),
    )
    .addOption(
      quickOption("--rate <rate>", "numbers asked for, all nodes together: 1000/s, 2M/day", rateIn).default(
        rateIn(DEFAULT_RATE),
        DEFAULT_RATE,
      ),
    )
    .addOption(
      quickOption("--seed <n>", "plays the same again (default: drawn, and printed)", wholeNumberIn(0, SEED_MAX)),
    )
    .addHelpText("after", () => {
      const worlds = WORLDS.map(({ name, title }) => [name, title] as const);
      return (
        `\nWorlds:\n${labelled(worlds, lineWidth(io)).join("\n")}\n\n` +
        "Examples:\n  $ callnumber schemes simulate\n" +
        "  $ callnumber schemes simulate --seed 1 --world clock-back-restart one-hash\n" +
        "  $ callnumber schemes simulate --scheme random-base62-5 uuid --numbers 200,000"
      );
    })
    .action(async ({ scheme = SCHEMES, world = WORLDS, nodes, numbers, rate, seed, json = false }: Options) => {
      const play = {
        schemes: scheme,
        worlds: world,
        nodes,
        numbers,
        perSecond: rate,
        seed: seed ?? randomInt(SEED_MAX),
      };
      // What can't be played is refused before anything is printed.
      const coming = outcomesOf(play);
      const outcomes = json ? await played(play, coming, io.call, () => {}) : await printedAsPlayed(play, coming, io);
      if (json) io.printJson(asJson(play, outcomes));
      if (outcomes.some(({ plausible }) => !plausible)) io.call.exitCode = EXIT_DISAGREES;
    });
}

async function printedAsPlayed(play: Play, coming: Iterable<Outcome>, io: SchemesIo): Promise<readonly Outcome[]> {
  const { nodes, numbers, perSecond, seed } = play;
  const circumstances = `${nodes} nodes, ${rateInWords(perSecond)}, ${grouped(numbers)} numbers of each scheme in each world.`;
  const printBroken = (text: string) => io.print(broken(text, lineWidth(io)).join("\n"));
  printBroken(`${circumstances} Seed ${seed}: --seed ${seed} plays the same again.`);
  const outcomes = await played(play, coming, io.call, (ofWorld) => io.printPainted(`\n${worldTable(ofWorld, io)}`));
  for (const note of NOTES) {
    io.print("");
    printBroken(note);
  }
  return outcomes;
}

/** `onWorld` is called with each world when it is through. */
async function played(
  play: Play,
  coming: Iterable<Outcome>,
  call: RunningCall,
  onWorld: (outcomes: readonly [Outcome, ...Outcome[]]) => void,
): Promise<readonly Outcome[]> {
  const showProgress = progressLine(call);
  const outcomes: Outcome[] = [];
  const count = play.worlds.length * play.schemes.length;
  for (const outcome of coming) {
    outcomes.push(outcome);
    showProgress(`${outcome.world.name}: ${outcome.scheme.name}, ${outcomes.length} of ${count}`);
    // Readers that leave are heard between plays.
    await turn();
    if (outcomes.length % play.schemes.length > 0) continue;
    showProgress("");
    onWorld(outcomes.slice(-play.schemes.length) as [Outcome, ...Outcome[]]);
  }
  return outcomes;
}

/** As in the manual of xterm. */
const ERASE_LINE = "\r\u001b[K";

/** Writes one line on a terminal in place of the one before. Elsewhere nothing. */
function progressLine({ io: { stderr } }: RunningCall): (text: string) => void {
  if (!stderr.isTTY) return () => {};
  return (text) => void stderr.write(`${ERASE_LINE}${text.slice(0, (stderr.columns ?? 80) - 1)}`);
}

function asJson({ nodes, numbers, perSecond, seed }: Play, outcomes: readonly Outcome[]): object {
  const worlds = [...new Set(outcomes.map(({ world }) => world))];
  return {
    seed,
    nodes,
    numbers,
    perSecond,
    worlds: worlds.map((world) => ({
      name: world.name,
      title: world.title,
      outcomes: outcomes.filter((outcome) => outcome.world === world).map(outcomeAsJson),
    })),
  };
}

/** So few repeats by chance are not worth a row. */
const SHOWN_FROM = 0.1;

/** A row for each scheme in which there is something to see, and the others in a sentence. `outcomes` are of one world. */
export function worldTable(outcomes: readonly [Outcome, ...Outcome[]], io: SchemesIo): string {
  const width = lineWidth(io);
  const [{ world }] = outcomes;
  const shown = outcomes.filter(hasSomethingToSee);
  const silent = outcomes.filter((outcome) => !hasSomethingToSee(outcome));
  const lines = shown.length === 0 ? [] : [io.table(columnsFor(shown), shown), ""];
  return [
    io.paint("bold", world.name),
    ...broken(world.title, width),
    "",
    ...lines,
    ...named("no repeat, as promised:", silent.filter(isPromised), width),
    ...named(
      "no repeat, and hardly one by chance:",
      silent.filter((outcome) => !isPromised(outcome)),
      width,
    ),
    ...shown
      .filter(({ plausible }) => !plausible)
      .flatMap((outcome) => broken(disagreement(outcome), width).map((line) => io.paint("red", line))),
  ].join("\n");
}

export function outcomeAsJson({ scheme, minted, repeats, waited, refused, theory, plausible }: Outcome): object {
  const { kind, expected } = theory;
  return { scheme: scheme.name, minted, repeats, expected, theory: kind, waited, refused, plausible };
}

/** Why there are as many. */
const REASONS: Readonly<Record<Outcome["theory"]["kind"], string>> = {
  none: "promise",
  overlap: "overlap",
  birthday: "birthday",
};

function hasSomethingToSee({ repeats, theory, waited, refused, plausible }: Outcome): boolean {
  return repeats > 0 || theory.expected >= SHOWN_FROM || waited > 0 || refusals({ refused }) > 0 || !plausible;
}

function isPromised({ theory: { kind } }: Outcome): boolean {
  return kind === "none";
}

function columnsFor(outcomes: readonly Outcome[]): readonly Column<Outcome>[] {
  const onRight = (
    heading: string,
    textOf: (outcome: Outcome) => string,
    styleOf?: Column<Outcome>["styleOf"],
  ): Column<Outcome> => {
    const width = Math.max(heading.length, ...outcomes.map((outcome) => textOf(outcome).length));
    return {
      heading: heading.padStart(width),
      cellOf: (outcome) => textOf(outcome).padStart(width),
      ...(styleOf && { styleOf }),
      expendability: 0,
    };
  };
  return [
    { heading: "SCHEME", cellOf: ({ scheme: { name } }) => name, shrinksTo: 12, expendability: 0 },
    { ...onRight("MINTED", ({ minted }) => grouped(minted)), expendability: 1 },
    onRight(
      "REPEATS",
      ({ repeats }) => grouped(repeats),
      ({ repeats }) => (repeats > 0 ? "red" : undefined),
    ),
    onRight("EXPECTED", ({ theory: { expected } }) => countInWords(expected)),
    { heading: "BY", cellOf: ({ theory: { kind } }) => REASONS[kind], expendability: 2 },
    { ...onRight("WAITED", ({ waited }) => grouped(waited)), expendability: 3 },
    { ...onRight("REFUSED", (outcome) => grouped(refusals(outcome))), expendability: 3 },
  ];
}

function refusals({ refused }: Pick<Outcome, "refused">): number {
  return Object.values(refused).reduce((sum, count) => sum + count, 0);
}

function named(label: string, outcomes: readonly Outcome[], width: number): readonly string[] {
  if (outcomes.length === 0) return [];
  return broken(`${label} ${outcomes.map(({ scheme: { name } }) => name).join(", ")}`, width);
}

function disagreement({ scheme, repeats, theory }: Outcome): string {
  return (
    `${scheme.name}: ${grouped(repeats)} seen beside ${countInWords(theory.expected)} expected is no chance. ` +
    "The scheme, the theory or this simulation is wrong"
  );
}

function grouped(value: number): string {
  return value.toLocaleString("en-US");
}
