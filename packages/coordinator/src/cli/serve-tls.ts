/** TLS of the coordinator: the options of `serve`, and what is made of them. */
import type { Option } from "commander";
import { z } from "zod";
import { endInWords, nearEnd } from "../http/certificate-end.js";
import { readTlsMaterial, type TlsMaterial, type TlsPaths } from "../http/tls-files.js";
import { TlsReload } from "../http/tls-reload.js";
import type { Log } from "../log.js";
import { isLoopback } from "../platform/loopback.js";
import { running } from "./command-io.js";
import { checkedOption, switchOption } from "./options.js";

export interface TlsOptions {
  readonly host: string;
  readonly tlsCertificate?: string;
  readonly tlsKey?: string;
  readonly tlsClientCa?: string;
  readonly listenWithoutTls?: boolean;
}

export function tlsOptions(): readonly Option[] {
  const path = z.string().min(1);
  return [
    checkedOption("--tls-certificate <file>", "the server's certificate, PEM; with it HTTPS is spoken", path),
    checkedOption("--tls-key <file>", "the certificate's key, PEM; only its owner and group may read it", path),
    checkedOption("--tls-client-ca <file>", "let in only callers with a certificate of this authority, PEM", path),
    switchOption("listen-without-tls", "listen on an address that others reach, although nothing is encrypted"),
  ];
}

/**
 * The files that are named; undefined without any: then HTTP is spoken.
 * @throws TypeError when a file is missing among them, and when others reach the address and nobody said that nothing needs to be
 * encrypted.
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
 * What an operator should hear at the start of where it listens, and of the certificate; nothing where all is as anybody expects.
 * `material`: undefined where plain HTTP is spoken.
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

/** `0.0.0.0`, `::`, and however else they are spelt. */
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

/** From now on new files are seen, and passed to `use`. Returns what ends that. */
export function followTlsFiles(tls: Tls, use: (material: TlsMaterial) => void, log: Log): () => void {
  const reload = new TlsReload({ ...tls, use, log });
  running().onSignal("SIGHUP", () => reload.reload());
  reload.start();
  return () => reload.stop();
}
