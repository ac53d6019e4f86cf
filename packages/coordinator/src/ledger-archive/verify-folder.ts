/** Reads a whole ledger folder, file by file, and tells everything that is wrong with it. */
import { join } from "node:path";
import { lastLedgerIdOf } from "../lease-identity.js";
import { type ArchiveDisk, NODE_DISK } from "./archive-disk.js";
import { archiveUnavailable } from "./archive-fault.js";
import { leasesInFile } from "./archive-file.js";
import { ArchiveListing } from "./archive-listing.js";

export interface VerifiedLedger {
  readonly namespace: string;
  readonly storeUuid: string;
  readonly fileCount: number;
  /** Different leases. */
  readonly leaseCount: number;
  readonly byteCount: number;
  /** Ledger id up to which the files reach. */
  readonly through: number;
  /** For people: one for each damaged file, each gap, each lease that is told of late and stands nowhere else. */
  readonly faults: readonly string[];
}

/** @throws CoordinatorError `ledger_archive_unavailable` when the folder is not there. */
export async function verifyFolder(root: string, disk: ArchiveDisk = NODE_DISK): Promise<readonly VerifiedLedger[]> {
  const ledgers: VerifiedLedger[] = [];
  const namespaces = await disk.list(root);
  if (namespaces === undefined) throw archiveUnavailable(`the ledger folder ${root} is not there`);
  for (const namespace of [...namespaces].sort()) {
    for (const storeUuid of [...(await listIfFolder(disk, join(root, namespace)))].sort()) {
      const folder = join(root, namespace, storeUuid);
      const listing = new ArchiveListing(await listIfFolder(disk, folder));
      if (listing.segments.length + listing.late.length === 0) continue;
      ledgers.push({ namespace, storeUuid, ...(await verifyLedger(disk, folder, listing)) });
    }
  }
  return ledgers;
}

async function verifyLedger(disk: ArchiveDisk, folder: string, listing: ArchiveListing) {
  const faults: string[] = [];
  const known = new Set<number>();
  let byteCount = 0;
  const files = [...listing.segments, ...listing.late];
  for (const file of files) {
    try {
      const bytes = await disk.readWhole(join(folder, file.name));
      byteCount += bytes.length;
      for (const lease of await leasesInFile(file, bytes)) {
        const id = lastLedgerIdOf(lease);
        if (file.kind === "late" && !known.has(id))
          faults.push(`${file.name} tells of lease ${id}, which no segment holds`);
        known.add(id);
      }
    } catch (error) {
      faults.push((error as Error).message);
    }
  }
  return {
    fileCount: files.length,
    leaseCount: known.size,
    byteCount,
    through: listing.last,
    faults: [...gapsIn(listing).map((gap) => `no file covers ${gap}: one is missing`), ...faults],
  };
}

function gapsIn(listing: ArchiveListing): readonly string[] {
  const gaps: string[] = [];
  for (let from = 1; ; ) {
    const first = listing.gapWithin(from, listing.last);
    if (first === undefined) return gaps;
    const next = listing.segments.find((segment) => segment.first > first)?.first ?? listing.last + 1;
    gaps.push(`ledger ids ${first} to ${next - 1}`);
    from = next;
  }
}

/** Other things may lie in the folder; they are not ours. */
async function listIfFolder(disk: ArchiveDisk, path: string): Promise<readonly string[]> {
  try {
    return (await disk.list(path)) ?? [];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOTDIR") return [];
    throw error;
  }
}
