/**
 * The comparison, in three tables that each fit a terminal of 80 columns: what a number is, what it bears, and what a reader and a
 * mishap make of it. Every figure comes from the facts of a scheme. On a narrower terminal columns are left out: half a figure says nothing.
 */
import type { Facts, Scheme } from "@callnumber/schemes";
import { chanceInWords, countInWords, spanInWords } from "../figures.js";
import { instant } from "../print.js";
import type { Column } from "../table.js";
import type { Load } from "./load.js";

export interface SchemeTable {
  readonly heading: string;
  readonly columns: readonly Column<Scheme>[];
}

/** A repeat that is likelier than this is one that happens. */
const CHANCE_TO_WORRY = 1e-6;
/** As wide as those of a UUID; so the points stand under each other. */
const BITS_WIDTH = 5;
const NAME: Column<Scheme> = { heading: "SCHEME", cellOf: ({ name }) => name, expendability: 0 };

export function schemeTables(load: Load, loadText: string): readonly SchemeTable[] {
  return [
    { heading: "What a number is, and what those who make them must ask for", columns: NUMBER_COLUMNS },
    { heading: `What it bears: ${loadText}`, columns: loadColumns(load) },
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

/** A year of five digits is no date that anybody knows, and a `Date` ends with the year 275760. */
export function dayOf(timeMs: number): string {
  const date = new Date(timeMs);
  if (Number.isNaN(date.getTime())) return "beyond every calendar";
  return date.getUTCFullYear() > 9_999
    ? `the year ${date.getUTCFullYear().toLocaleString("en-US")}`
    : instant(timeMs).slice(0, 10);
}

/** `clock goes back +1`: `schemes NAME` has the others. */
function firstFailure({ facts: { failures } }: Scheme): string {
  const [first = "", ...others] = failures;
  return others.length === 0 ? first : `${first} +${others.length}`;
}
