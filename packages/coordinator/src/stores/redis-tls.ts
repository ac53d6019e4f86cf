/**
 * TLS to Redis: what a connection is made with, and why one was not made. Whatever the process was started with, a server must show a
 * certificate that is believed, for the name it was reached by, and speak TLS 1.2 or later.
 */
import type { ConnectionOptions } from "node:tls";
import { CoordinatorError } from "../errors.js";
import { readPrivateFile, readPublicFile } from "../platform/private-file.js";
import type { RedisTlsFiles } from "./redis-address.js";

const UNKNOWN =
  "nobody known here has signed its certificate: name the file of its authority in the store's URL, ?ca=FILE";

/** By the platform's code. */
const REASONS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN,
  CERT_SIGNATURE_FAILURE: UNKNOWN,
  CERT_HAS_EXPIRED: "its certificate has ended",
  CERT_NOT_YET_VALID: "its certificate has not begun",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host name than the one in the store's URL",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS there",
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: "it asks for a certificate: &certificate=FILE&key=FILE in the store's URL",
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: "it does not know who has signed the coordinator's certificate",
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: "the coordinator's certificate has ended",
};

/**
 * Reads the files; without any, the authorities that Node knows.
 * @throws CoordinatorError `store_unavailable` that says which file can't be used.
 */
export function tlsOptionsOf({ ca, certificate, key }: RedisTlsFiles = {}): ConnectionOptions {
  try {
    return {
      minVersion: "TLSv1.2",
      rejectUnauthorized: true,
      ...(ca === undefined ? {} : { ca: certificatesOf(ca) }),
      ...(certificate === undefined ? {} : { cert: readPublicFile(certificate, "the certificate for Redis") }),
      ...(key === undefined ? {} : { key: readPrivateFile(key, "the key for Redis") }),
    };
  } catch (error) {
    throw new CoordinatorError("store_unavailable", (error as Error).message, { cause: error });
  }
}

/** An authority's file that holds nothing would leave those that Node knows, and nobody would see it. */
function certificatesOf(path: string): string {
  const pem = readPublicFile(path, "the CA for Redis");
  if (!pem.includes("-----BEGIN CERTIFICATE-----")) {
    throw new TypeError(`the CA for Redis ${path} holds no certificate in PEM`);
  }
  return pem;
}

/** The same failure, in words that say what to change. */
export function tlsFailure(error: Error): Error {
  const { code } = error as NodeJS.ErrnoException;
  const reason = code !== undefined && Object.hasOwn(REASONS, code) ? REASONS[code] : undefined;
  if (reason !== undefined) return new Error(`${reason} (${code})`, { cause: error });
  // Whoever does not speak TLS waits for the end of a line that never comes.
  if (code !== "ETIMEDOUT") return error;
  return new Error(`${error.message}; perhaps it does not speak TLS there`, { cause: error });
}
