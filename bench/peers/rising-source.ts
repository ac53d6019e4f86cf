/** A coordinator in the same process that does nothing but lease rising runs: what is measured is the client. */
import { randomBytes } from "node:crypto";
import { type Client, createClient } from "@callnumber/client";
import type { LeaseRequest } from "@callnumber/protocol/wire";

const RECEIPT = randomBytes(32).toString("base64url");
/** More than a round uses: a loop that does not yield gets no lease. */
const SPARE_RUNS = 64;

/** Each client has a space of runs of its own. */
export function clientOfRisingRuns(): Client {
  let mark = 0;
  const source = {
    async lease(namespace: string, { runCount, nonce }: LeaseRequest) {
      const firstRun = mark + 1;
      mark += runCount;
      return { namespace, storeId: "bench", version: 0, firstRun, runCount, leasedAtMs: 1, nonce, receipt: RECEIPT };
    },
    async report() {},
  };
  return createClient({ source, holder: { name: "bench" }, spareRuns: SPARE_RUNS });
}
