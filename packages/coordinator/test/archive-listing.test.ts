/** Which files cover a run, compared with a plain search, for listings with gaps and files that overlap. */
import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { ArchiveListing } from "../src/ledger-archive/archive-listing.js";
import { nameOf } from "../src/ledger-archive/archive-name.js";

const ranges = fc.array(fc.tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 20 })), { maxLength: 12 });

test("files that cover a run, and the first run that none covers, are those that a plain search finds", () => {
  const property = fc.property(ranges, (drawn) => {
    const names = drawn.map(([first, length], at) =>
      nameOf({ kind: "segment", first, last: first + length }, Buffer.of(at)),
    );
    const listing = new ArchiveListing(names.map(({ name }) => name));
    const covers = (id: number) => names.filter(({ first, last }) => first <= id && id <= last);
    for (let id = 0; id <= 82; id++) {
      expect(new Set(listing.covering(id).map(({ name }) => name))).toEqual(
        new Set(covers(id).map(({ name }) => name)),
      );
    }
    for (const [first, last] of [
      [1, 81],
      [1, 30],
      [20, 40],
      [40, 39],
      [61, 61],
    ] as const) {
      const ids = Array.from({ length: Math.max(last - first + 1, 0) }, (_, at) => first + at);
      expect(listing.gapWithin(first, last)).toBe(ids.find((id) => covers(id).length === 0));
    }
  });
  fc.assert(property, { seed: inject("seed"), numRuns: 500 });
});
