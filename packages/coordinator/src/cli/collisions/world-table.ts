/**
 * What came of one world: a row for each scheme in which there is something to see, and the others in a sentence. Fits 80 columns, and
 * knows nothing of how it was played.
 */
import type { Outcome } from "@callnumber/schemes/collisions";
import { paintFor } from "../colours.js";
import { countInWords } from "../figures.js";
import { grouped } from "../print.js";
import { broken, lineWidth } from "../schemes/sentences.js";
import type { Column } from "../table.js";
import { terminalTable } from "../terminal-table.js";

/** So few repeats by chance are not worth a row. */
const SHOWN_FROM = 0.1;

/** @param outcomes of one world, not empty. */
export function worldTable(outcomes: readonly [Outcome, ...Outcome[]]): string {
  const [{ world }] = outcomes;
  const shown = outcomes.filter(hasSomethingToSee);
  const silent = outcomes.filter((outcome) => !hasSomethingToSee(outcome));
  const lines = shown.length === 0 ? [] : [...terminalTable(columnsFor(shown)).linesOf(shown), ""];
  return [
    paintFor(false)("bold", world.name),
    ...broken(world.title, lineWidth()),
    "",
    ...lines,
    ...named("no repeat, as promised:", silent.filter(isPromised)),
    ...named(
      "no repeat, and hardly one by chance:",
      silent.filter((outcome) => !isPromised(outcome)),
    ),
    ...shown.filter(({ plausible }) => !plausible).flatMap(disagreement),
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

function named(label: string, outcomes: readonly Outcome[]): readonly string[] {
  if (outcomes.length === 0) return [];
  return broken(`${label} ${outcomes.map(({ scheme: { name } }) => name).join(", ")}`, lineWidth());
}

function disagreement({ scheme, repeats, theory }: Outcome): readonly string[] {
  const words =
    `${scheme.name}: ${grouped(repeats)} seen beside ${countInWords(theory.expected)} expected is no chance. ` +
    "The scheme, the theory or this simulation is wrong";
  return broken(words, lineWidth()).map((line) => paintFor(false)("red", line));
}
