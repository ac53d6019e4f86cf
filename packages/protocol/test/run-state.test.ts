import { expect, test } from "vitest";
import { type NotedState, runStateIn } from "../src/api.js";
import type { LedgerEntry } from "../src/schemas.js";

const HOLDER = { name: "importer", host: "mail-1", pid: 7, labels: {} };

/** Of runs 5 to 7, with a report about run 6. */
function leaseWith(state: NotedState, lastSequence: number | null): LedgerEntry {
  const progress = { run: 6, lastSequence, state, reportedAtMs: 2 };
  return {
    version: 0,
    firstRun: 5,
    runCount: 3,
    leasedAtMs: 1,
    holder: HOLDER,
    coordinator: "a",
    nonce: "n",
    progress,
  };
}

const ALL = { state: "exhausted", lastSequence: 16_383 };
const NONE = { state: "open", lastSequence: null };
const CLOSED = { state: "closed", lastSequence: null };
const DISCARDED = { state: "discarded", lastSequence: null };

test.each<[NotedState, number | null, readonly object[]]>([
  ["open", 99, [ALL, { state: "open", lastSequence: 99 }, NONE]],
  ["exhausted", 16_383, [ALL, ALL, NONE]],
  ["closed", 99, [ALL, { state: "closed", lastSequence: 99 }, CLOSED]],
  ["discarded", null, [DISCARDED, DISCARDED, DISCARDED]],
])("runStateIn shows each run of a lease whose middle run was reported as %s", (state, lastSequence, expected) => {
  const lease = leaseWith(state, lastSequence);
  expect([5, 6, 7].map((run) => runStateIn(lease, run))).toEqual(expected);
});

test("runStateIn shows a run as unreported when its lease has no report", () => {
  expect(runStateIn({ ...leaseWith("open", 1), progress: null }, 5)).toEqual({
    state: "unreported",
    lastSequence: null,
  });
});
