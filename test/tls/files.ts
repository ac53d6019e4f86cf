/** A certificate and its key as files in a folder, as a server is given them. */
import { chmodSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CertificateAndKey } from "./certificates.js";

export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
}

/** Writes both, the key for its owner alone. Those that are there are replaced at once, as a renewal does it. */
export function writeTlsFiles(folder: string, pair: CertificateAndKey, name = "server"): TlsFiles {
  const files = { certificate: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) };
  replaceFile(files.certificate, pair.certificate);
  replaceFile(files.key, pair.key);
  return files;
}

/** A reader sees the old text or the new one. */
export function replaceFile(path: string, text: string, mode = 0o600): string {
  writeFileSync(`${path}.new`, text, { mode });
  chmodSync(`${path}.new`, mode);
  renameSync(`${path}.new`, path);
  return path;
}
