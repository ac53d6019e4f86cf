/** Holders that lease all the time while faults happen, and every run that any of them was given: nothing is sampled. */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Lease } from "@callnumber/protocol/api";
import { expect } from "vitest";
import type { Coordinator } from "../src/coordinator.js";
import { CoordinatorError } from "../src/errors.js";
import type { Bounds } from "../src/guard/clocks.js";
import type { Log } from "../src/log.js";

/**
 * Less than what coordinators keep: faults then take seconds, not minutes. Eps is the half of theirs: it must cover a step that
 * waits for the server's turn on a machine that has other things to do (100 ms did not, once in some dozen whole runs).
 */
export const SHORT_BOUNDS: Bounds = { epsMs: 1_000, gapMs: 6_000, attendedMs: 6_000, heartbeatEveryMs: 100 };
/** The greatest, so that few wait for the line after a skip. */
export const RATE = 16;
const BETWEEN_LEASES_MS = 2;
const AFTER_REFUSAL_MS = 10;

export interface Crowd {
  /** Of all holders, as they came. */
  readonly leases: readonly Lease[];
  /** How often each namespace was refused with each code. */
  refusalsOf(namespace: string): Readonly<Record<string, number>>;
  /** Resolves when a holder of each of these namespaces (default: of all) was given runs at every coordinator, asked for after this call. */
  untilLeased(among?: readonly string[]): Promise<void>;
  /** Resolves when a holder of the namespace was refused with the code, asked after this call. */
  untilRefused(namespace: string, code: string): Promise<void>;
  /** Ends the leasing. Resolves when the last answer has come. */
  stop(): Promise<void>;
}

/** Two holders for each namespace at each coordinator. */
export function startCrowd(coordinators: readonly Coordinator[], namespaces: readonly string[]): Crowd {
  const leases: Lease[] = [];
  const refusals = new Map<string, Record<string, number>>(namespaces.map((namespace) => [namespace, {}]));
  const stopping = new AbortController();
  let failure: unknown;
  /** By holder: when it asked for what it was given last. */
  const askedAt = new Map<string, number>();

  async function hold(coordinator: Coordinator, namespace: string, name: string): Promise<void> {
    const holder = { name, host: "crowd", pid: 1, labels: {} };
    let last: Lease | undefined;
    while (!stopping.signal.aborted) {
      const at = performance.now();
      try {
        const lease = await coordinator.lease(namespace, { ...requestAfter(last), holder });
        expectAbove(lease, last);
        last = lease;
        leases.push(lease);
        askedAt.set(name, at);
        await delay(BETWEEN_LEASES_MS);
      } catch (error) {
        if (!(error instanceof CoordinatorError)) throw error;
        const counts = refusals.get(namespace) as Record<string, number>;
        counts[error.code] = (counts[error.code] ?? 0) + 1;
        await delay(AFTER_REFUSAL_MS);
      }
    }
  }

  const holders = coordinators.flatMap((coordinator, index) =>
    namespaces.flatMap((namespace) =>
      [1, 2].map((number) => ({ coordinator, namespace, name: `${namespace}-${index}-${number}` })),
    ),
  );
  const all = Promise.all(
    holders.map(({ coordinator, namespace, name }) =>
      hold(coordinator, namespace, name).catch((error: unknown) => {
        stopping.abort();
        failure = error;
      }),
    ),
  );
  async function until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      if (failure !== undefined) throw failure;
      await delay(AFTER_REFUSAL_MS);
    }
  }
  return {
    leases,
    refusalsOf: (namespace) => ({ ...refusals.get(namespace) }),
    async untilLeased(among = namespaces) {
      const since = performance.now();
      const awaited = coordinators.flatMap((_, index) => among.map((namespace) => `${namespace}-${index}-`));
      const isServed = (start: string) => [...askedAt].some(([name, at]) => name.startsWith(start) && at > since);
      await until(() => awaited.every(isServed));
    },
    async untilRefused(namespace, code) {
      const before = refusals.get(namespace)?.[code] ?? 0;
      // One that was asked before this call may still be refused after it, by each holder.
      await until(() => (refusals.get(namespace)?.[code] ?? 0) > before + 2 * coordinators.length);
    },
    async stop() {
      stopping.abort();
      await all;
      if (failure !== undefined) throw failure;
    },
  };
}

/** A log that is kept, for what must have happened. */
export function keptLog(): {
  readonly log: Log;
  readonly events: { event: string; fields: Record<string, unknown> }[];
} {
  const events: { event: string; fields: Record<string, unknown> }[] = [];
  const keep = (fields: object, event: string) => void events.push({ event, fields: { ...fields } });
  return { log: { debug: keep, info: keep, warn: keep, error: keep }, events };
}

/** Exact: every run of every lease is looked at. */
export function expectNoRunTwice(leases: readonly Lease[]): void {
  const seen = new Set<string>();
  const twice: string[] = [];
  for (const { namespace, version, firstRun, runCount } of leases) {
    for (let run = firstRun; run < firstRun + runCount; run++) {
      const name = `${namespace} ${version} ${run}`;
      if (seen.has(name)) twice.push(name);
      seen.add(name);
    }
  }
  expect(twice).toEqual([]);
}

/** The greatest run that any client received in a namespace; 0 for none. */
export function greatestRun(leases: readonly Lease[], namespace: string): number {
  const own = leases.filter((lease) => lease.namespace === namespace);
  return Math.max(0, ...own.map(({ firstRun, runCount }) => firstRun + runCount - 1));
}

export function requestAfter(last: Lease | undefined) {
  return {
    runCount: 1 + (last === undefined ? 0 : last.firstRun % 3),
    nonce: randomBytes(12).toString("base64url"),
    lastRun: last === undefined ? null : last.firstRun + last.runCount - 1,
    proof: last?.proof ?? null,
    sentAtMs: Date.now(),
  };
}

function expectAbove(lease: Lease, last: Lease | undefined): void {
  if (last !== undefined) expect(lease.firstRun).toBeGreaterThanOrEqual(last.firstRun + last.runCount);
}
