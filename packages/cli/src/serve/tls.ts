/** TLS of `serve`: its options, and the files that they name. */
import {
  describeExpiry,
  type Log,
  nearExpiry,
  readTlsMaterial,
  type TlsMaterial,
  type TlsPaths,
} from "@callnumber/coordinator";
import { isLoopback } from "@callnumber/coordinator/machine";
import { running } from "../command-io.js";

export interface TlsOptions {
  readonly host: string;
  readonly tlsCertificate?: string;
  readonly tlsKey?: string;
  readonly tlsClientCa?: string;
  readonly listenWithoutTls?: boolean;
}

/**
 * Returns the named files; undefined without any, for plain HTTP.
 * @throws TypeError when one of them is missing; and for plain HTTP to other machines, unless the operator asks for it.
 */
export function tlsPathsOf(options: TlsOptions): TlsPaths | undefined {
  const { host, tlsCertificate: certificate, tlsKey: key, tlsClientCa: clientCa } = options;
  if (certificate !== undefined && key !== undefined) return { certificate, key, clientCa };
  if (certificate !== undefined || key !== undefined || clientCa !== undefined) {
    throw new TypeError("TLS needs both --tls-certificate and --tls-key");
  }
  if (isLoopback(host) || options.listenWithoutTls) return undefined;
  throw new TypeError(
    `--host ${host} lets others in, and nothing would be encrypted. Give --tls-certificate and --tls-key, listen on 127.0.0.1, ` +
      "or say --listen-without-tls when a proxy in front encrypts",
  );
}

/**
 * Returns what an operator should know at the start about address and certificate; nothing when all is usual. `material`: undefined
 * for plain HTTP.
 */
export function exposureOf({ host }: TlsOptions, material: TlsMaterial | undefined): readonly string[] {
  const expiry = material && nearExpiry(material.endsAtMs, Date.now());
  const warnings = expiry === undefined ? [] : [describeExpiry(expiry)];
  if (isLoopback(host)) return warnings;
  return [
    ...(isEveryAddress(host) ? [`--host ${host}: every address of this machine is listened to`] : []),
    ...(material === undefined
      ? ["nothing is encrypted: whoever is on the way reads tokens and answers (--listen-without-tls)"]
      : []),
    ...warnings,
  ];
}

/** `0.0.0.0`, `::`, in any notation. */
function isEveryAddress(host: string): boolean {
  return /^\[?[0:.]+\]?$/.test(host);
}

export interface Tls {
  readonly paths: TlsPaths;
  readonly material: TlsMaterial;
}

/** @throws TypeError when the files can't be used. */
export function readTls(paths: TlsPaths): Tls {
  return { paths, material: readTlsMaterial(paths, Date.now()) };
}

const DAY_MS = 24 * 3_600_000;

/**
 * Reads the files again on SIGHUP and passes them to `use`; files that can't be used leave the old ones in use. Logs a certificate
 * that expires soon, once a day. Returns what ends that.
 */
export function reloadTlsOnHangUp(
  { paths, material }: Tls,
  use: (material: TlsMaterial) => void,
  log: Log,
): () => void {
  let used = material;
  const warn = () => {
    const expiry = nearExpiry(used.endsAtMs, Date.now());
    if (expiry === undefined) return;
    const { isExpired, ...fields } = expiry;
    if (isExpired) log.error(fields, "certificate_expired");
    else log.warn(fields, "certificate_expiring");
  };
  running().onSignal("SIGHUP", () => {
    const endsAt = () => new Date(used.endsAtMs).toISOString();
    try {
      used = readTlsMaterial(paths, Date.now());
      use(used);
      log.info({ endsAt: endsAt() }, "certificate_reloaded");
    } catch (error) {
      log.error({ reason: (error as Error).message, endsAt: endsAt() }, "certificate_reload_failed");
    }
    warn();
  });
  warn();
  const timer = setInterval(warn, DAY_MS).unref();
  return () => clearInterval(timer);
}
