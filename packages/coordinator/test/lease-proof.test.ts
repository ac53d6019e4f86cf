/** What a lease proof is, to the bit: holders send theirs after years. */
import { createHmac } from "node:crypto";
import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { ProofKey } from "../src/guard/lease-proof.js";

test("a lease proof is the HMAC-SHA256 of store id and run, whatever was hashed before with the same key", () => {
  const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 });
  const subjects = fc.array(fc.tuple(fc.string({ maxLength: 90, unit: "binary-ascii" }), fc.nat()), {
    minLength: 2,
    maxLength: 4,
  });
  fc.assert(
    fc.property(bytes, subjects, (key, all) => {
      const proofKey = new ProofKey(Buffer.from(key).toString("hex"));
      for (const [storeId, ledgerId] of all) {
        const expected = createHmac("sha256", key).update(`${storeId} ${ledgerId}`).digest("base64url");
        expect(proofKey.proofOf(storeId, ledgerId)).toBe(expected);
        expect(proofKey.isProofOf(expected, storeId, ledgerId)).toBe(true);
        expect(proofKey.isProofOf(expected, storeId, ledgerId + 1)).toBe(false);
      }
    }),
    { seed: inject("seed") },
  );
});
