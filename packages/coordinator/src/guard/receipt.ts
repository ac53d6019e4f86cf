/**
 * Receipts: proof that this store leased a run. A run without one is a claim that anybody could make, and would let anybody
 * stop all leasing.
 * Guarantees: G7 (docs/guarantees.md).
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";

/** A store's key, to be read once for many receipts; `hex` as the record keeps it. */
export function receiptKeyIn(hex: string): KeyObject {
  return createSecretKey(Buffer.from(hex, "hex"));
}

/** The receipt of a lease whose last run has that ledger id: an HMAC-SHA256, 43 characters. */
export function receiptOf(receiptKey: KeyObject | string, storeId: string, lastLedgerId: number): string {
  const key = typeof receiptKey === "string" ? receiptKeyIn(receiptKey) : receiptKey;
  return createHmac("sha256", key).update(`${storeId} ${lastLedgerId}`).digest("base64url");
}

export function isReceiptOf(receipt: string, receiptKey: KeyObject, storeId: string, lastLedgerId: number): boolean {
  const expected = Buffer.from(receiptOf(receiptKey, storeId, lastLedgerId));
  const given = Buffer.from(receipt);
  return given.length === expected.length && timingSafeEqual(given, expected);
}
