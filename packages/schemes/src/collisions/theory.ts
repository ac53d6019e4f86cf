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
    for (const makers of cells.values()) expected += sum(makers) - Math.max(...makers.values());
    return { kind: expected === 0 ? "none" : "overlap", expected, together: 1 };
  },

  "counted from anywhere": (cells, { fields }) => {
    const counted = fields.find(({ source }) => source.kind === "sequence");
    let pairCount = 0;
    let together = 0;
    for (const makers of cells.values()) {
      const squares = [...makers.values()].reduce((squared, made) => squared + made ** 2, 0);
      pairCount += (sum(makers) ** 2 - squares) / 2;
      together += sum(makers) - Math.max(...makers.values());
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

function sum(makers: ReadonlyMap<string, number>): number {
  let total = 0;
  for (const made of makers.values()) total += made;
  return total;
}

/** How many cells have the same count of numbers. */
function alike(cells: Cells): ReadonlyMap<number, number> {
  const cellCounts = new Map<number, number>();
  for (const makers of cells.values()) cellCounts.set(sum(makers), (cellCounts.get(sum(makers)) ?? 0) + 1);
  return cellCounts;
}
