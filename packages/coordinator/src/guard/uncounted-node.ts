/**
 * That a node was seen which the record does not count, in a file of the checkpoint directory for each store: every coordinator with the directory
 * knows it, whatever becomes of the record. For the store id, since the server may come back at another address.
 * The content is `recoveredMin`, the least generation that `recover` writes from then on: a record below it is not believed, and one that has reached
 * it was recovered since. It only rises, and the file stays.
 * Guarantees: G8 (docs/guarantees.md).
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CoordinatorError } from "../errors.js";
import { makePrivateDirectory } from "../platform/private-file.js";
import { replaceFile } from "./checkpoint-directory.js";
import { runCommand } from "./refusals.js";

const fileOf = (folder: string, storeId: string) => join(folder, `${storeId}.uncounted`);

/** Returns what is noted of a store, 0 for nothing. @throws CoordinatorError `checkpoint_unavailable` for a damaged file. */
export function readRecoveredMin(folder: string, storeId: string, namespace: string): number {
  const path = fileOf(folder, storeId);
  try {
    const [, digits] = /^(\d{1,16})\n$/.exec(readFileSync(path, "utf8")) ?? [];
    if (digits !== undefined) return Number(digits);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
  throw new CoordinatorError(
    "checkpoint_unavailable",
    `${path} is damaged. It says that a node was seen which the record does not count. Stop the coordinators, delete it, then ` +
      runCommand("recover", namespace, { apply: true }),
  );
}

/** Notes it, on the disk once this returns. Another process may have noted more: that stays. */
export function writeRecoveredMin(folder: string, storeId: string, namespace: string, recoveredMin: number): void {
  if (readRecoveredMin(folder, storeId, namespace) >= recoveredMin) return;
  makePrivateDirectory(folder);
  replaceFile(folder, fileOf(folder, storeId), `${recoveredMin}\n`);
}
