/** The steps that tests of moving a store begin with. */
import { randomBytes } from "node:crypto";
import type { LeaseStep, Outcome, SealStep, Store } from "../src/store.js";
import { newStoreId } from "../src/store-id.js";

export const NAMESPACE = "main";
export const RECEIPT_KEY = "0123456789abcdef".repeat(4);
export const HOLDER = { name: "importer", host: "mail-1", pid: 4711, labels: { archive: "lists" } };

export function newNonce(): string {
  return randomBytes(12).toString("base64url");
}

/** A store that began an hour ago, or when it is told. */
export function storeIdForTest({ firstRun = 1, rate = 2, initialisedAtMs = Date.now() - 3_600_000 } = {}): string {
  return newStoreId({ firstRun, initialisedAtMs, rate });
}

function base(storeId: string) {
  return { storeId, nonce: newNonce(), isSilenceAccepted: false } as const;
}

export function init(store: Store, storeId: string, { nodeCount = 1, namespace = NAMESPACE } = {}): Promise<Outcome> {
  return store.step(namespace, { step: "init", ...base(storeId), nodeCount, receiptKey: RECEIPT_KEY });
}

export function lease(
  store: Store,
  storeId: string,
  { namespace = NAMESPACE, ...more }: Partial<LeaseStep> & { readonly namespace?: string } = {},
): Promise<Outcome> {
  const remembered = { floor: 0, generationMin: 0, held: 0 };
  const who = { holder: HOLDER, coordinator: "test", leaseNonce: "nonce-0123456789", runCount: 1 };
  return store.step(namespace, { step: "lease", ...base(storeId), ...remembered, ...who, ...more });
}

export function seal(store: Store, storeId: string, text: string, more: Partial<SealStep> = {}): Promise<Outcome> {
  const remembered = { floor: 0, generationMin: 0 };
  return store.step(NAMESPACE, { step: "seal", ...base(storeId), ...remembered, seal: text, ...more });
}

export function recover(store: Store, storeId: string, { floor = 0 } = {}): Promise<Outcome> {
  const asked = { floor, generationMin: 0, nodeCount: 1, receiptKey: RECEIPT_KEY };
  return store.step(NAMESPACE, { step: "recover", ...base(storeId), ...asked });
}

export async function claim(store: Store, storeId: string): Promise<Outcome> {
  const { generation } = await store.readNamespace(NAMESPACE);
  return store.step(NAMESPACE, { step: "claim", ...base(storeId), generation, generationMin: 0 });
}
