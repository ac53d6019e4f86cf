/**
 * The bytes of an archive file: blocks of leases, each a gzip member of NDJSON, and the index behind them. `zcat` shows them as
 * plain lines, oldest lease first. Pure.
 */
import { randomBytes } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import { gunzipSync, gzip } from "node:zlib";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "../lease-identity.js";
import { damagedFile } from "./archive-fault.js";
import { type ArchiveBlock, type ArchiveIndex, indexIn, indexLengthAt, indexMember } from "./archive-index.js";
import { type ArchiveName, type ArchiveRange, checksumOf, nameOf } from "./archive-name.js";

/** More in one file would make rotations long and lost files dear. */
export const FILE_LEASES_MAX = 8_192;
/** Fewer compress badly; of more, finding one lease takes longer than reading it from a store. */
export const BLOCK_LEASES = 64;
/** Of its lines: the longest lease has some 3,400. What another hand wrote may unpack to more than the memory has. */
const BLOCK_BYTES_MAX = BLOCK_LEASES * 65_536;

export interface ArchiveFile {
  readonly name: ArchiveName;
  readonly bytes: Buffer;
}

const zip = promisify(gzip);

/**
 * The file of leases, oldest first, that fit its range: 1 to `FILE_LEASES_MAX`. Two files of the same leases differ.
 * @throws RangeError for leases that don't fit.
 */
export async function archiveFileOf(
  range: ArchiveRange,
  leases: readonly LedgerEntry[],
  writtenAtMs: number,
): Promise<ArchiveFile> {
  mustFit(range, leases);
  const members: Buffer[] = [];
  const blocks: ArchiveBlock[] = [];
  let offset = 0;
  for (let at = 0; at < leases.length; at += BLOCK_LEASES) {
    const block = leases.slice(at, at + BLOCK_LEASES);
    const member = await zip(textOf(block));
    const last = block.at(-1) as LedgerEntry;
    blocks.push({ offset, lastLedgerId: lastLedgerIdOf(last), lastLeasedAtMs: last.leasedAtMs });
    members.push(member);
    offset += member.length;
  }
  const fileId = randomBytes(8).toString("hex");
  members.push(indexMember({ fileId, writtenAtMs, leaseCount: leases.length, end: offset, blocks }));
  const bytes = Buffer.concat(members);
  return { name: nameOf(range, bytes), bytes };
}

/**
 * All leases of a whole file, after every check that there is: checksum, index, each block, order, range. Lets others go first
 * after each block.
 * @throws CoordinatorError `ledger_archive_unavailable` for the first thing that is wrong.
 */
export async function leasesInFile(name: ArchiveName, bytes: Uint8Array): Promise<readonly LedgerEntry[]> {
  if (checksumOf(bytes) !== name.checksum) throw damagedFile(name.name, "its checksum is not the one in its name");
  const length = indexLengthAt(bytes);
  const index = length === undefined ? undefined : indexIn(bytes.subarray(Math.max(bytes.length - length, 0)));
  if (length === undefined || index === undefined || index.end !== bytes.length - length) {
    throw damagedFile(name.name, "it has no index");
  }
  const leases: LedgerEntry[] = [];
  for (const [at, block] of index.blocks.entries()) {
    const found = leasesInBlock(name.name, bytes.subarray(...spanOf(index, at)));
    const last = found.at(-1) as LedgerEntry;
    if (lastLedgerIdOf(last) !== block.lastLedgerId || last.leasedAtMs !== block.lastLeasedAtMs) {
      throw damagedFile(name.name, `block ${at} is not the one in the index`);
    }
    leases.push(...found);
    await turn();
  }
  if (leases.length !== index.leaseCount) throw damagedFile(name.name, "it does not hold as many leases as it says");
  try {
    mustFit(name, leases);
  } catch (error) {
    throw damagedFile(name.name, (error as Error).message, error);
  }
  return leases;
}

/** A lease as a file holds it: equal texts are equal leases, with the same progress. */
export function lineOf(lease: LedgerEntry): string {
  return JSON.stringify(lease);
}

/** From where to where the block stands. */
export function spanOf({ blocks, end }: ArchiveIndex, block: number): readonly [begin: number, end: number] {
  return [blocks[block]?.offset ?? end, blocks[block + 1]?.offset ?? end];
}

/** @throws CoordinatorError `ledger_archive_unavailable`. */
function leasesInBlock(name: string, member: Uint8Array): readonly LedgerEntry[] {
  return linesInBlock(name, member).map((line) => leaseIn(name, line));
}

/** The lines of a block, a lease each; a line is taken apart only when it is asked for. @throws CoordinatorError as `leasesInBlock`. */
export function linesInBlock(name: string, member: Uint8Array): readonly string[] {
  try {
    return gunzipSync(member, { maxOutputLength: BLOCK_BYTES_MAX }).toString("utf8").trimEnd().split("\n");
  } catch (error) {
    throw damagedFile(name, `a block can't be unpacked (${(error as Error).message})`, error);
  }
}

/** @throws CoordinatorError as `leasesInBlock`. */
export function leaseIn(name: string, line: string): LedgerEntry {
  try {
    const lease = JSON.parse(line) as LedgerEntry;
    if (Number.isInteger(lastLedgerIdOf(lease)) && typeof lease.nonce === "string") return lease;
  } catch (error) {
    throw damagedFile(name, "a line is no JSON", error);
  }
  throw damagedFile(name, "a line is no lease");
}

function textOf(leases: readonly LedgerEntry[]): string {
  return leases.map((lease) => `${lineOf(lease)}\n`).join("");
}

function mustFit({ first, last }: ArchiveRange, leases: readonly LedgerEntry[]): void {
  if (leases.length < 1 || leases.length > FILE_LEASES_MAX) {
    throw new RangeError(`an archive file holds 1 to ${FILE_LEASES_MAX} leases, not ${leases.length}`);
  }
  let before = first - 1;
  for (const lease of leases) {
    const id = lastLedgerIdOf(lease);
    if (id <= before || id > last)
      throw new RangeError(`lease ${id} does not belong into ${first} to ${last} behind ${before}`);
    before = id;
  }
}
