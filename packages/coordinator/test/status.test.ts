/** What a status has of the record and of the newest lease. */
import { RUN_MAX } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { statusOf } from "../src/status/status.js";
import { leaseOf, NOW_MS, recordOf } from "./ledger-for-capacity.js";

test("the status counts skipped runs as used, and has the time of the newest lease, not of the last heartbeat", () => {
  const record = { ...recordOf({ firstRun: 5, highWaterMark: 1_000 }), changedAtMs: NOW_MS };
  expect(statusOf(record, leaseOf({ firstRun: 7, agoMs: 10 }))).toMatchObject({
    lastLeaseAtMs: NOW_MS - 10,
    runsUsed: 996,
    runsLeft: RUN_MAX - 1_000,
  });
});

test("the status has no time of a lease while nothing was leased", () => {
  expect(statusOf(recordOf({ firstRun: 5, highWaterMark: 4 }), undefined)).toMatchObject({
    lastLeaseAtMs: null,
    runsUsed: 0,
    runsLeft: RUN_MAX - 4,
  });
});
