/** What the simulation must catch: nobody waits for the other nodes, or looks how many have it. */
import type { Variant } from "./variant.js";

/** `WAIT` is not judged: a master alone on its side of a cut goes on leasing. */
export const NO_QUORUM: Variant = {
  name: "no-quorum",
  fault: "nobody waits for the other nodes, or looks how many have it",
  breaks: "no run is leased twice",
  pretendsQuorum: true,
};
