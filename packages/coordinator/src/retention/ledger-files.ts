/**
 * The files that trimmed leases go to: a lease a line, as `export` prints them. Each process has files of its own, one for each
 * namespace, and appends to them: two processes never write within each other's lines.
 */
import { randomBytes } from "node:crypto";
import { open, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { LedgerEntry } from "@callnumber/protocol/wire";

/** The owner alone may change them; who may read them is for the directory to say. */
const FILE_MODE = 0o640;

export class LedgerFiles {
  readonly #directory: string;
  #fileId = newFileId();

  /** @param directory exists already: one that a coordinator made would take the place of a disk that is not mounted. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /**
   * Appends leases. They are on the disk when this resolves.
   * @throws the system's error, such as ENOSPC. Some of the lines may be there then.
   */
  async append(namespace: string, storeId: string, leases: readonly LedgerEntry[]): Promise<void> {
    // A move gives the namespace another store id, with the same UUID.
    const [storeUuid] = storeId.split(".");
    const path = join(this.#directory, `${namespace}.${storeUuid}.${this.#fileId}.ndjson`);
    const file = await open(path, "a", FILE_MODE);
    try {
      const { size } = await file.stat();
      try {
        await file.appendFile(leases.map((lease) => `${JSON.stringify(lease)}\n`).join(""));
        await file.sync();
        if (size === 0) await this.#sync();
      } catch (error) {
        // The file may end within a line, and a sync that failed once says nothing of the next one: no line goes behind these.
        this.#fileId = newFileId();
        await (size === 0 ? unlink(path) : file.truncate(size)).catch(() => {});
        throw error;
      }
    } finally {
      await file.close();
    }
  }

  /** A new file is on the disk only with its directory. */
  async #sync(): Promise<void> {
    const directory = await open(this.#directory, "r");
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  }
}

function newFileId(): string {
  return randomBytes(8).toString("hex");
}
