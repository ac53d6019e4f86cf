/** Where coordinators and verbs remember, outside the store, what was leased from it. */
import { dirname, resolve } from "node:path";
import { commandLine } from "@callnumber/protocol/operator";
import { runOfLedgerId } from "@callnumber/protocol/wire";
import type { Option } from "commander";
import { z } from "zod";
import { CoordinatorError } from "../errors.js";
import { type Checkpoint, type CheckpointFile, CORRUPT, NO_CHECKPOINT_FILE } from "../guard/checkpoint.js";
import {
  checkpointedNamespaces,
  checkpointsAt,
  makeCheckpointDirectory,
  openCheckpointFile,
} from "../guard/checkpoint-file.js";
import { describeStore, placeOf, type StoreAddress } from "../stores/store-url.js";
import { defaultWitnessFolder } from "./default-store.js";
import { checkedOption, setting } from "./options.js";

export function witnessFolderOption(): Option {
  const description = "where to remember, outside the store, what was leased from it; not in the store's folder";
  return setting(checkedOption("--witness-folder <path>", description, z.string().min(1))).default(
    defaultWitnessFolder(),
  );
}

/** What is remembered of a store, outside it. */
export interface Memory {
  readonly checkpointFileOf: (namespace: string) => CheckpointFile;
  /** The namespaces of which something is remembered, also those that the store has lost. Makes nothing, reads no marks. */
  namespaces(): ReadonlySet<string>;
  /** What is remembered, by namespace. Makes nothing. */
  remembered(): ReadonlyMap<string, Checkpoint | typeof CORRUPT>;
  /** For a place where there is no store. @throws CoordinatorError `store_missing` when runs of it are remembered. */
  mustNotBeLost(): void;
  /** Makes the folder: a store whose witness can't be written is better not made. @throws CoordinatorError `witness_unusable`. */
  makeFolder(): void;
}

/**
 * The memory of a store's place; a memory store has none, as nothing of it outlives its process.
 * @throws TypeError when the folder is the store's own: both would be restored together, and the witness would be none.
 */
export function memoryOf(address: StoreAddress, folder: string): Memory {
  if (address.kind === "memory") {
    return {
      checkpointFileOf: () => NO_CHECKPOINT_FILE,
      namespaces: () => new Set(),
      remembered: () => new Map(),
      mustNotBeLost: () => {},
      makeFolder: () => {},
    };
  }
  const absolute = resolve(folder);
  if (address.kind === "sqlite" && dirname(address.path) === absolute) {
    throw new TypeError(
      `the witness folder ${absolute} is the store's own folder: whoever restores the one restores the other. Give another --witness-folder`,
    );
  }
  const place = placeOf(address);
  const remembered = () => checkpointsAt(absolute, place);
  return {
    checkpointFileOf: (namespace) => openCheckpointFile({ folder: absolute, place, namespace }),
    namespaces: () => checkpointedNamespaces(absolute, place),
    remembered,
    makeFolder: () => makeCheckpointDirectory(absolute),
    mustNotBeLost: () => {
      for (const [namespace, one] of remembered()) throw lost(address, namespace, one);
    },
  };
}

function lost(address: StoreAddress, namespace: string, remembered: Checkpoint | typeof CORRUPT): CoordinatorError {
  const isDamaged = remembered === CORRUPT;
  const known = isDamaged ? "a run" : `run ${runOfLedgerId(remembered.ledgerId).run}`;
  const recover = commandLine("recover", namespace, isDamaged ? { "store-id": "STORE_ID" } : {});
  return new CoordinatorError(
    "store_missing",
    `there is no store at ${describeStore(address)}, but ${known} of namespace "${namespace}" was leased from it. Mount it or put it back; ` +
      `if it is lost: \`${recover}\``,
  );
}
