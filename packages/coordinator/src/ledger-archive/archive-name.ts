/**
 * What a file of an archived ledger is called: by the ledger ids that it covers, so that names sort as the ledger does and a
 * missing file shows as a gap, and by its checksum. Pure.
 *
 *   segment   <first>-<last>.<checksum>.ndjson.gz        every lease whose last run has a ledger id from first to last
 *   late      late-<first>-<last>.<checksum>.ndjson.gz   some leases of segments, as they ended after those were written
 */
import { createHash } from "node:crypto";

export type FileKind = "segment" | "late";

export interface ArchiveRange {
  readonly kind: FileKind;
  /** Ledger ids, both included. */
  readonly first: number;
  readonly last: number;
}

export interface ArchiveName extends ArchiveRange {
  readonly name: string;
  /** The first 16 hex digits of the SHA-256 of the whole file. */
  readonly checksum: string;
}

/** 2^33 has ten digits. */
const ID_DIGITS = 10;
const CHECKSUM_DIGITS = 16;
const NAME = new RegExp(
  `^(late-)?(\\d{${ID_DIGITS}})-(\\d{${ID_DIGITS}})\\.([0-9a-f]{${CHECKSUM_DIGITS}})\\.ndjson\\.gz$`,
);

export function nameOf({ kind, first, last }: ArchiveRange, bytes: Uint8Array): ArchiveName {
  const checksum = checksumOf(bytes);
  const ids = `${String(first).padStart(ID_DIGITS, "0")}-${String(last).padStart(ID_DIGITS, "0")}`;
  return { kind, first, last, checksum, name: `${kind === "late" ? "late-" : ""}${ids}.${checksum}.ndjson.gz` };
}

/** Undefined for a name that no file of an archive has. */
export function nameIn(name: string): ArchiveName | undefined {
  const [, late, first, last, checksum = ""] = NAME.exec(name) ?? [];
  if (first === undefined || last === undefined) return undefined;
  return { kind: late === undefined ? "segment" : "late", first: Number(first), last: Number(last), checksum, name };
}

export function checksumOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, CHECKSUM_DIGITS);
}
