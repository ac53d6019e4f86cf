/** Evidence that is forged, foreign or expired: a lease or a report that claims what is not so. */
import { createHmac } from "node:crypto";
import { leaseBody, type Row, request, rowOf } from "./row.js";

const BEYOND = 1_000_000;
const forgedReceipt = createHmac("sha256", "a key of nobody").update("main").digest("base64url");
/** A shape that fits: 43 characters, all of one bit. */
const emptyReceipt = "A".repeat(43);
const HOUR_MS = 3_600_000;

const LEASES: readonly [input: string, changed: () => object, status?: number][] = [
  ["a run beyond the mark, and no receipt", () => ({ lastRun: BEYOND })],
  ["a run beyond the mark, and a forged receipt", () => ({ lastRun: BEYOND, receipt: forgedReceipt })],
  ["a run beyond the mark, and a receipt of zeros", () => ({ lastRun: BEYOND, receipt: emptyReceipt })],
  ["a run of a later version, and a forged receipt", () => ({ lastRun: 7 * 2 ** 30 + 1, receipt: forgedReceipt })],
  ["the last run of all", () => ({ lastRun: 2 ** 33 - 1, receipt: forgedReceipt })],
  ["a run beyond all", () => ({ lastRun: 2 ** 33 })],
  ["a run before all", () => ({ lastRun: -1 })],
  ["a run as a text", () => ({ lastRun: "1" })],
  ["half a run", () => ({ lastRun: 0.5 })],
  ["a receipt that is too short", () => ({ lastRun: 0, receipt: emptyReceipt.slice(1) })],
  ["a receipt that is too long", () => ({ lastRun: 0, receipt: `${emptyReceipt}A` })],
  ["a receipt with a slash", () => ({ lastRun: 0, receipt: `/${emptyReceipt.slice(1)}` })],
  ["a receipt that is a number", () => ({ lastRun: 0, receipt: 1 })],
  ["a clock an hour ahead", () => ({ sentAtMs: Date.now() + HOUR_MS }), 503],
  ["a clock at the end of time", () => ({ sentAtMs: Number.MAX_SAFE_INTEGER }), 503],
  ["a clock before all time", () => ({ sentAtMs: -1 })],
  ["a clock beyond all numbers", () => ({ sentAtMs: 1e300 })],
];

const nonce = "a".repeat(32);
const REPORTS: readonly [input: string, run: number, report: object, status?: number][] = [
  ["a report in another holder's name", 1, { nonce, lastSequence: 1, state: "closed" }, 409],
  ["a report on a run of nobody", BEYOND, { nonce, lastSequence: 1, state: "open" }, 404],
  ["a report beyond the last sequence", 1, { nonce, lastSequence: 16_384, state: "open" }],
  ["a report that ends a run too early", 1, { nonce, lastSequence: 1, state: "exhausted" }],
  ["a report that a run is burnt", 1, { nonce, lastSequence: null, state: "burnt" }],
  ["a report without a nonce", 1, { lastSequence: 1, state: "open" }],
  ["a report with more in it", 1, { nonce, lastSequence: 1, state: "open", force: true }],
];

export const EVIDENCE_ROWS: readonly Row[] = [
  ...LEASES.map(([input, changed, status = 400]) =>
    rowOf("evidence", input, status, (target) => request(target, { body: leaseBody(changed()) })),
  ),
  ...REPORTS.map(([input, run, report, status = 400]) =>
    rowOf("evidence", input, status, (target) =>
      request(target, { path: `/v1/namespaces/main/runs/${run}/report`, body: JSON.stringify(report) }),
    ),
  ),
];
