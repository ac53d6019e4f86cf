/** Stores that compare too little of what a change rests on, and a coordinator that believes what it has seen before. */
import { type Expected, type Observed, recordToWrite } from "./product.js";
import type { Variant } from "./variant.js";

export const WRITE_VARIANTS: readonly Variant[] = [
  /** A lease that was decided before a claim is written over the claim. */
  {
    name: "no-still-fields",
    fault: "a change does not compare the fields of the record that no lease changes",
    focus: { groups: ["rollbacks", "hosts", "stale"], setting: { isOnLine: false } },
    apply(now, expected, change) {
      if (expected.rising === undefined) return recordToWrite(now, expected, change);
      return recordToWrite(now, withFound(expected, { fields: now.keys.fields }), change);
    },
  },
  /** A lease that was decided before a rollback is added to a mark that was leased past before. */
  {
    name: "no-mark-min",
    fault: "a change does not compare the mark with what the coordinator remembers, nor with the ledger",
    focus: {
      kinds: ["lease", "lease", "moment", "putBack", "heartbeat"],
      setting: { serverCount: 1, hostCount: 3, isOnLine: false },
    },
    apply(now, expected, change) {
      const { rising } = expected;
      return recordToWrite(
        now,
        rising ? { ...expected, rising: { ...rising, markIdMin: 0, isLedgerReached: false } } : expected,
        change,
      );
    },
  },
  /** A lease that was decided in one life of the server is added in the next. */
  {
    name: "no-epoch-at-write",
    fault: "a change does not compare the epoch",
    focus: { groups: ["crashes", "hosts"], setting: { serverCount: 1, isOnLine: false } },
    apply(now, expected, change) {
      const { found } = expected;
      const server = { ...found.server, epoch: now.server.epoch };
      return recordToWrite(now, { ...expected, found: { ...found, server } }, change);
    },
  },
  /** A coordinator whose clock is ahead decides on what it has seen before, and the store's clock has no say. */
  {
    name: "no-time-window",
    fault: "a change does not compare the store's clock",
    breaks: "no run lies above the run ceiling",
    focus: {
      kinds: ["lease", "wait", "setServerClock", "setCoordinatorClock", "setClocksRight"],
      setting: { isOnLine: true, firstRun: 1 },
    },
    apply: (now, expected, change) =>
      recordToWrite(now, { ...expected, timeMinMs: -Infinity, timeMaxMs: Infinity }, change),
  },
  /** A lease that was decided on a lower mark is added to one on the line. */
  {
    name: "no-mark-max",
    fault: "a change does not compare the mark that it leaves with the run ceiling",
    breaks: "no run lies above the run ceiling",
    focus: {
      kinds: ["lease", "lease", "wait", "setServerClock", "setCoordinatorClock"],
      setting: { hostCount: 3, isOnLine: true, firstRun: 1 },
    },
    apply(now, expected, change) {
      const { rising } = expected;
      const unlimited = rising && { ...rising, highWaterMarkMax: Number.MAX_SAFE_INTEGER };
      return recordToWrite(now, { ...expected, rising: unlimited }, change);
    },
  },
  /** A coordinator that was refused once does not notice that the cause is gone. */
  {
    name: "believes-stale",
    fault: "a refusal is believed that was decided on a state of long ago",
    breaks: "after healing a lease succeeds",
    believesStale: true,
  },
  /** A confirm does not notice what was edited since it was decided. */
  {
    name: "checksum-only",
    fault: "a change that rests on the whole record compares nothing of it but its checksum",
    breaks: "a record that was edited is left to the operator",
    focus: { kinds: ["lease", "moment", "edit", "edit", "crash", "restartCoordinator"], setting: { isOnLine: false } },
    apply(now, expected, change) {
      if (expected.rising !== undefined) return recordToWrite(now, expected, change);
      const { k } = expected.found.keys.fields;
      const fields = { ...now.keys.fields };
      delete fields["k"];
      return recordToWrite(now, withFound(expected, { fields: k === undefined ? fields : { ...fields, k } }), change);
    },
  },
];

/** What a change rests on, with some of the keys replaced. */
export function withFound(expected: Expected, keys: Partial<Observed["keys"]>): Expected {
  const { found } = expected;
  return { ...expected, found: { ...found, keys: { ...found.keys, ...keys } } };
}
