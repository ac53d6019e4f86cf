/** Whether the certificates of the tests are what they say: asked of OpenSSL, as it is in Node. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { expect, test } from "vitest";
import { newAuthority } from "./certificates.js";

test("a certificate is the authority's, fits its key, and stands for its names until its date", () => {
  const authority = newAuthority();
  const untilMs = Date.UTC(2031, 1, 3, 4, 5, 6);
  const { certificate, key } = authority.issue({ names: ["store.example", "127.0.0.1"], untilMs });
  const x509 = new X509Certificate(certificate);
  const issuer = new X509Certificate(authority.certificate);
  expect(x509.verify(issuer.publicKey)).toBe(true);
  expect(x509.checkIssued(issuer)).toBe(true);
  expect(issuer.ca).toBe(true);
  expect(x509.ca).toBe(false);
  expect(x509.checkPrivateKey(createPrivateKey(key))).toBe(true);
  expect(x509.checkHost("store.example")).toBe("store.example");
  expect(x509.checkHost("other.example")).toBeUndefined();
  expect(x509.checkIP("127.0.0.1")).toBe("127.0.0.1");
  expect(Date.parse(x509.validTo)).toBe(untilMs);
});

test("another authority of the same name has not signed it", () => {
  const { certificate } = newAuthority("same").issue();
  const other = new X509Certificate(newAuthority("same").certificate);
  expect(new X509Certificate(certificate).verify(other.publicKey)).toBe(false);
});
