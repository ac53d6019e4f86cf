/**
 * The one path by which a store is locked and marked: the lock and SQLite's own files lie beside the file itself, by whatever name it was opened.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { CoordinatorError } from "../errors.js";
import { LinkLeadsNowhere, realPathOf } from "../real-path.js";

/** @throws CoordinatorError for a link that leads nowhere: `store_missing`, or `store_unavailable` where a store could have been made. */
export function storePathOf(givenPath: string, { create }: { readonly create: boolean }): string {
  try {
    return realPathOf(givenPath);
  } catch (error) {
    if (!(error instanceof LinkLeadsNowhere)) throw error;
    const message = create
      ? `no store is made at ${givenPath}: ${error.message}`
      : `there is no store at ${givenPath}: ${error.message}`;
    throw new CoordinatorError(create ? "store_unavailable" : "store_missing", message, { cause: error });
  }
}
