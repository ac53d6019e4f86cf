/** Nonces of steps: new and random for each. Drawn from a supply of secure random bytes, as asking for a few at a time costs more. */
import { randomFillSync } from "node:crypto";

const NONCE_BYTES = 12;
const supply = Buffer.allocUnsafeSlow(NONCE_BYTES * 341);
let used = supply.length;

/** 16 characters A-Z, a-z, 0-9, dash, underscore. No byte is used twice. */
export function freshNonce(): string {
  if (used === supply.length) {
    randomFillSync(supply);
    used = 0;
  }
  const begin = used;
  used += NONCE_BYTES;
  return supply.toString("base64url", begin, used);
}
