/**
 * The ledger as requests read it. A namespace that the store lacks may be one that it lost, which its guard knows. Every route reads through
 * here, so that none takes a lost namespace for a new one and advises `init`.
 */
import { CoordinatorError } from "../errors.js";
import type { RecordedLedger, Store } from "../stores/store.js";
import type { NamespaceGuards } from "./namespace-guards.js";

export type ServedLedger = RecordedLedger & Pick<Store, "setProgress">;

/** Returns the ledger of a store, with `namespace_lost` where the store says `namespace_not_found` of a namespace that was there. */
export function servedLedger(store: Store, guards: NamespaceGuards): ServedLedger {
  const noticingLoss = async <T>(namespace: string, request: () => Promise<T>): Promise<T> => {
    try {
      return await request();
    } catch (error) {
      const isMissing = error instanceof CoordinatorError && error.code === "namespace_not_found";
      if (isMissing) await (await guards.of(namespace)).readRecord();
      throw error;
    }
  };
  return {
    readNamespace: (namespace) => noticingLoss(namespace, () => store.readNamespace(namespace)),
    // Need no record.
    leases: (namespace, query) => store.leases(namespace, query),
    hasHolder: (namespace, name) => store.hasHolder(namespace, name),
    setProgress: (namespace, lease, progress) => store.setProgress(namespace, lease, progress),
    readRetention: (namespace) => store.readRetention(namespace),
  };
}
