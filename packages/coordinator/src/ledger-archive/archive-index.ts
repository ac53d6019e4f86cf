/**
 * The index of an archive file: where each block of leases stands, in the extra field of an empty gzip member at the end of the
 * file (RFC 1952, FEXTRA), which every gunzip passes over. So a reader takes the end of the file and one block, never all. Pure.
 *
 * The field: "CN", its length (2 bytes, little endian), the index as JSON, a line feed, 16 hex digits of the SHA-256 of that JSON,
 * a line feed, and the length of the whole member in five digits: whoever reads the end of the file finds its beginning by it.
 */
import { createHash } from "node:crypto";

export interface ArchiveBlock {
  /** Where its gzip member begins. */
  readonly offset: number;
  /** Ledger id of the last run of its last lease. */
  readonly lastLedgerId: number;
  readonly lastLeasedAtMs: number;
}

export interface ArchiveIndex {
  /** Random: no two files are the same, so that whoever removes its own removes no other's. */
  readonly fileId: string;
  readonly writtenAtMs: number;
  readonly leaseCount: number;
  /** Where the blocks end. */
  readonly end: number;
  /** By rising ledger id; never empty. */
  readonly blocks: readonly ArchiveBlock[];
}

const FORMAT = 1;
/** The first ten bytes of a gzip member: deflate, FEXTRA, no time, unknown system. */
const HEAD = Buffer.from([0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255]);
/** A deflate stream of nothing, its CRC-32, its size. */
const TAIL = Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
const SUM_DIGITS = 16;
const LENGTH_DIGITS = 5;
const EXTRA_BYTES_MAX = 65_535;
/** What stands before the JSON: head, length of the extra field, name and length of our part of it. */
const JSON_AT = HEAD.length + 6;
const BEHIND_JSON_BYTES = 1 + SUM_DIGITS + 1 + LENGTH_DIGITS + TAIL.length;

/** No index is longer. */
const INDEX_BYTES_MAX = HEAD.length + 2 + EXTRA_BYTES_MAX + TAIL.length;

/** The member. @throws RangeError for more blocks than one can name: some 1,500. */
export function indexMember({ fileId, writtenAtMs, leaseCount, end, blocks }: ArchiveIndex): Buffer {
  const rows = blocks.map(({ offset, lastLedgerId, lastLeasedAtMs }) => [offset, lastLedgerId, lastLeasedAtMs]);
  const json = JSON.stringify({ format: FORMAT, fileId, writtenAtMs, leaseCount, end, blocks: rows });
  const length = JSON_AT + json.length + BEHIND_JSON_BYTES;
  const extraLength = length - HEAD.length - 2 - TAIL.length;
  if (extraLength > EXTRA_BYTES_MAX) throw new RangeError(`${blocks.length} blocks are too many for one index`);
  const lengths = Buffer.alloc(6);
  lengths.writeUInt16LE(extraLength, 0);
  lengths.write("CN", 2);
  lengths.writeUInt16LE(extraLength - 4, 4);
  const text = `${json}\n${sumOf(json)}\n${String(length).padStart(LENGTH_DIGITS, "0")}`;
  return Buffer.concat([HEAD, lengths, Buffer.from(text), TAIL]);
}

/** Of how many bytes the index is whose end this is; undefined when it is no end of an index. */
export function indexLengthAt(end: Uint8Array): number | undefined {
  const bytes = Buffer.from(end.buffer, end.byteOffset, end.byteLength);
  if (bytes.length < BEHIND_JSON_BYTES || !bytes.subarray(-TAIL.length).equals(TAIL)) return undefined;
  const text = bytes.toString("latin1", bytes.length - TAIL.length - LENGTH_DIGITS, bytes.length - TAIL.length);
  return /^\d+$/.test(text) && Number(text) <= INDEX_BYTES_MAX ? Number(text) : undefined;
}

/** The index in a whole member; undefined when a byte of it is not as it was written. */
export function indexIn(member: Uint8Array): ArchiveIndex | undefined {
  const bytes = Buffer.from(member.buffer, member.byteOffset, member.byteLength);
  if (indexLengthAt(bytes) !== bytes.length || bytes.length < JSON_AT + BEHIND_JSON_BYTES) return undefined;
  const json = bytes.toString("utf8", JSON_AT, bytes.length - BEHIND_JSON_BYTES);
  const sumAt = bytes.length - BEHIND_JSON_BYTES + 1;
  if (bytes.toString("latin1", sumAt, sumAt + SUM_DIGITS) !== sumOf(json)) return undefined;
  const { format, blocks, ...rest } = JSON.parse(json) as Omit<ArchiveIndex, "blocks"> & {
    format: number;
    blocks: readonly (readonly [number, number, number])[];
  };
  if (format !== FORMAT) return undefined;
  return {
    ...rest,
    blocks: blocks.map(([offset, lastLedgerId, lastLeasedAtMs]) => ({ offset, lastLedgerId, lastLeasedAtMs })),
  };
}

function sumOf(json: string): string {
  return createHash("sha256").update(json).digest("hex").slice(0, SUM_DIGITS);
}
