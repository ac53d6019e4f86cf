/** Collisions, seen: every scheme played in worlds where something is wrong, its repeats counted beside the theory. */
export { NODES_MAX, type Outcome, outcomesOf, type Play } from "./play.js";
export type { Theory } from "./theory.js";
export { WORLDS, type World } from "./worlds.js";
