/** The steps that tests of moving a store begin with, on the namespace that most tests use. */

import type { LeaseStep, Outcome } from "../src/guard/commands.js";
import { movedSeal, nextStoreId } from "../src/guard/store-id.js";
import type { Store } from "../src/stores/store.js";
import { commandsFor, NAMESPACE, storeIdFrom } from "./commands-for-test.js";
import { stepOn } from "./steps-for-test.js";

/** A store that began an hour ago: its line lies close above what a test leases, and rises fast. */
export function recentStoreId(): string {
  return storeIdFrom(1, { initializedAtMs: Date.now() - 3_600_000, rate: 16 });
}

export function init(store: Store, storeId: string, { nodeCount = 1 } = {}): Promise<Outcome> {
  return stepOn(store, NAMESPACE, commandsFor(storeId).init({ nodeCount }));
}

export function lease(store: Store, storeId: string, own: Partial<LeaseStep> = {}): Promise<Outcome> {
  return stepOn(store, NAMESPACE, commandsFor(storeId).lease(own));
}

export function seal(store: Store, storeId: string, text: string): Promise<Outcome> {
  return stepOn(store, NAMESPACE, commandsFor(storeId).seal(text));
}

/** The seal of a store of that id in version 0 that is moved to a place. */
export function sealTo(storeId: string, place: string): string {
  return movedSeal({ storeId: nextStoreId(storeId, 1, Date.now()), place });
}

export function recover(store: Store, storeId: string, { floor = 0 } = {}): Promise<Outcome> {
  return stepOn(store, NAMESPACE, commandsFor(storeId).recover({ floor, nodeCount: 1 }));
}

export async function claim(store: Store, storeId: string): Promise<Outcome> {
  const { generation } = await store.readNamespace(NAMESPACE);
  return stepOn(store, NAMESPACE, commandsFor(storeId).claim(generation));
}
