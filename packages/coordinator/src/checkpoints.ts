/** What coordinators and operators' commands remember of a store, in a directory outside it. */
import { dirname, resolve } from "node:path";
import { commandLine, nameOfLedgerId } from "@callnumber/protocol/api";
import { CoordinatorError } from "./errors.js";
import { type Checkpoint, type CheckpointFile, CORRUPT, NO_CHECKPOINT_FILE } from "./guard/checkpoint.js";
import {
  checkpointedNamespaces,
  checkpointsAt,
  makeCheckpointDirectory,
  openCheckpointFile,
} from "./guard/checkpoint-file.js";
import { whyMissing } from "./guard/guard-state.js";
import { describeStore, placeOf, type StoreAddress } from "./stores/store-url.js";

/** The checkpoints of one store, a file for each namespace. */
export interface Checkpoints {
  readonly checkpointFileOf: (namespace: string) => CheckpointFile;
  /** Returns the namespaces with a checkpoint, also those that the store has lost. Makes nothing, reads no high-water mark. */
  namespaces(): ReadonlySet<string>;
  /**
   * For a place without a store. @throws CoordinatorError `store_not_found` when a checkpoint has runs of it; `namespace_moved`, unless
   * the caller is the move that may finish it.
   */
  mustNotBeLost(caller?: { readonly isMove?: boolean }): void;
  /**
   * @throws CoordinatorError `namespace_lost` for a namespace that is not among those of the store, though a checkpoint has runs of it, or a move
   *   to here was not finished.
   */
  assertListed(namespaces: readonly string[]): void;
  /** Makes the directory, before a store is made that could not be remembered. @throws CoordinatorError `checkpoint_unavailable`. */
  makeDirectory(): void;
}

/** Of a memory store: nothing of it outlives its process. */
const NO_CHECKPOINTS: Checkpoints = {
  checkpointFileOf: () => NO_CHECKPOINT_FILE,
  namespaces: () => new Set(),
  mustNotBeLost: () => {},
  assertListed: () => {},
  makeDirectory: () => {},
};

/**
 * Returns the checkpoints of the store at an address.
 * @throws TypeError when the directory is the store's own: both would be restored together, and no rollback would be noticed.
 */
export function checkpointsOf(address: StoreAddress, directory: string): Checkpoints {
  if (address.kind === "memory") return NO_CHECKPOINTS;
  const folder = resolve(directory);
  if (address.kind === "sqlite" && dirname(address.path) === folder) {
    throw new TypeError(
      `the checkpoint directory ${folder} is the store's own folder: both would be restored together. Pass another --checkpoint-dir`,
    );
  }
  const place = placeOf(address);
  const checkpointFileOf = (namespace: string) => openCheckpointFile({ folder, place, namespace });
  return {
    checkpointFileOf,
    namespaces: () => checkpointedNamespaces(folder, place),
    makeDirectory: () => makeCheckpointDirectory(folder),
    assertListed: (listed) => {
      for (const namespace of checkpointedNamespaces(folder, place)) {
        const missing = listed.includes(namespace) ? undefined : whyMissing(namespace, checkpointFileOf(namespace));
        if (missing !== undefined && missing.code !== "namespace_moved") throw missing;
      }
    },
    mustNotBeLost: ({ isMove = false } = {}) => {
      for (const [namespace, checkpoint] of checkpointsAt(folder, place)) {
        const missing = whyMissing(namespace, checkpointFileOf(namespace));
        throw missing?.code === "namespace_moved" && !isMove ? missing : lost(address, namespace, checkpoint);
      }
    },
  };
}

function lost(address: StoreAddress, namespace: string, checkpoint: Checkpoint | typeof CORRUPT): CoordinatorError {
  const isDamaged = checkpoint === CORRUPT;
  const known = isDamaged ? "runs" : `runs up to ${nameOfLedgerId(checkpoint.ledgerId)}`;
  const back = address.kind === "sqlite" ? "Mount it or put it back" : "Restore it";
  const recover = commandLine("recover", namespace, isDamaged ? { "store-id": "STORE_ID" } : {});
  return new CoordinatorError(
    "store_not_found",
    `there is no store at ${describeStore(address)}, but ${known} of namespace "${namespace}" were leased or skipped. ${back}; ` +
      `if it is lost: \`${recover}\``,
  );
}
