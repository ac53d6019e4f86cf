/** What a store of your own is made of, besides the contract (`/store-contract`): README.md names each. Loads no HTTP server. */
export { namespaceRecordIn } from "./guard/checks.js";
export { type NamespaceRecord, storedFields } from "./guard/record.js";
export {
  type Applied,
  type Change,
  type Expected,
  type Finding,
  type Observed,
  recordToWrite,
} from "./guard/step-store.js";
export { isSameProgress, lastLedgerIdOf } from "./ledger/lease-identity.js";
export type { LeaseQuery, LedgerTrim, Retention, Store } from "./stores/store.js";
export { appliedLocally, entriesOf, isAsTrimExpects, observedLocally } from "./stores/stored-shapes.js";
