/** A server by host and port, and the files of TLS: the same for every store that is reached over a network. */
import type { ConnectionOptions } from "node:tls";
import { CoordinatorError } from "../errors.js";
import { readPrivateFile, readPublicFile } from "../platform/private-file.js";

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** As in a URL and in messages. */
export function endpointText({ host, port }: Endpoint): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Files of TLS, in PEM; read when a connection is opened. */
export interface TlsFiles {
  /** The authority that signs the servers' certificates. Default: the authorities that Node knows. */
  readonly ca?: string | undefined;
  /** The client certificate, for a server that requires one; with its key, or neither. */
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
}

const UNKNOWN_AUTHORITY =
  "its certificate is of an authority that is not known here: name the file of that authority in the store's URL, ?ca=FILE";

/** What to change, by the platform's error code. */
const TLS_REASONS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  CERT_SIGNATURE_FAILURE: UNKNOWN_AUTHORITY,
  CERT_HAS_EXPIRED: "its certificate has expired",
  CERT_NOT_YET_VALID: "its certificate is not valid yet",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host name than the one in the store's URL",
  ERR_SSL_WRONG_VERSION_NUMBER: "it does not speak TLS there",
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: "it asks for a certificate: &certificate=FILE&key=FILE in the store's URL",
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: "it does not know the authority of the coordinator's certificate",
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: "the coordinator's certificate has expired",
};

/**
 * Whatever the process was started with, a server must show a certificate that verifies for the name it was reached by, and speak
 * TLS 1.2 or later. Without a file, the authorities are those that Node knows.
 * `server`: the name of its program, for messages. @throws CoordinatorError `store_unavailable` that names the file that can't be used.
 */
export function tlsOptionsOf(server: string, { ca, certificate, key }: TlsFiles = {}): ConnectionOptions {
  try {
    return {
      minVersion: "TLSv1.2",
      rejectUnauthorized: true,
      ...(ca === undefined ? {} : { ca: certificatesOf(ca, server) }),
      ...(certificate === undefined ? {} : { cert: readPublicFile(certificate, `the certificate for ${server}`) }),
      ...(key === undefined ? {} : { key: readPrivateFile(key, `the key for ${server}`) }),
    };
  } catch (error) {
    throw new CoordinatorError("store_unavailable", (error as Error).message, { cause: error });
  }
}

/** With an empty file, Node would silently use the authorities that it knows. */
function certificatesOf(path: string, server: string): string {
  const pem = readPublicFile(path, `the CA for ${server}`);
  if (!pem.includes("-----BEGIN CERTIFICATE-----")) {
    throw new TypeError(`the CA for ${server} ${path} holds no certificate in PEM`);
  }
  return pem;
}

/** The same failure, with a message that names what to change. */
export function tlsFailure(error: Error): Error {
  const { code = "", message } = error as NodeJS.ErrnoException;
  if (Object.hasOwn(TLS_REASONS, code)) return new Error(`${TLS_REASONS[code]} (${code})`, { cause: error });
  // A server that does not speak TLS waits for the end of a line that never comes.
  return code === "ETIMEDOUT" ? new Error(`${message}; perhaps it does not speak TLS there`, { cause: error }) : error;
}
