/** What the simulation must catch: every lease is refused. */
import { decide, type Refusal } from "../product.js";
import type { Variant } from "./variant.js";

/** Safe, and useless: no run is ever leased, so none is leased twice. */
export const REFUSE_ALWAYS: Variant = {
  name: "refuse-always",
  fault: "every lease is refused",
  breaks: "after healing a lease succeeds",
  decide: (situation, command) => (command.step === "lease" ? refusal("REPLICA") : decide(situation, command)),
};

/** The same, with the one refusal that is an honest end, told before the end. */
export const END_ALWAYS: Variant = {
  name: "end-always",
  fault: "every lease is refused because the run space is said to be at its end",
  breaks: "after healing a lease succeeds",
  decide: (situation, command) => (command.step === "lease" ? refusal("EXHAUSTED") : decide(situation, command)),
};

function refusal(word: Refusal["word"]): Refusal {
  return { word, detail: "0" };
}
