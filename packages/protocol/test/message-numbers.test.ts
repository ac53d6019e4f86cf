/** Which digits of a message get separators: amounts, and nothing that is a name or is copied. */
import { expect, test } from "vitest";
import { formatCount, withSeparators } from "../src/api.js";

test.each([
  ["65735 runs were leased", "65,735 runs were leased"],
  ["1073741823 runs are left. 999 leases", "1,073,741,823 runs are left. 999 leases"],
  ["skipped (1000 runs), of 20000.", "skipped (1,000 runs), of 20,000."],
  ["run `callnumber recover --nodes 65735`, 65735 leases", "run `callnumber recover --nodes 65735`, 65,735 leases"],
])("the message %j is shown as %j", (message, shown) => {
  expect(withSeparators(message)).toBe(shown);
});

test.each([
  "store id 519e69f5-3c1d-4f6e-9a6b-2f30d86b1c55.1.1795250506950.2",
  "at 2026-11-21T21:30:59.542Z, the year 2086",
  "Redis at 127.0.0.1:39158, redis://h:7300/15000, port 7300",
  'leased to 20250101 (mail-1000, pid 93311), "20000", shard=10000',
  "run 65735, runs 65536-65740, from run 3 to run 65733, runs up to 65735, run 1/65556",
  "already 20,000 runs, 1000.5 ms",
  "its mode is 0604",
])("the message %j has only names, and is shown as it is", (message) => {
  expect(withSeparators(message)).toBe(message);
});

test.each([
  [0, "0"],
  [-1, "-1"],
  [999, "999"],
  [1_000, "1,000"],
  [16_384, "16,384"],
  [-123_456, "-123,456"],
  [1_073_741_823, "1,073,741,823"],
  [12_345.6789, "12,345.6789"],
  [2n ** 64n, "18,446,744,073,709,551,616"],
])("formatCount(%s) is %s", (count, shown) => {
  expect(formatCount(count)).toBe(shown);
});
