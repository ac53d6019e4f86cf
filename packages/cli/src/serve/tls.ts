/** TLS of `serve`: its options, and the files that they name. */
import { type Log, readTlsMaterial, type TlsMaterial, type TlsPaths } from "@callnumber/coordinator";
import { isLoopback } from "@callnumber/coordinator/internal/machine";
import { nearExpiry } from "../certificate-expiry.js";
import { invocation } from "../invocation.js";

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
    `--host ${host}: nothing would be encrypted. Pass --tls-certificate and --tls-key, --host 127.0.0.1, ` +
      "or --listen-without-tls behind a proxy that encrypts",
  );
}

/**
 * Returns what an operator should know at the start about address and certificate; nothing when all is usual. `material`: undefined
 * for plain HTTP.
 */
export function exposureOf({ host }: TlsOptions, material: TlsMaterial | undefined): readonly string[] {
  const lines: string[] = [];
  if (!isLoopback(host)) {
    // `0.0.0.0`, `::`, in any notation.
    if (/^\[?[0:.]+\]?$/.test(host)) lines.push(`--host ${host}: listens on every address of this machine`);
    if (material === undefined) lines.push("nothing is encrypted, tokens included (--listen-without-tls)");
  }
  const expiry = material && nearExpiry(material.endsAtMs);
  return expiry === undefined ? lines : [...lines, expiry.description];
}

const DAY_MS = 24 * 3_600_000;

/**
 * Reads the files again on SIGHUP and passes them to `use`; files that can't be used leave `material` in use. Logs a certificate
 * that expires soon, once a day. Returns what ends that.
 */
export function reloadTlsOnHangUp(
  paths: TlsPaths,
  material: TlsMaterial,
  use: (material: TlsMaterial) => void,
  log: Log,
): () => void {
  let used = material;
  const warn = () => {
    const expiry = nearExpiry(used.endsAtMs);
    if (expiry === undefined) return;
    const { isExpired, description: _, ...fields } = expiry;
    if (isExpired) log.error(fields, "certificate_expired");
    else log.warn(fields, "certificate_expiring");
  };
  invocation().onSignal("SIGHUP", () => {
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
