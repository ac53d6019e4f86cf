/** TLS of `serve`: its options, and the files that they name. */
import {
  endInWords,
  type Log,
  nearEnd,
  readTlsMaterial,
  type TlsMaterial,
  type TlsPaths,
  TlsReload,
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
  const end = material && nearEnd(material.endsAtMs, Date.now());
  const ending = end === undefined ? [] : [endInWords(end)];
  if (isLoopback(host)) return ending;
  return [
    ...(isEveryAddress(host) ? [`--host ${host}: every address of this machine is listened to`] : []),
    ...(material === undefined
      ? ["nothing is encrypted: whoever is on the way reads tokens and answers (--listen-without-tls)"]
      : []),
    ...ending,
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

/** Passes new files to `use` from now on. Returns what ends that. */
export function followTlsFiles(tls: Tls, use: (material: TlsMaterial) => void, log: Log): () => void {
  const reload = new TlsReload({ ...tls, use, log });
  running().onSignal("SIGHUP", () => reload.reload());
  reload.start();
  return () => reload.stop();
}
