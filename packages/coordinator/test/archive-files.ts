/** Folders of archive files for tests, written without a rotation, and leases to fill them with. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "../src/lease-identity.js";
import { NODE_DISK } from "../src/ledger-archive/archive-disk.js";
import { archiveFileOf } from "../src/ledger-archive/archive-file.js";
import type { ArchiveName, FileKind } from "../src/ledger-archive/archive-name.js";
import { NamespaceArchive } from "../src/ledger-archive/namespace-archive.js";
import { holder, NAMESPACE } from "./commands-for-test.js";

export const STORE_UUID = "01234567-89ab-cdef-0123-456789abcdef";
const BEGAN_AT_MS = 1_790_000_000_000;

/** A lease that has ended, unless told otherwise. */
export function archivedLease(
  lastRun: number,
  { runCount = 1, ended = true, leasedAtMs = BEGAN_AT_MS + lastRun } = {},
): LedgerEntry {
  const progress = { run: lastRun, lastSequence: 7, state: "closed", reportedAtMs: leasedAtMs } as const;
  const firstRun = lastRun - runCount + 1;
  const nonce = `nonce-of-lease-${String(lastRun).padStart(8, "0")}`;
  return {
    version: 0,
    firstRun,
    runCount,
    leasedAtMs,
    holder,
    coordinator: "c",
    nonce,
    progress: ended ? progress : null,
  };
}

export function archiveIn(root: string): NamespaceArchive {
  return new NamespaceArchive(NODE_DISK, root, NAMESPACE, STORE_UUID);
}

/** Writes one file of the leases; a segment begins right behind `after`. */
export async function writeArchiveFile(
  root: string,
  leases: readonly LedgerEntry[],
  { kind = "segment", after = idOf(leases[0]) - 1 }: { kind?: FileKind; after?: number } = {},
): Promise<ArchiveName> {
  const range = { kind, first: after + 1, last: idOf(leases.at(-1)) };
  const { name, bytes } = await archiveFileOf(range, leases, BEGAN_AT_MS);
  const folder = join(root, NAMESPACE, STORE_UUID);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, name.name), bytes);
  return name;
}

export function idOf(lease: LedgerEntry | undefined): number {
  if (lease === undefined) throw new Error("there is no such lease");
  return lastLedgerIdOf(lease);
}
