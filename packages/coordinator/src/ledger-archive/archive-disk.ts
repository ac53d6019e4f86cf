/**
 * The folder of an archive, as far as we ask anything of a file system: apart, so that a test may stop a process between any two
 * of its deeds. Knows nothing of what the files hold.
 */
import { mkdir, open, readdir, readFile, rename, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";

interface FileEnd {
  readonly bytes: Buffer;
  /** Of the whole file. */
  readonly fileBytes: number;
}

/** Paths are absolute. Each function rejects with the system's error. */
export interface ArchiveDisk {
  /** The names in a folder; undefined when it is not there. */
  list(folder: string): Promise<readonly string[] | undefined>;
  readWhole(path: string): Promise<Buffer>;
  readEnd(path: string, byteCount: number): Promise<FileEnd>;
  /** Fewer bytes where the file ends before. */
  readPart(path: string, begin: number, byteCount: number): Promise<Buffer>;
  /** Milliseconds since it was written last; undefined when it is gone. */
  ageMs(path: string, nowMs: number): Promise<number | undefined>;
  /** Makes one folder where there is none, and syncs the one above in any case: who made it may have been killed before. */
  makeFolder(folder: string): Promise<void>;
  /** Writes a file that is not there yet, and syncs it. */
  write(path: string, bytes: Uint8Array): Promise<void>;
  /** Gives a file another name in its folder, and syncs the folder. */
  rename(path: string, newPath: string): Promise<void>;
  /** Removes a file, if it is there. */
  remove(path: string): Promise<void>;
}

/** The owner alone may change them; who may read them is for the folder above to say. */
const FILE_MODE = 0o640;

export const NODE_DISK: ArchiveDisk = {
  list: (folder) => unlessGone(() => readdir(folder)),
  readWhole: (path) => readFile(path),
  async readEnd(path, byteCount) {
    const { size } = await stat(path);
    return { bytes: await readPart(path, Math.max(size - byteCount, 0), Math.min(byteCount, size)), fileBytes: size };
  },
  readPart,
  ageMs: async (path, nowMs) => {
    const found = await unlessGone(() => stat(path));
    return found && nowMs - found.mtimeMs;
  },
  async makeFolder(folder) {
    await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    await syncFolder(dirname(folder));
  },
  async write(path, bytes) {
    const file = await open(path, "wx", FILE_MODE);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
  },
  async rename(path, newPath) {
    await rename(path, newPath);
    await syncFolder(dirname(newPath));
  },
  remove: async (path) => void (await unlessGone(() => unlink(path))),
};

export function isGone(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}

async function readPart(path: string, begin: number, byteCount: number): Promise<Buffer> {
  const handle = await open(path, "r");
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(byteCount), 0, byteCount, begin);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

async function unlessGone<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
