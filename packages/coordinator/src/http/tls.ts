/** The files of a TLS server, read and checked: whether key and certificate fit, and until when the certificate is valid. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext, type TlsOptions } from "node:tls";
import { readPrivateFile, readPublicFile } from "../platform/private-file.js";

/** The files of a TLS server. */
export interface TlsPaths {
  /** In PEM: the server's own certificate first, then those that lead to its authority. */
  readonly certificate: string;
  /** In PEM, without a passphrase. */
  readonly key: string;
  /** In PEM: only clients with a certificate of one of these authorities connect. Default: no certificate is requested. */
  readonly clientCa?: string | undefined;
}

/** What the files of a TLS server contain, checked. */
export interface TlsMaterial {
  readonly certificate: string;
  readonly key: string;
  readonly clientCa: string | undefined;
  /** When the server's own certificate expires, milliseconds. */
  readonly endsAtMs: number;
}

/**
 * Reads the files of a TLS server.
 * @throws TypeError that names the file and its fault, and never includes anything of the key.
 */
export function readTlsMaterial(paths: TlsPaths, nowMs: number): TlsMaterial {
  const certificate = readPublicFile(paths.certificate, "the TLS certificate");
  const key = readPrivateFile(paths.key, "the TLS key");
  const clientCa = paths.clientCa && readPublicFile(paths.clientCa, "the TLS client CA");
  const own = certificateIn(certificate, `the TLS certificate ${paths.certificate}`);
  assertFits(own, key, paths);
  const endsAtMs = assertValid(own, nowMs, `the TLS certificate ${paths.certificate}`);
  if (clientCa !== undefined) certificateIn(clientCa, `the TLS client CA ${paths.clientCa}`);
  const material = { certificate, key, clientCa, endsAtMs };
  try {
    createSecureContext(contextOf(material));
  } catch (error) {
    const message = `the TLS certificate ${paths.certificate} can't be used: ${(error as Error).message}`;
    throw new TypeError(message, { cause: error });
  }
  return material;
}

/** TLS 1.2 or later, whatever the process was started with. */
export function contextOf({ certificate, key, clientCa }: TlsMaterial): TlsOptions {
  const clients = clientCa !== undefined && { ca: clientCa, requestCert: true, rejectUnauthorized: true };
  return { cert: certificate, key, minVersion: "TLSv1.2", ...clients };
}

/** The first of the file. */
function certificateIn(pem: string, what: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw new TypeError(`${what} holds no certificate in PEM that can be read`, { cause: error });
  }
}

function assertFits(own: X509Certificate, key: string, paths: TlsPaths): void {
  let fits: boolean;
  try {
    fits = own.checkPrivateKey(createPrivateKey(key));
  } catch (error) {
    const fault = /ENCRYPTED/.test(key) ? "it has a passphrase; store it without one" : "it is not a key in PEM";
    throw new TypeError(`the TLS key ${paths.key} can't be used: ${fault}`, { cause: error });
  }
  if (!fits) throw new TypeError(`the TLS key ${paths.key} is not the one of the certificate ${paths.certificate}`);
}

/** Returns when it expires. */
function assertValid({ validFrom, validTo }: X509Certificate, nowMs: number, what: string): number {
  const endsAtMs = Date.parse(validTo);
  // Compared with any date, NaN would neither have passed nor ever pass.
  if (Number.isNaN(endsAtMs)) throw new TypeError(`${what} has an end that is not a date`);
  if (endsAtMs <= nowMs) throw new TypeError(`${what} expired on ${instant(endsAtMs)}`);
  const beginsAtMs = Date.parse(validFrom);
  if (beginsAtMs > nowMs) throw new TypeError(`${what} is not valid before ${instant(beginsAtMs)}`);
  return endsAtMs;
}

function instant(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
