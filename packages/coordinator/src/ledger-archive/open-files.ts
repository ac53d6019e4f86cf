/**
 * Reads parts of files that never change, and opens them seldom: opening takes longer than reading. Those that were read last stay
 * open, for a minute at the most, so that a file that was put back is found, and a disk can be unmounted.
 */
import { close, open, read } from "node:fs";

/** Of archive files: those of four million leases. */
const FILES_KEPT = 512;
const KEPT_MS = 60_000;

interface OpenFile {
  readonly descriptor: Promise<number>;
  readonly timer: ReturnType<typeof setTimeout>;
  readerCount: number;
  isKept: boolean;
  /** A descriptor that is closed twice may by then be another file's. */
  isClosed: boolean;
}

export class OpenFiles {
  readonly #files = new Map<string, OpenFile>();

  /** Fewer bytes where the file ends before. Rejects with the system's error. */
  async readPart(path: string, begin: number, byteCount: number): Promise<Buffer> {
    const kept = this.#files.get(path);
    const file = kept ?? this.#opened(path);
    this.#files.delete(path);
    this.#files.set(path, file);
    file.readerCount++;
    try {
      return await partOf(await file.descriptor, begin, byteCount);
    } catch (error) {
      this.#forget(path, file);
      // What was opened earlier may have gone bad since; the file itself is asked once.
      if (kept === undefined) throw error;
    } finally {
      file.readerCount--;
      closeUnused(file);
    }
    return await this.readPart(path, begin, byteCount);
  }

  #opened(path: string): OpenFile {
    for (const [oldest, other] of this.#files) {
      if (this.#files.size < FILES_KEPT) break;
      this.#forget(oldest, other);
    }
    const timer = setTimeout(() => this.#forget(path, file), KEPT_MS).unref();
    const file: OpenFile = { descriptor: descriptorOf(path), timer, readerCount: 0, isKept: true, isClosed: false };
    return file;
  }

  #forget(path: string, file: OpenFile): void {
    if (this.#files.get(path) === file) this.#files.delete(path);
    clearTimeout(file.timer);
    file.isKept = false;
    closeUnused(file);
  }
}

function closeUnused(file: OpenFile): void {
  if (file.isKept || file.isClosed || file.readerCount > 0) return;
  file.isClosed = true;
  file.descriptor.then(
    (number) => close(number, () => {}),
    () => {},
  );
}

function descriptorOf(path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    open(path, "r", (error, descriptor) => (error ? reject(error) : resolve(descriptor)));
  });
}

function partOf(descriptor: number, begin: number, byteCount: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    read(descriptor, Buffer.allocUnsafe(byteCount), 0, byteCount, begin, (error, bytesRead, bytes) => {
      if (error) reject(error);
      else resolve(bytes.subarray(0, bytesRead));
    });
  });
}
