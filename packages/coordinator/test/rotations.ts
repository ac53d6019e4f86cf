/** Stores whose ledger is rotated, for tests: small segments, no waiting, and what the whole ledger should be beside it. */
import { randomUUID } from "node:crypto";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { expect } from "vitest";
import { lastLedgerIdOf } from "../src/lease-identity.js";
import { Ledger } from "../src/ledger.js";
import { type ArchiveDisk, NODE_DISK } from "../src/ledger-archive/archive-disk.js";
import { LedgerArchive } from "../src/ledger-archive/ledger-archive.js";
import { LedgerRotation, type LedgerRotationOptions } from "../src/ledger-archive/ledger-rotation.js";
import type { Store } from "../src/store.js";
import { NAMESPACE } from "./commands-for-test.js";
import type { StoreInHand } from "./store-in-hand.js";

export const SEGMENT_LEASES = 10;
export const KEEP_LEASES = 4;
const ABOVE_ALL = 2 ** 33;

export interface ToldEvent {
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * A rotation that writes whatever is due at once; `events` are those that it told. At another time than ours, coordinators have
 * touched the store until then, unless it is a clock that is wrong.
 */
export function rotationOf(
  store: Store,
  folder: string,
  own: Partial<LedgerRotationOptions> & { readonly disk?: ArchiveDisk; readonly isClockWrong?: boolean } = {},
): { readonly rotation: LedgerRotation; readonly events: ToldEvent[] } {
  const events: ToldEvent[] = [];
  const tell = (fields: object, event: string) => void events.push({ event, fields: { ...fields } });
  const { disk = NODE_DISK, isClockWrong = false, ...options } = own;
  const rotation = new LedgerRotation({
    store: options.now === undefined || isClockWrong ? store : touchedUntil(store, options.now),
    archive: new LedgerArchive(folder, disk),
    retention: { leaseCount: KEEP_LEASES },
    log: { debug: tell, info: tell, warn: tell, error: tell },
    now: () => Date.now() + 1,
    segmentLeases: SEGMENT_LEASES,
    // Also what was written within the same millisecond.
    partialAfterMs: -1,
    lateEveryMs: 0,
    ...options,
  });
  return { rotation, events };
}

function touchedUntil(store: Store, now: () => number): Store {
  return storeWith(store, {
    readNamespace: async (namespace) => ({ ...(await store.readNamespace(namespace)), changedAtMs: now() }),
  });
}

/** The store, but for some of its methods. */
export function storeWith(store: Store, own: Partial<Store>): Store {
  return new Proxy(store, {
    get(_, name: keyof Store) {
      const value = own[name] ?? store[name];
      return typeof value === "function" ? value.bind(store) : value;
    },
  });
}

/** Rotates, and fails if that failed. */
export async function rotated(
  store: Store,
  folder: string,
  own: Parameters<typeof rotationOf>[2] = {},
): Promise<readonly ToldEvent[]> {
  const { rotation, events } = rotationOf(store, folder, own);
  await rotation.rotateAll();
  expect(events.filter(({ event }) => event !== "rotation")).toEqual([]);
  return events;
}

/** Leases of one to three runs, each with a nonce of its own; of four, one is never reported on, and one goes on. */
export async function leaseSome({ store, lease }: StoreInHand, leaseCount: number): Promise<void> {
  for (let count = 0; count < leaseCount; count++) {
    const leaseNonce = `nonce-${randomUUID()}`;
    const { firstRun, runCount } = await lease({ runCount: (count % 3) + 1, leaseNonce });
    const state = count % 4 === 1 ? "open" : "closed";
    const report = { nonce: leaseNonce, lastSequence: count, state } as const;
    if (count % 4 !== 0) await store.report(NAMESPACE, firstRun + runCount - 1, report);
  }
}

/** Ends those of the leases that have not, but for each `spared`th. Answers the whole ledger as it should be then. */
export async function endLeases(
  store: Store,
  whole: readonly LedgerEntry[],
  spared: number,
): Promise<readonly LedgerEntry[]> {
  const open = whole.filter((lease) => lease.progress?.state !== "closed");
  const told = new Map<number, LedgerEntry>();
  for (const [index, lease] of open.entries()) {
    if (index % spared === 0) continue;
    const run = lastLedgerIdOf(lease);
    await store.report(NAMESPACE, run, { nonce: lease.nonce, lastSequence: 16_000, state: "closed" });
    const [after] = await store.exportLeases(NAMESPACE, { afterLedgerId: run - 1, limit: 1 });
    told.set(run, after as LedgerEntry);
  }
  return whole.map((lease) => told.get(lastLedgerIdOf(lease)) ?? lease);
}

export function wholeLedger(store: Store, folder: string): Promise<readonly LedgerEntry[]> {
  return new Ledger(store, new LedgerArchive(folder)).exportLeases(NAMESPACE, { afterLedgerId: 0, limit: 10_000 });
}

export function hotLedger(store: Store): Promise<readonly LedgerEntry[]> {
  return store.exportLeases(NAMESPACE, { afterLedgerId: 0, limit: 10_000 });
}

/** Every way of reading the ledger tells exactly these leases. */
export async function expectWhole(
  store: Store,
  folder: string,
  whole: readonly LedgerEntry[],
  when = "",
): Promise<void> {
  const ledger = new Ledger(store, new LedgerArchive(folder));
  expect(await ledger.exportLeases(NAMESPACE, { afterLedgerId: 0, limit: 10_000 }), when).toEqual(whole);
  const newestFirst: unknown[] = [];
  for (let below = ABOVE_ALL; ; ) {
    const page = await ledger.listLeases(NAMESPACE, { belowLedgerId: below, limit: 7 });
    newestFirst.push(...page);
    if (page.length < 7) break;
    below = lastLedgerIdOf(page[6] as LedgerEntry);
  }
  expect(newestFirst, when).toEqual(whole.toReversed());
  const oldestFirst: LedgerEntry[] = [];
  for (const limit of [2, 7]) {
    oldestFirst.length = 0;
    for (let page: readonly LedgerEntry[] | undefined; page === undefined || page.length === limit; ) {
      const afterLedgerId = oldestFirst.length === 0 ? 0 : lastLedgerIdOf(oldestFirst.at(-1) as LedgerEntry);
      page = await ledger.exportLeases(NAMESPACE, { afterLedgerId, limit });
      oldestFirst.push(...page);
    }
    expect(oldestFirst, when).toEqual(whole);
  }
  for (const lease of whole) {
    expect(await ledger.findLease(NAMESPACE, lastLedgerIdOf(lease)), when).toEqual(lease);
    const first = whole.find(({ leasedAtMs }) => leasedAtMs >= lease.leasedAtMs);
    expect(await ledger.firstLeaseSince(NAMESPACE, lease.leasedAtMs), when).toEqual(first);
  }
}
