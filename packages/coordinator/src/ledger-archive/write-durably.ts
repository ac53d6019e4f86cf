/**
 * Puts a file into the archive: under a name of its own until it is on the disk, was read again, and holds what it should. Whoever
 * lists the folder sees a whole file or none.
 */
import { randomUUID } from "node:crypto";
import { dirname, join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import type { ArchiveDisk } from "./archive-disk.js";
import { damagedFile } from "./archive-fault.js";
import { type ArchiveFile, BLOCK_LEASES, leasesInFile, lineOf } from "./archive-file.js";

const UNFINISHED = /^\.[0-9a-f-]{36}\.unfinished$/;
/** No writing takes so long: whoever began it has ended. */
const ABANDONED_AFTER_MS = 24 * 3_600_000;

/**
 * On the disk, with its name and its folders, when this resolves. The folder above those of the namespace must be there.
 * @throws the system's error, such as ENOSPC, or CoordinatorError `ledger_archive_unavailable` when it reads otherwise: no file is there then.
 */
export async function writeDurably(
  disk: ArchiveDisk,
  folder: string,
  { name, bytes }: ArchiveFile,
  leases: readonly LedgerEntry[],
): Promise<void> {
  await disk.makeFolder(dirname(folder));
  await disk.makeFolder(folder);
  const unfinished = join(folder, `.${randomUUID()}.unfinished`);
  try {
    await disk.write(unfinished, bytes);
    await mustHold(leases, await leasesInFile(name, await disk.readWhole(unfinished)), name.name);
    await disk.rename(unfinished, join(folder, name.name));
  } catch (error) {
    // What failed first is what matters; the rest is removed when it is old.
    await disk.remove(unfinished).catch(() => {});
    throw error;
  }
}

/** Removes what processes that ended have left unfinished. */
export async function removeAbandoned(disk: ArchiveDisk, folder: string, nowMs: number): Promise<void> {
  for (const name of (await disk.list(folder)) ?? []) {
    if (!UNFINISHED.test(name)) continue;
    const path = join(folder, name);
    if (((await disk.ageMs(path, nowMs)) ?? 0) > ABANDONED_AFTER_MS) await disk.remove(path);
  }
}

async function mustHold(leases: readonly LedgerEntry[], found: readonly LedgerEntry[], name: string): Promise<void> {
  if (found.length !== leases.length) throw damagedFile(name, "it holds another number of leases than were written");
  for (const [index, lease] of leases.entries()) {
    if (lineOf(lease) !== lineOf(found[index] as LedgerEntry))
      throw damagedFile(name, `lease ${index} reads otherwise`);
    if (index % BLOCK_LEASES === 0) await turn();
  }
}
