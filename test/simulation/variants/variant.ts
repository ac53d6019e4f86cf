/**
 * A design with one of its defences taken away, or an old one put back: what the suite must catch. Each acts where the scripts stand,
 * inside the simulated server; everything else is the product's own code.
 */
import type { Focus } from "../history.js";
import type { Refusal, StepCommand, StepContext, Store, Written } from "../product.js";
import type { PromiseName } from "../tally.js";

type Decide = (situation: StepContext, command: StepCommand) => Written | Refusal;

export interface Variant {
  readonly name: string;
  /** What is wrong with it, as a sentence. */
  readonly fault: string;
  /** The promise that it breaks; undefined for the guard as it is. */
  readonly breaks?: PromiseName;
  /** Where that shows most often; default everywhere. */
  readonly focus?: Focus;
  /** In place of the real decision, which it may ask. */
  readonly decide?: Decide;
  /** What the server tells as its epoch. */
  readonly epochOf?: (epoch: string) => string;
  /** Nobody waits for the quorum, and every answer says that it was reached. */
  readonly pretendsQuorum?: boolean;
  /** What `move` sees of the store that it moves to; `oldStoreId` is the id of the one that it moves from. */
  readonly newPlaceOf?: (store: Store, oldStoreId: () => string) => Store;
  /** A server that has heard of a later claim never follows one that has not: for variants that would fall to that first. */
  readonly sparesReturns?: boolean;
}

/** The guard as it is. */
export const THE_GUARD: Variant = { name: "none", fault: "nothing: the guard as it is" };
