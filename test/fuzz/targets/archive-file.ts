/**
 * Files of an archived ledger, damaged: a whole file is either as it was written or refused, and a block that is read by the index alone
 * holds the leases that were written, or is refused. What can't be read is never "never leased".
 */
import assert from "node:assert/strict";
import { CoordinatorError } from "../../../packages/coordinator/src/errors.js";
import {
  type ArchiveFile,
  archiveFileOf,
  leasesInFile,
  lineOf,
  spanOf,
} from "../../../packages/coordinator/src/ledger-archive/archive-file.js";
import { indexIn, indexLengthAt } from "../../../packages/coordinator/src/ledger-archive/archive-index.js";
import { LeaseLines } from "../../../packages/coordinator/src/ledger-archive/lease-lines.js";
import type { LedgerEntry } from "../../../packages/protocol/src/wire.js";
import type { Draw } from "../draw.js";
import { mutated } from "../mutation.js";
import { type FuzzTarget, NOTHING_TO_STOP } from "../target.js";

const LEASE_COUNT = 150;
const holder = { name: "importer", host: "mail-1", pid: 4711, labels: { archive: "lists" } };

export const archiveFile: FuzzTarget = {
  name: "archive-file",
  shortCount: 1_500,
  async start() {
    const leases = Array.from({ length: LEASE_COUNT }, (_, index): LedgerEntry => {
      const lease = { version: 0, firstRun: 2 * index + 1, runCount: 2, leasedAtMs: 1_700_000_000_000 + index, holder };
      return { ...lease, coordinator: "c", nonce: `nonce-${index}-0123456789`, progress: null };
    });
    const file = await archiveFileOf({ kind: "segment", first: 1, last: 2 * LEASE_COUNT }, leases, 1_700_000_000_000);
    const lines = leases.map(lineOf);
    return {
      // Where it was changed, and not what it was: two files of the same leases differ.
      input: (draw: Draw) => damaged(file.bytes, draw),
      check: (bytes) => check(bytes, file, lines),
      stop: NOTHING_TO_STOP,
    };
  },
};

function damaged(bytes: Buffer, draw: Draw): Buffer {
  if (draw.onceIn(2)) return mutated(bytes, draw);
  // The index alone: what stands in front of it is left as it was.
  const at = bytes.length - (indexLengthAt(bytes) ?? 0);
  return Buffer.concat([bytes.subarray(0, at), mutated(bytes.subarray(at), draw, { countMax: 2 })]);
}

async function check(bytes: Buffer, { name, bytes: written }: ArchiveFile, lines: readonly string[]): Promise<void> {
  const whole = await orRefused(() => leasesInFile(name, bytes));
  if (bytes.equals(written)) assert.deepEqual(whole?.map(lineOf), lines);
  else assert.equal(whole, undefined, "a damaged file is taken for a whole one");
  const length = indexLengthAt(bytes);
  const index = length === undefined ? undefined : indexIn(bytes.subarray(Math.max(bytes.length - length, 0)));
  if (index === undefined) return;
  for (const at of index.blocks.keys()) {
    const found = await orRefused(async () => {
      const read = new LeaseLines(name.name, bytes.subarray(...spanOf(index, at)));
      return Array.from({ length: read.length }, (_, line) => lineOf(read.at(line) as LedgerEntry));
    });
    if (found === undefined) continue;
    const begin = lines.indexOf(found[0] ?? "");
    assert(begin >= 0, "a lease that nobody wrote");
    assert.deepEqual(found, lines.slice(begin, begin + found.length));
  }
}

async function orRefused<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    assert(error instanceof CoordinatorError && error.code === "ledger_archive_unavailable", String(error));
    return undefined;
  }
}
