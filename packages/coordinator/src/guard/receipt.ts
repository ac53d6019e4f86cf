/**
 * Receipts: proof that this store leased a run. A run without one is a claim that anybody could make, and would let anybody
 * stop all leasing.
 * Guarantees: G7 (docs/guarantees.md).
 */
import { hash, timingSafeEqual } from "node:crypto";

/** SHA-256 reads so many bytes at a time. */
const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
const MESSAGE_BYTES_MAX = 256;

/**
 * A store's key, read once for many receipts. HMAC-SHA256 as RFC 2104 writes it down: an object of `createHmac` for each of them
 * would cost several times as much.
 */
export class ReceiptKey {
  /** The key's two blocks, each with room behind it for what is hashed with it. */
  readonly #inner = Buffer.alloc(BLOCK_BYTES + MESSAGE_BYTES_MAX);
  readonly #outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES);

  /** `hex`: as the record keeps it, 32 bytes. */
  constructor(hex: string) {
    const key = Buffer.alloc(BLOCK_BYTES);
    key.write(hex, "hex");
    for (const [at, byte] of key.entries()) {
      this.#inner[at] = byte ^ 0x36;
      this.#outer[at] = byte ^ 0x5c;
    }
  }

  /** The receipt of a lease whose last run has that ledger id: an HMAC-SHA256, 43 characters. */
  receiptOf(storeId: string, lastLedgerId: number): string {
    const text = `${storeId} ${lastLedgerId}`;
    if (text.length > MESSAGE_BYTES_MAX) throw new Error(`broken invariant: "${storeId}" is no store id`);
    const end = BLOCK_BYTES + this.#inner.write(text, BLOCK_BYTES);
    this.#outer.write(hash("sha256", this.#inner.subarray(0, end), "binary"), BLOCK_BYTES, "binary");
    return hash("sha256", this.#outer, "base64url");
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
