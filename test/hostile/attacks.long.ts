/** `npm run hostile`, its second half: each attack with thousands, twice, so that what is not given back shows as growth. */
import { expect, test } from "vitest";
import { ATTACKS, type AttackFigures, attack } from "./attacks.js";
import { CoordinatorBeside } from "./coordinator-beside.js";
import { Neighbour } from "./neighbour.js";

const COUNT = 2_000;
const ROUNDS = 2;
/** What a second round of 16,000 connections may add: the collector's moods. Kept, each would be more than four kilobytes. */
const GROWTH_KIB_MAX = 64 * 1024;

test("attacks leave nothing behind", async () => {
  const coordinator = await CoordinatorBeside.start({ share: 1 });
  const neighbour = new Neighbour(coordinator.target);
  const figures: AttackFigures[] = [];
  const memoryAfter: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (const one of ATTACKS) {
      const figure = await attack(one, coordinator, neighbour, COUNT);
      figures.push(figure);
      const [before, most, after] = figure.descriptors;
      const [memoryBefore, memory] = figure.memoryKib;
      console.log(
        `${one.name}: descriptors ${before}, at most ${most}, after ${after}; memory KiB ${memoryBefore}, after ${memory}; the neighbour leased ${figure.neighbourLeases}`,
      );
    }
    memoryAfter.push(coordinator.memoryKib);
  }
  const [first = 0, last = 0] = memoryAfter;
  expect(last - first).toBeLessThan(GROWTH_KIB_MAX);
  expect(figures).toHaveLength(ROUNDS * ATTACKS.length);
});
