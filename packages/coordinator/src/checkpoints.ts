/** What coordinators and operators' commands remember of a store, in a directory outside it. */
import { dirname, resolve } from "node:path";
import { commandLine } from "@callnumber/protocol/operator";
import { runOfLedgerId } from "@callnumber/protocol/wire";
import { CoordinatorError } from "./errors.js";
import { DAMAGED, NO_WITNESS, type Remembrance, type Witness } from "./guard/witness.js";
import { makeWitnessFolder, openWitness, rememberedAt, rememberedNamespaces } from "./guard/witness-folder.js";
import { describeStore, placeOf, type StoreAddress } from "./stores/store-url.js";

export interface Checkpoints {
  readonly witnessOf: (namespace: string) => Witness;
  /** Returns the namespaces with a checkpoint, also those that the store has lost. Makes nothing, reads no high-water mark. */
  namespaces(): ReadonlySet<string>;
  /** Returns the checkpoints by namespace. Makes nothing. */
  remembered(): ReadonlyMap<string, Remembrance | typeof DAMAGED>;
  /** For a place without a store. @throws CoordinatorError `store_missing` when a checkpoint has runs of it. */
  mustNotBeLost(): void;
  /** Makes the directory, before a store is made that could not be remembered. @throws CoordinatorError `witness_unusable`. */
  makeDirectory(): void;
}

/** Of a memory store: nothing of it outlives its process. */
const NO_CHECKPOINTS: Checkpoints = {
  witnessOf: () => NO_WITNESS,
  namespaces: () => new Set(),
  remembered: () => new Map(),
  mustNotBeLost: () => {},
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
      `the witness folder ${folder} is the store's own folder: whoever restores the one restores the other. Give another --witness-folder`,
    );
  }
  const place = placeOf(address);
  const remembered = () => rememberedAt(folder, place);
  return {
    witnessOf: (namespace) => openWitness({ folder, place, namespace }),
    namespaces: () => rememberedNamespaces(folder, place),
    remembered,
    makeDirectory: () => makeWitnessFolder(folder),
    mustNotBeLost: () => {
      for (const [namespace, checkpoint] of remembered()) throw lost(address, namespace, checkpoint);
    },
  };
}

function lost(address: StoreAddress, namespace: string, checkpoint: Remembrance | typeof DAMAGED): CoordinatorError {
  const isDamaged = checkpoint === DAMAGED;
  const known = isDamaged ? "a run" : `run ${runOfLedgerId(checkpoint.ledgerId).run}`;
  const recover = commandLine("recover", namespace, isDamaged ? { "store-id": "STORE_ID" } : {});
  return new CoordinatorError(
    "store_missing",
    `there is no store at ${describeStore(address)}, but ${known} of namespace "${namespace}" was leased from it. Mount it or put it back; ` +
      `if it is lost: \`${recover}\``,
  );
}
