/**
 * Receipts: proof that this store leased a run. A run without one is a claim that anybody could make, and would let anybody
 * stop all leasing.
 * Guarantees: G7 (docs/guarantees.md).
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";

/** A store's key, read once for many receipts. */
export class ReceiptKey {
  readonly #key: KeyObject;

  /** `hex`: as the record keeps it, 32 bytes. */
  constructor(hex: string) {
    this.#key = createSecretKey(hex, "hex");
  }

  /** The receipt of a lease whose last run has that ledger id: an HMAC-SHA256, 43 characters. */
  receiptOf(storeId: string, lastLedgerId: number): string {
    return createHmac("sha256", this.#key).update(`${storeId} ${lastLedgerId}`).digest("base64url");
  }

  isReceiptOf(receipt: string, storeId: string, lastLedgerId: number): boolean {
    const expected = Buffer.from(this.receiptOf(storeId, lastLedgerId));
    const given = Buffer.from(receipt);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }
}

/** One receipt, by a key as the record keeps it. */
export function receiptOf(receiptKey: string, storeId: string, lastLedgerId: number): string {
  return new ReceiptKey(receiptKey).receiptOf(storeId, lastLedgerId);
}
