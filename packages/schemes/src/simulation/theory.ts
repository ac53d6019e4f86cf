/**
 * How many repeats must or may occur, computed from which process generated how many numbers when: from the clocks, counters and processes of the
 * simulation, never from a number, so that a bug in a scheme can't hide in the theory.
 */
import { expm1Less, log1pLess } from "../birthday.js";
import { capacityOf, type Field, fieldsOfKind, nodeFields, nodeSourcesOf, type SequenceScope } from "../fields.js";
import { hashOfMacs } from "../generating.js";
import type { NodeIdentity } from "../scheme.js";
import { drawnOf, type ValueClass } from "../shape.js";
import type { SimulatedNode } from "./nodes.js";

export interface Expectation {
  /**
   * `none`: the scheme promises no repeat. `overlap`: every number that two processes counted to is one. `birthday`: only chance decides.
   */
  readonly kind: "none" | "overlap" | "birthday";
  /** Repeats: exact for `none` and `overlap`, the mean for `birthday`. */
  readonly expected: number;
  /** So many repeats come together, if one does; 1 where each comes alone. */
  readonly together: number;
}

/** A cell holds the numbers that differ only in what is counted or drawn. */
interface Counting {
  /** Names the cell of a number that this node made, and what counted it: a process, a disk, one request of a counter. */
  readonly keyOf: (node: SimulatedNode, identity: string, unit: number) => readonly [cell: string, counter: string];
  /** What to expect where each counter generated so many numbers of each cell. */
  readonly expectation: (cells: Cells, fields: readonly Field[]) => Expectation;
}

/** How many numbers each counter made, for each cell. */
type Cells = readonly (readonly number[])[];

export function repeatTheory(fields: readonly Field[]) {
  const { keyOf, expectation } = COUNTINGS[countedWithin(fields)];
  const unitOf = unitReader(fields);
  const identities = new Map<NodeIdentity, string>();
  /** How many numbers were made, by cell and what counted. Most cells have one counter: a map of maps would be several times as large. */
  const made = new Map<string, number>();
  return {
    /** Records a number that this node made just now. */
    add: (node: SimulatedNode): void => {
      const identity = identities.get(node.identity) ?? identityIn(fields, node.identity);
      identities.set(node.identity, identity);
      const key = keyOf(node, identity, unitOf(node)).join(SEPARATOR);
      made.set(key, (made.get(key) ?? 0) + 1);
    },
    /** Returns what to expect from all numbers. */
    expectation: (): Expectation => expectation(countsByCell(made), fields),
  };
}

/** Each process counts from the same first value, so where two have counted, the shorter count is made twice. */
function sameStart(cells: Cells): Expectation {
  const expected = sum(cells.map(madeAgain));
  return { kind: expected === 0 ? "none" : "overlap", expected, together: 1 };
}

/** Each process counts from a random value of a ring. */
function randomStart(cells: Cells, fields: readonly Field[]): Expectation {
  const pairCount = sum(cells.map((counts) => (sum(counts) ** 2 - sum(counts.map((made) => made ** 2))) / 2));
  if (pairCount === 0) return { kind: "none", expected: 0, together: 1 };
  const ring = Number(capacityOf(...fieldsOfKind(fields, "sequence")));
  return { kind: "birthday", expected: pairCount / ring, together: sum(cells.map(madeAgain)) };
}

function drawn(cells: Cells, fields: readonly Field[]): Expectation {
  const classes = drawnOf(fields);
  const expected = sum(cells.map((counts) => expectedRepeats(classes, sum(counts))));
  return { kind: "birthday", expected, together: 1 };
}

function countsByCell(made: ReadonlyMap<string, number>): Cells {
  const cells = new Map<string, number[]>();
  for (const [key, count] of made) {
    const cell = key.slice(0, key.indexOf(SEPARATOR));
    cells.set(cell, [...(cells.get(cell) ?? []), count]);
  }
  return [...cells.values()];
}

const SEPARATOR = "|";

const byProcess: Counting["keyOf"] = ({ index, process }, identity, unit) => [
  `${identity} ${unit}`,
  `${index} ${process}`,
];

const COUNTINGS: Readonly<Record<Exclude<SequenceScope, "run"> | "counter" | "nothing", Counting>> = {
  "clock unit": { keyOf: byProcess, expectation: sameStart },
  process: { keyOf: byProcess, expectation: randomStart },
  kept: { keyOf: ({ index, disks }, identity) => [identity, `${index} ${disks}`], expectation: sameStart },
  /** A number or a run of the central counter: counted alike if it is the same one, by each request that got it. */
  counter: {
    keyOf: ({ counted }, identity) => [`${identity} ${counted?.value}`, `${counted?.request}`],
    expectation: sameStart,
  },
  nothing: { keyOf: (_, identity, unit) => [`${identity} ${unit}`, ""], expectation: drawn },
};

function countedWithin(fields: readonly Field[]): keyof typeof COUNTINGS {
  if (fieldsOfKind(fields, "counter").length > 0) return "counter";
  const within = fieldsOfKind(fields, "sequence")[0]?.source.within;
  return within === undefined || within === "run" ? "nothing" : within;
}

function unitReader(fields: readonly Field[]): (node: SimulatedNode) => number {
  const [clock] = fieldsOfKind(fields, "clock");
  if (clock === undefined) return () => 0;
  const { epochMs, unitMs } = clock.source;
  return ({ readMs }) => Math.floor((readMs - epochMs) / unitMs);
}

function identityIn(fields: readonly Field[], { given, server, pid, macs }: NodeIdentity): string {
  const numbers = { given, server, pid, "mac hash": hashOfMacs(macs) };
  return nodeSourcesOf(fields)
    .map((from) => BigInt(numbers[from]) % capacityOf(...nodeFields(fields, from)))
    .join("/");
}

/** All but those of the counter that counted furthest. */
function madeAgain(counts: readonly number[]): number {
  return sum(counts) - Math.max(...counts);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** The mean of how many of `drawn` values were drawn before: the draws less the different values among them. Exact to the digits of a double. */
export function expectedRepeats(classes: readonly ValueClass[], drawn: number): number {
  return sum(classes.map(({ count, share }) => count * repeatsOfOne(share, drawn)));
}

/** Of one value: how often it is drawn, less the chance that it is drawn at all; np - 1 + (1-p)^n. */
function repeatsOfOne(share: number, drawn: number): number {
  if (share === 1) return Math.max(0, drawn - 1);
  return expm1Less(drawn * Math.log1p(-share)) + drawn * log1pLess(-share);
}

/** Further away is rarer than about one in a million, whatever the mean. */
const STANDARD_DEVIATIONS_MAX = 5;

/**
 * Whether so many repeats can occur if the theory is right. Where it is not certain, by Chernoff's bound on how far a count of rare events
 * strays from its mean, which is e^(-d²/2) for d standard deviations, and right for few events, too.
 */
export function isPlausible(repeats: number, { kind, expected, together }: Expectation): boolean {
  if (kind !== "birthday") return repeats === expected;
  const seen = repeats / together;
  const mean = expected / together;
  const exponent = seen === 0 ? mean : seen * Math.log(seen / mean) - seen + mean;
  return exponent <= STANDARD_DEVIATIONS_MAX ** 2 / 2;
}
