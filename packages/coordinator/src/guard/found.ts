/** What a step finds before it decides: the keys of a namespace, and the server that holds them. */
import type { FoundFields } from "./record.js";

export interface FoundKeys {
  /** `other`: a key of a type that is not ours. */
  readonly record: "none" | "hash" | "other";
  readonly fields: FoundFields;
  /** The record has a time to live. */
  readonly expires: boolean;
  readonly ledger: "none" | "stream" | "other";
  /** Ledger id of the newest ledger entry; 0 for none. */
  readonly ledgerMark: number;
  readonly holders: "none" | "hash" | "other";
}

export interface FoundServer {
  /** The store's clock. */
  readonly timeMs: number;
  /** `master`, or anything else. */
  readonly role: string;
  /** One unbroken life of the store, as it is now; undefined when it can't be told. */
  readonly epoch: string | undefined;
  readonly connectedReplicas: number;
}
