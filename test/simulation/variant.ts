/** What a variant of the guard may replace. Each acts where coordinators decide, or where a server compares. */
import type { Focus } from "./history.js";
import type { PromiseName } from "./importer.js";
import type { Bounds, Change, Decide, Expected, NamespaceState, Observed, Store } from "./product.js";

type Apply = (now: Observed, expected: Expected, change: Change) => NamespaceState | undefined;

export interface Variant {
  readonly name: string;
  /** What is wrong with it, as a sentence. */
  readonly fault: string;
  /** The promise that it breaks. Default: no run is leased twice. */
  readonly breaks?: PromiseName;
  /** Where that shows most often; default everywhere. */
  readonly focus?: Focus;
  /** How coordinators and operator decide, in place of the real decision, which it may ask. */
  readonly decide?: Decide;
  /** How a server compares, in place of the real comparison, which it may ask. */
  readonly apply?: Apply;
  /** What the server reports as its epoch. */
  readonly epochOf?: (epoch: string) => string;
  /** In place of the bounds of the coordinators. */
  readonly bounds?: Partial<Bounds>;
  /** Reads are answered by what the store returned last, until a change is made: a refusal is believed that was decided on that. */
  readonly believesStale?: boolean;
  /** A record that was edited is written over: without that, it could do no further harm. */
  readonly believesEdits?: boolean;
  /** No step waits for the quorum, and every answer says that it was reached. */
  readonly pretendsQuorum?: boolean;
  /** What the server is after the quorum is not looked at: every answer says that it is what it was. */
  readonly pretendsSameServer?: boolean;
  /** What `move` sees of the store that it moves to; `oldStoreId` is the id of the one that it moves from. */
  readonly newPlaceOf?: (store: Store, oldStoreId: () => string) => Store;
  /** The operator's checkpoint directory does not keep that a store was moved. */
  readonly forgetsMoves?: boolean;
  /** A server that has heard of a later claim never follows one that has not: for variants that would fall to that first. */
  readonly sparesReturns?: boolean;
}
