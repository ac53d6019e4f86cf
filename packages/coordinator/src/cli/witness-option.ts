/** Where coordinators and verbs remember, outside the store, what was leased from it. */
import { dirname, resolve } from "node:path";
import type { Option } from "commander";
import { z } from "zod";
import { NO_WITNESS, type Witness } from "../guard/witness.js";
import { openWitness, rememberedNamespaces } from "../guard/witness-folder.js";
import { placeOf, type StoreAddress } from "../stores/store-url.js";
import { defaultWitnessFolder } from "./default-store.js";
import { checkedOption, setting } from "./options.js";

export function witnessFolderOption(): Option {
  const description = "where to remember, outside the store, what was leased from it; not in the store's folder";
  return setting(checkedOption("--witness-folder <path>", description, z.string().min(1))).default(
    defaultWitnessFolder(),
  );
}

/**
 * The witness of a namespace of a store; a memory store has none, as nothing of it outlives its process.
 * @throws TypeError when the folder is the store's own: both would be restored together, and the witness would be none.
 */
export function witnessesOf(address: StoreAddress, folder: string): (namespace: string) => Witness {
  if (address.kind === "memory") return () => NO_WITNESS;
  const [absolute, place] = [folderFor(address, folder), placeOf(address)];
  return (namespace) => openWitness({ folder: absolute, place, namespace });
}

/** The namespaces of which the witnesses of a store remember something. @throws as `witnessesOf`. */
export function rememberedOf(address: StoreAddress, folder: string): ReadonlySet<string> {
  if (address.kind === "memory") return new Set();
  return rememberedNamespaces(folderFor(address, folder), placeOf(address));
}

function folderFor(address: StoreAddress, folder: string): string {
  const absolute = resolve(folder);
  if (address.kind === "sqlite" && dirname(address.path) === absolute) {
    throw new TypeError(
      `the witness folder ${absolute} is the store's own folder: whoever restores the one restores the other. Give another --witness-folder`,
    );
  }
  return absolute;
}
