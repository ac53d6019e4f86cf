/**
 * The bytes of a file, and of one that gzip has compressed: there, a position is one in the unpacked stream, which can only be read from its
 * start. The scan does so once, and each process that imports once more, since its ranges come in order. Nothing is unpacked to the disk.
 */
import type { Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { createGunzip } from "node:zlib";

const CHUNK_BYTES = 256 * 1024;
/** A thousand times as many bytes may come out of them at once. */
const PACKED_CHUNK_BYTES = 16 * 1024;
/** Of a compressed file without content. */
const PACKED_BYTES_MIN = 20;
const PACKED = /\.gz$/;

export function isPacked(path: string): boolean {
  return PACKED.test(path);
}

/** The path that the file had before it was compressed, and has again when it is unpacked. */
export function unpackedPath(path: string): string {
  return path.replace(PACKED, "");
}

/**
 * Returns what distinguishes a file from all others. A file that is renamed keeps it. The time of birth is in it since a system gives the
 * inode of a deleted file to a new one. A compressed file that changes gets another identity: it must be read from its start.
 */
export function identityOf(path: string, { dev, ino, birthtimeMs, size, mtimeMs }: Stats): string {
  const identity = `${dev}:${ino}:${birthtimeMs}`;
  return isPacked(path) ? `${identity}:${size}:${mtimeMs}` : identity;
}

/**
 * Yields the bytes from `start` to `end`, the last one included; of a compressed file all. `file` stays open.
 * @throws Error of the system, or as `unpackChecked`.
 */
export function chunksOf(file: FileHandle, path: string, start: number, end: number): AsyncIterable<Buffer> {
  if (isPacked(path)) return unpackChecked(file);
  return file.createReadStream({ start, end, highWaterMark: CHUNK_BYTES, autoClose: false });
}

/** Reads up to `bytes` of a file that is not compressed. */
export async function readAt(file: FileHandle, position: number, bytes: number): Promise<Buffer> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(bytes), 0, bytes, position);
  return buffer.subarray(0, bytesRead);
}

/** Reads the bytes from `start` to `end`; fewer when the file has become shorter, none when the path has another file now. */
export async function readBytes(path: string, identity: string, start: number, end: number): Promise<Buffer> {
  if (isPacked(path)) return await readPacked(path, identity, start, end);
  const file = await open(path);
  try {
    if (identityOf(path, await file.stat()) !== identity) return Buffer.alloc(0);
    const bytes = Buffer.allocUnsafeSlow(end - start);
    let filled = 0;
    for (let bytesRead = -1; filled < bytes.length && bytesRead !== 0; filled += bytesRead) {
      ({ bytesRead } = await file.read(bytes, filled, bytes.length - filled, start + filled));
    }
    return bytes.subarray(0, filled);
  } finally {
    await file.close();
  }
}

/**
 * Yields the unpacked bytes. @throws Error when the file is cut, after all that comes before; or when it is damaged, before the first byte: wrong bytes
 * are no error for gzip until its check at the end, and what is stored stays.
 */
async function* unpackChecked(file: FileHandle): AsyncGenerator<Buffer, void> {
  const chunks = () => unpack(packedChunksOf(file));
  try {
    for await (const _ of chunks());
  } catch (error) {
    if (!(error instanceof CutError)) throw error;
  }
  yield* chunks();
}

function packedChunksOf(file: FileHandle): AsyncIterable<Buffer> {
  return file.createReadStream({ start: 0, highWaterMark: PACKED_CHUNK_BYTES, autoClose: false });
}

class CutError extends Error {
  constructor() {
    super("its gzip data is cut: the rest is missing");
  }
}

function packedError({ code, message }: NodeJS.ErrnoException): Error {
  if (code === "Z_BUF_ERROR") return new CutError();
  const action = "Import a good copy, or what gzip -dc makes of it";
  return new Error(`its gzip data is damaged (${message}), so any message in it may be wrong. ${action}`);
}

async function* unpack(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  const gunzip = createGunzip();
  let packedBytes = 0;
  let unpacked: Buffer[] = [];
  let failure: NodeJS.ErrnoException | null | undefined;
  let wake = () => {};
  gunzip.on("data", (chunk: Buffer) => void unpacked.push(chunk));
  gunzip.on("error", (error) => {
    failure = error;
  });
  gunzip.on("close", () => wake());
  // A pipe would lose what is unpacked before an error.
  const push = async function* (give: (done: (error?: Error | null) => void) => void) {
    await new Promise<void>((resolve) => {
      wake = resolve;
      give((error) => {
        failure ??= error;
        resolve();
      });
    });
    yield* unpacked.splice(0);
    if (failure) throw packedError(failure);
  };
  try {
    for await (const chunk of chunks) {
      packedBytes += chunk.length;
      yield* push((done) => gunzip.write(chunk, done));
    }
    // Its callback comes before the error of a cut file.
    yield* push(() => gunzip.end());
    // No error of zlib.
    if (packedBytes < PACKED_BYTES_MIN) throw new CutError();
  } finally {
    gunzip.destroy();
  }
}

async function* unpackedBytes(path: string, identity: string): AsyncGenerator<Buffer, void> {
  const file = await open(path);
  try {
    if (identityOf(path, await file.stat()) !== identity) return;
    yield* unpack(packedChunksOf(file));
  } finally {
    await file.close();
  }
}

/** Where this process is in the compressed file that it reads. */
let reading:
  | { readonly identity: string; readonly chunks: AsyncGenerator<Buffer, void>; rest: Buffer; position: number }
  | undefined;

async function readPacked(path: string, identity: string, start: number, end: number): Promise<Buffer> {
  if (reading?.identity !== identity || start < reading.position) {
    await reading?.chunks.return();
    reading = { identity, chunks: unpackedBytes(path, identity), rest: Buffer.alloc(0), position: 0 };
  }
  const file = reading;
  // Another attempt, after an error too, begins again.
  reading = undefined;
  const taken: Buffer[] = [];
  while (file.position < end) {
    if (file.rest.length === 0) {
      const next = await file.chunks.next();
      if (next.done === true) return Buffer.concat(taken);
      file.rest = next.value;
    }
    const piece = file.rest.subarray(0, end - file.position);
    if (file.position + piece.length > start) taken.push(piece.subarray(Math.max(start - file.position, 0)));
    file.position += piece.length;
    file.rest = file.rest.subarray(piece.length);
  }
  reading = file;
  return Buffer.concat(taken);
}
