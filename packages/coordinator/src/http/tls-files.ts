/** The files of a TLS server, read and checked: whether key and certificate fit, and until when. Knows nothing of servers. */
import { constants, createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { readPrivateFile, readPublicFile } from "../platform/private-file.js";

export interface TlsPaths {
  /** In PEM: the server's own certificate first, then those that lead to its authority. */
  readonly certificate: string;
  /** In PEM, without a passphrase. */
  readonly key: string;
  /** In PEM: only callers with a certificate of one of these get in. Default: everybody does. */
  readonly clientCa?: string | undefined;
}

export interface TlsMaterial {
  readonly certificate: string;
  readonly key: string;
  readonly clientCa: string | undefined;
  /** When the server's own certificate ends, milliseconds. */
  readonly endsAtMs: number;
}

/** How messages call it. */
const WHAT = "the TLS certificate";
/**
 * What keys are agreed in, best first. The platform's default lets the caller choose among all that OpenSSL knows, some a hundred times as dear
 * for the server, and for a caller who repeats one recorded message they cost nothing.
 */
const GROUPS = "X25519:prime256v1:secp384r1";
const PEM_CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** @throws TypeError that names the file and what is wrong with it; never with anything of the key. */
export function readTlsMaterial(paths: TlsPaths, nowMs: number): TlsMaterial {
  const certificate = readPublicFile(paths.certificate, WHAT);
  const key = readPrivateFile(paths.key, "the TLS key");
  const clientCa = paths.clientCa && readPublicFile(paths.clientCa, "the TLS client CA");
  const own = ownCertificateIn(certificate, paths.certificate);
  mustFit(own, key, paths);
  const endsAtMs = mustHold(own, nowMs, `${WHAT} ${paths.certificate}`);
  if (clientCa !== undefined) mustKnowSomebody(certificatesIn(clientCa, paths.clientCa), nowMs, paths.clientCa);
  const material = { certificate, key, clientCa, endsAtMs };
  mustBeUsable(material, paths);
  return material;
}

/** What every server of ours is told: TLS 1.2 or later, and cheap keys, whatever the process was started with. */
export function contextOf({ certificate, key, clientCa }: TlsMaterial): SecureContextOptions {
  const ca = clientCa === undefined ? {} : { ca: clientCa };
  const secureOptions = constants.SSL_OP_NO_RENEGOTIATION;
  return {
    cert: certificate,
    key,
    ...ca,
    minVersion: "TLSv1.2",
    ecdhCurve: GROUPS,
    honorCipherOrder: true,
    secureOptions,
  };
}

/** The server's own stands first. */
function ownCertificateIn(pem: string, path: string): X509Certificate {
  const [own] = certificatesIn(pem, path);
  if (own === undefined) throw new TypeError(`${WHAT} ${path} holds no certificate in PEM`);
  return own;
}

function certificatesIn(pem: string, path: string | undefined): readonly X509Certificate[] {
  try {
    return (pem.match(PEM_CERTIFICATES) ?? []).map((one) => new X509Certificate(one));
  } catch (error) {
    throw new TypeError(`${path} holds a certificate that can't be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function mustFit(own: X509Certificate, key: string, paths: TlsPaths): void {
  let fits: boolean;
  try {
    fits = own.checkPrivateKey(createPrivateKey(key));
  } catch (error) {
    const hint = /ENCRYPTED/.test(key) ? "it has a passphrase, and nobody is there to type it" : "it is no key in PEM";
    throw new TypeError(`the TLS key ${paths.key} can't be used: ${hint}`, { cause: error });
  }
  if (!fits) throw new TypeError(`the TLS key ${paths.key} is not the one of the certificate ${paths.certificate}`);
}

/** Answers when it ends. */
function mustHold(certificate: X509Certificate, nowMs: number, what: string): number {
  const [beginsAtMs, endsAtMs] = [Date.parse(certificate.validFrom), endOf(certificate, what)];
  if (endsAtMs <= nowMs) throw new TypeError(`${what} has ended on ${instant(endsAtMs)}`);
  if (beginsAtMs > nowMs) throw new TypeError(`${what} begins on ${instant(beginsAtMs)} only`);
  return endsAtMs;
}

function endOf({ validTo }: X509Certificate, what: string): number {
  const endsAtMs = Date.parse(validTo);
  // Compared with any date, it would neither have ended nor ever end.
  if (Number.isNaN(endsAtMs)) throw new TypeError(`${what} has an end that is no date`);
  return endsAtMs;
}

/** One that has ended may stand beside one that holds: an authority is replaced that way. */
function mustKnowSomebody(known: readonly X509Certificate[], nowMs: number, path = ""): void {
  if (known.length === 0) throw new TypeError(`the TLS client CA ${path} holds no certificate in PEM`);
  if (known.every(({ validTo }) => Date.parse(validTo) <= nowMs)) {
    throw new TypeError(`the TLS client CA ${path} has ended: nobody could get in`);
  }
}

/** What OpenSSL alone knows: a key too short, a chain that it can't read. */
function mustBeUsable(material: TlsMaterial, { certificate }: TlsPaths): void {
  try {
    createSecureContext(contextOf(material));
  } catch (error) {
    throw new TypeError(`the TLS certificate ${certificate} can't be used: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}
