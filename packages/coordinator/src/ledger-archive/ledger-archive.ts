/** The archive folder of a coordinator: for each namespace and store a folder of its own in it. May be shared by several coordinators. */
import { type ArchiveDisk, NODE_DISK } from "./archive-disk.js";
import { NamespaceArchive } from "./namespace-archive.js";
import { OpenFiles } from "./open-files.js";

export class LedgerArchive {
  readonly disk: ArchiveDisk;
  readonly #folder: string;
  readonly #archives = new Map<string, NamespaceArchive>();

  /** @param folder is there already: a coordinator that made it would fill the place where a disk should have been mounted. */
  constructor(folder: string, disk: ArchiveDisk = diskWithOpenFiles()) {
    this.#folder = folder;
    this.disk = disk;
  }

  /** The same for every move of the store: a store id keeps its name. */
  of(namespace: string, storeId: string): NamespaceArchive {
    const [uuid = storeId] = storeId.split(".");
    const key = `${namespace}/${uuid}`;
    const archive = this.#archives.get(key) ?? new NamespaceArchive(this.disk, this.#folder, namespace, uuid);
    this.#archives.set(key, archive);
    return archive;
  }
}

function diskWithOpenFiles(): ArchiveDisk {
  const files = new OpenFiles();
  return { ...NODE_DISK, readPart: (path, begin, byteCount) => files.readPart(path, begin, byteCount) };
}
