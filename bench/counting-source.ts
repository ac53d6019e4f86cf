/** A coordinator in the process of a benchmark that only counts runs: what is measured is the client. */
import { randomBytes } from "node:crypto";
import type { LeaseRequest } from "@callnumber/protocol/api";

/** `delay`: how long each lease takes. Default: no time. */
export function countingSource(delay: () => Promise<unknown> | undefined = () => undefined) {
  const proof = randomBytes(32).toString("base64url");
  let highWaterMark = 0;
  return {
    leaseCount: 0,
    async lease(namespace: string, { runCount, nonce }: LeaseRequest) {
      this.leaseCount++;
      const firstRun = highWaterMark + 1;
      highWaterMark += runCount;
      await delay();
      return { namespace, storeId: "bench", version: 0, firstRun, runCount, leasedAtMs: 1, nonce, proof };
    },
    async report() {},
  };
}
