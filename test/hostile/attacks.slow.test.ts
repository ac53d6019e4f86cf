/** Slow, silent, deaf, greedy and dying callers against a real coordinator, all at the same time: what they held comes back, and nobody else feels it. */
import { expect, test } from "vitest";
import { ATTACKS, attack, together } from "./attacks.js";
import { CoordinatorBeside } from "./coordinator-beside.js";
import { Neighbour } from "./neighbour.js";

const COUNT = 100;
/** More than they all have: only the time limits end them. */
const CONNECTIONS = 1_500;

test("slow-loris, floods and dying callers: descriptors come back, no run is burnt, an importer goes on leasing", async () => {
  const coordinator = await CoordinatorBeside.start({ share: 1, parameters: ["--connections", String(CONNECTIONS)] });
  const neighbour = new Neighbour(coordinator.target);
  const { descriptors, neighbourLeases } = await attack(together(ATTACKS), coordinator, neighbour, COUNT);
  const [before, most] = descriptors;
  expect(most).toBeGreaterThan(before + 4 * COUNT);
  expect(neighbourLeases).toBeGreaterThan(0);
});
