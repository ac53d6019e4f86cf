/** `collisions`: mints with every scheme in worlds where something is wrong, and counts repeats beside the theory. Offline. */
import { randomInt } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { SCHEMES, type Scheme } from "@callnumber/schemes";
import { NODES_MAX, type Outcome, outcomesOf, type Play, WORLDS, type World } from "@callnumber/schemes/collisions";
import { Command } from "commander";
import { progressLine } from "./collisions/progress-line.js";
import { worldOf } from "./collisions/world-choice.js";
import { outcomeAsJson, worldTable } from "./collisions/world-table.js";
import { running } from "./command-io.js";
import { nameList } from "./name-list.js";
import { grouped, print, printJson, printPainted } from "./print.js";
import { quickOption, wholeNumberIn } from "./quick-option.js";
import { rateIn, rateInWords } from "./schemes/load.js";
import { schemeOf } from "./schemes/scheme-choice.js";
import { broken, labelled, lineWidth } from "./schemes/sentences.js";

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

export function collisionsCommand(): Command {
  return new Command("collisions")
    .summary("mints with every scheme where clocks, nodes and counters are wrong; counts repeats (offline)")
    .description(
      "Mints with every numbering scheme in simulated worlds, each with one thing wrong, and counts exactly how many numbers were made " +
        "before, beside how many the theory expects. A repeat is a finding, no failure: the exit code is 0. It is 1 only where what was " +
        "seen can't be by the theory. docs/schemes.md says how to read it, and what it does not cover.",
    )
    .addOption(quickOption("--scheme <names...>", "only these schemes", nameList(schemeNamed)))
    .addOption(quickOption("--world <names...>", "only these worlds", nameList(worldOf)))
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
    .addHelpText(
      "after",
      () =>
        `\nWorlds:\n${labelled(WORLDS.map(({ name, title }) => [name, title] as const)).join("\n")}\n\n` +
        "Examples:\n  $ callnumber collisions\n  $ callnumber collisions --seed 1 --world clock-back-restart one-hash\n" +
        "  $ callnumber collisions --scheme random-base62-5 uuid --numbers 200,000",
    )
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
      const outcomes = json ? await played(play, coming, () => {}) : await printedAsPlayed(play, coming);
      if (json) printJson(asJson(play, outcomes));
      if (outcomes.some(({ plausible }) => !plausible)) running().exitCode = EXIT_DISAGREES;
    });
}

async function printedAsPlayed(play: Play, coming: Iterable<Outcome>): Promise<readonly Outcome[]> {
  const { nodes, numbers, perSecond, seed } = play;
  const circumstances = `${nodes} nodes, ${rateInWords(perSecond)}, ${grouped(numbers)} numbers of each scheme in each world.`;
  print(broken(`${circumstances} Seed ${seed}: --seed ${seed} plays the same again.`, lineWidth()).join("\n"));
  const outcomes = await played(play, coming, (ofWorld) => printPainted(`\n${worldTable(ofWorld)}`));
  for (const note of NOTES) print(`\n${broken(note, lineWidth()).join("\n")}`);
  return outcomes;
}

/** `onWorld` is told of each world when it is through. */
async function played(
  play: Play,
  coming: Iterable<Outcome>,
  onWorld: (outcomes: readonly [Outcome, ...Outcome[]]) => void,
): Promise<readonly Outcome[]> {
  const progress = progressLine();
  const outcomes: Outcome[] = [];
  const count = play.worlds.length * play.schemes.length;
  for (const outcome of coming) {
    outcomes.push(outcome);
    progress.say(`${outcome.world.name}: ${outcome.scheme.name}, ${outcomes.length} of ${count}`);
    // Readers that leave are heard between plays.
    await turn();
    if (outcomes.length % play.schemes.length > 0) continue;
    progress.clear();
    onWorld(outcomes.slice(-play.schemes.length) as [Outcome, ...Outcome[]]);
  }
  return outcomes;
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

function schemeNamed(name: string): Scheme {
  return schemeOf(name, SCHEMES);
}
