/** Responses that a young store has no reason to send: alarms, many holders, a namespace whose store was emptied. */
import type { CapacityResponse, NamespacesResponse } from "@callnumber/protocol/schemas";
import type { Page } from "playwright-core";

const STORE_ID = "519e69f5-3c1d-4f6e-9a6b-2f30d86b1c55.1.1795250506950.2";

export async function respondWithStoppedNamespace(page: Page, nowMs = Date.now()): Promise<void> {
  const emptied =
    'namespace "lists" is missing, but runs up to 65735 were leased or skipped. Nothing is leased. Restore the newest backup ' +
    `of the store. Without one, run \`callnumber recover --store STORE_URL --namespace lists --store-id ${STORE_ID} --min-run 0/65735\` (on SQLite, stop the coordinator first)`;
  const response: NamespacesResponse = {
    store: "redis",
    coordinator: "mail-1",
    release: "0.1.0",
    namespaces: [
      {
        namespace: "lists",
        record: null,
        guard: {
          state: "stopped",
          code: "namespace_lost",
          reason: null,
          sinceMs: nowMs - 900_000,
          explanation: emptied,
        },
      },
      {
        namespace: "main",
        record: {
          storeId: STORE_ID,
          version: 0,
          firstRun: 1,
          highWaterMark: 120_034,
          runsUsed: 120_034,
          runsLeft: 1_073_621_789,
          ceilingRunsPerSecond: 2,
        },
        guard: {
          state: "active",
          code: null,
          reason: null,
          sinceMs: nowMs - 90_000_000,
          explanation: "runs are leased",
        },
      },
    ],
  };
  await page.route("**/v1/namespaces", (route) => route.fulfill({ json: response }));
}

export async function respondWithAlarms(page: Page, nowMs = Date.now()): Promise<void> {
  const response: CapacityResponse = {
    namespace: "main",
    version: 0,
    highWaterMark: 869_730_877,
    runsUsed: 869_730_877,
    runsLeft: 204_010_946,
    usedShare: 0.81,
    callNumbersLeft: 204_010_946 * 16_384,
    headroomRuns: 12,
    ceilingRunsPerSecond: 2,
    ceilingEndsAtMs: nowMs + 102_005_473_000,
    rates: [],
    lookedAt: { leaseCount: 10_000, fromMs: nowMs - 86_400_000 },
    holders: [
      {
        name: "crash-looper",
        leaseCount: 41,
        runCount: 7_345,
        share: 0.7345,
        lastLeaseAtMs: nowMs - 1_000,
        isLive: true,
      },
      {
        name: "backfill",
        leaseCount: 41,
        runCount: 2_655,
        share: 0.2655,
        lastLeaseAtMs: nowMs - 40_000_000,
        isLive: false,
      },
    ],
    alarms: [
      {
        name: "runs_used_80",
        severity: "warning",
        explanation: "81 % of the runs of version 0 are used. Plan the next version now.",
      },
      {
        name: "holder_restarts",
        severity: "critical",
        explanation: "crash-looper took 73 % of all runs of the last day. Look whether it crashes and starts again.",
      },
    ],
  };
  await page.route("**/v1/namespaces/*/capacity", (route) => route.fulfill({ json: response }));
}

/** Leases over time that are worth a chart. */
export async function respondWithHistory(page: Page, nowMs = Date.now()): Promise<void> {
  await page.route("**/v1/namespaces/*/history*", (route) => {
    const windowMs = Number(new URL(route.request().url()).searchParams.get("windowMs"));
    const runs = Array.from({ length: 60 }, (_, index) =>
      Math.round(6 + 6 * Math.sin(index / 7) + ((index * 7919) % 5)),
    );
    return route.fulfill({ json: { namespace: "main", fromMs: nowMs - windowMs, stepMs: windowMs / 60, runs } });
  });
}
