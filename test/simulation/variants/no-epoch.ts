/** What the simulation must catch: the epoch is always the same, whatever happened to the server. */
import type { Variant } from "./variant.js";

/** The record and the server's life are not compared: a restart, a promotion, a restored disk are not noticed. */
export const NO_EPOCH: Variant = {
  name: "no-epoch",
  fault: "the epoch is always the same, whatever happened to the server",
  breaks: "no run is leased twice",
  epochOf: () => "always",
};
