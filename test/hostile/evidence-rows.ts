/** Evidence that is forged, foreign, expired or shown again: a lease or a report that claims what is not so. */
import { createHmac } from "node:crypto";
import { bodyIn, type Evidence, leaseIn, leaseOfEarlierStore, OTHER_NAMESPACE } from "./genuine-evidence.js";
import { type Received, sendBytes } from "./raw-client.js";
import { leaseBody, type Row, request, rightLease, rowOf, type Target } from "./row.js";

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

/**
 * Evidence that a store of ours has really given, where it is worth nothing: what it claims lies beyond the mark of `main`, so that it would
 * move the mark, or end all leasing, if it were believed.
 */
const GENUINE: readonly [input: string, evidenceFor: (target: Target) => Promise<Evidence>, grantedRuns: number][] = [
  ["a genuine receipt of another namespace", (target) => leaseIn(target, OTHER_NAMESPACE), 0],
  ["a genuine receipt of a store that is lost", () => leaseOfEarlierStore(), 0],
  [
    "a genuine receipt, for another run than its own",
    async (target) => ({ ...(await leaseIn(target, "main")), lastRun: BEYOND }),
    1,
  ],
  [
    "a genuine receipt with one character changed",
    async (target) => {
      const { lastRun, receipt } = await leaseIn(target, OTHER_NAMESPACE);
      return { lastRun, receipt: receipt.replace(/^./, (first) => (first === "A" ? "B" : "A")) };
    },
    0,
  ],
];

const CLOSING = "\r\nConnection: close\r\n\r\n";
const asked = (target: Target, body: string) => request(target, { body });
const inMain = (target: Target, run: number, report: object) =>
  request(target, { path: `/v1/namespaces/main/runs/${run}/report`, body: JSON.stringify(report) });

/**
 * Requests that were right once, sent again. Each lease takes runs of its own, whatever it repeats: an answer that was kept could be given
 * to two callers. The runs show in the mark, and are counted as granted.
 */
const REPLAYED: readonly [input: string, statuses: number[], grantedRuns: number, act: Row["act"]][] = [
  [
    "the bytes of a lease again, on another connection",
    [201],
    2,
    async (target) => {
      const bytes = asked(target, leaseBody());
      await sendBytes(target, [bytes]);
      return await sendBytes(target, [bytes]);
    },
  ],
  [
    "the bytes of a lease again, on the same connection",
    [201, 201],
    2,
    async (target) => {
      const bytes = request(target, { body: leaseBody(), keepsAlive: true });
      return await sendBytes(target, [bytes, 20, bytes.toString("latin1").replace("\r\n\r\n", CLOSING)]);
    },
  ],
  [
    "the nonce of another lease, for more runs and by another holder",
    [201],
    3,
    async (target) => {
      const right = rightLease();
      await sendBytes(target, [asked(target, JSON.stringify(right))]);
      const other = { ...right, runCount: 2, holder: { ...right.holder, name: "another" } };
      return await sendBytes(target, [asked(target, JSON.stringify(other))]);
    },
  ],
  [
    "a receipt that another holder has shown before",
    [201],
    2,
    async (target) => await sendBytes(target, [asked(target, leaseBody(await leaseIn(target, "main")))]),
  ],
  [
    "a lease that was sent a day ago",
    [201],
    1,
    async (target) => await sendBytes(target, [asked(target, leaseBody({ sentAtMs: Date.now() - 24 * HOUR_MS }))]),
  ],
  [
    "the nonce of another namespace's run, for the run of the same number",
    [404],
    0,
    async (target) => {
      const right = rightLease();
      const { lastRun } = await leaseIn(target, OTHER_NAMESPACE, right);
      return await sendBytes(target, [
        inMain(target, lastRun, { nonce: right.nonce, lastSequence: 1, state: "closed" }),
      ]);
    },
  ],
  ["an earlier report again, after the run was said to be used up", [200], 1, reportedAgain],
];

export const EVIDENCE_ROWS: readonly Row[] = [
  ...LEASES.map(([input, changed, status = 400]) =>
    rowOf("evidence", input, status, (target) => request(target, { body: leaseBody(changed()) })),
  ),
  ...GENUINE.map(([input, evidenceFor, grantedRuns]) =>
    evidenceRow(input, [400], grantedRuns, async (target) =>
      sendBytes(target, [asked(target, leaseBody(await evidenceFor(target)))]),
    ),
  ),
  ...REPLAYED.map(([input, statuses, grantedRuns, act]) => evidenceRow(input, statuses, grantedRuns, act)),
  ...REPORTS.map(([input, run, report, status = 400]) =>
    rowOf("evidence", input, status, (target) =>
      request(target, { path: `/v1/namespaces/main/runs/${run}/report`, body: JSON.stringify(report) }),
    ),
  ),
];

function evidenceRow(input: string, statuses: readonly number[], grantedRuns: number, act: Row["act"]): Row {
  return { family: "evidence", input, statuses, grantedRuns, act };
}

/** Told 200, as it is no fault of its sender, who may not have heard the first answer; what is known of the run must stay. */
async function reportedAgain(target: Target): Promise<Received> {
  const right = rightLease();
  const { lastRun: run } = await leaseIn(target, "main", right);
  const early = inMain(target, run, { nonce: right.nonce, lastSequence: 7, state: "open" });
  const usedUp = inMain(target, run, { nonce: right.nonce, lastSequence: 16_383, state: "exhausted" });
  for (const bytes of [early, usedUp]) await sendBytes(target, [bytes]);
  const answer = await sendBytes(target, [early]);
  const { text } = await sendBytes(target, [request(target, { path: `/v1/namespaces/main/runs/${run}` })]);
  if (!text.includes('"state":"exhausted"'))
    throw new Error(`an earlier report has undone a later one: ${bodyIn(text)}`);
  return answer;
}
