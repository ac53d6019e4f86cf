/**
 * Receipts: proof that this store leased a run. A run without one is a claim that anybody could make, and would let anybody
 * stop all leasing.
 * Guarantees: G7 (docs/guarantees.md).
 */
import { createHmac, timingSafeEqual } from "node:crypto";
/** The receipt of a lease whose last run has that ledger id: an HMAC-SHA256, 43 characters. */
export function receiptOf(receiptKey, storeId, lastLedgerId) {
    return createHmac("sha256", Buffer.from(receiptKey, "hex")).update(`${storeId} ${lastLedgerId}`).digest("base64url");
}
export function isReceiptOf(receipt, receiptKey, storeId, lastLedgerId) {
    const expected = Buffer.from(receiptOf(receiptKey, storeId, lastLedgerId));
    const given = Buffer.from(receipt);
    return given.length === expected.length && timingSafeEqual(given, expected);
}
//# sourceMappingURL=receipt.js.map