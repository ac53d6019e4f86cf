/** How many repeats there must be, or may be expected, by who made how many numbers when. What is seen is another matter. */
import { capacityOf } from "../field.js";
import { greatestOf, placedFields } from "../layout.js";
import type { Scheme } from "../scheme.js";
import { shapeOf } from "../shape.js";
import { expectedRepeats } from "./expected-repeats.js";
import type { Makings, Rule } from "./makings.js";

export interface Theory {
  /** Why: `none` where the scheme promises that there is no repeat, `overlap` where every number that two makers counted alike is one, `birthday` where chance alone decides. */
  readonly kind: "none" | "overlap" | "birthday";
  /** Repeats: exact for `none` and `overlap`, the mean for `birthday`. */
  readonly expected: number;
  /** So many repeats come together, if one does; 1 where each comes by itself. */
  readonly together: number;
}

export function theoryOf(scheme: Scheme, makings: Makings): Theory {
  return THEORIES[makings.rule](makings.cells, scheme);
}

type Cells = Makings["cells"];

const THEORIES: Readonly<Record<Rule, (cells: Cells, scheme: Scheme) => Theory>> = {
  "counted alike": (cells) => {
    let expected = 0;
    for (const makers of cells.values()) expected += madeAgain(makers.counts());
    return { kind: expected === 0 ? "none" : "overlap", expected, together: 1 };
  },

  "counted from anywhere": (cells, { fields }) => {
    const counted = fields.find(({ source }) => source.kind === "sequence");
    let pairCount = 0;
    let together = 0;
    for (const makers of cells.values()) {
      const counts = makers.counts();
      pairCount += (sum(counts) ** 2 - sum(counts.map((made) => made ** 2))) / 2;
      together += madeAgain(counts);
    }
    if (counted === undefined || pairCount === 0) return { kind: "none", expected: 0, together: 1 };
    return { kind: "birthday", expected: pairCount / Number(capacityOf(counted)), together };
  },

  drawn: (cells, { fields }) => {
    const { drawn } = shapeOf(fields, greatestOf(placedFields(fields)));
    let expected = 0;
    for (const [made, cellCount] of alike(cells)) expected += cellCount * expectedRepeats(drawn, made);
    return { kind: "birthday", expected, together: 1 };
  },
};

/** All but those of the maker that counted furthest. */
function madeAgain(counts: readonly number[]): number {
  return sum(counts) - Math.max(...counts);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, made) => total + made, 0);
}

/** How many cells have the same count of numbers. */
function alike(cells: Cells): ReadonlyMap<number, number> {
  const cellCounts = new Map<number, number>();
  for (const makers of cells.values()) {
    const made = sum(makers.counts());
    cellCounts.set(made, (cellCounts.get(made) ?? 0) + 1);
  }
  return cellCounts;
}
