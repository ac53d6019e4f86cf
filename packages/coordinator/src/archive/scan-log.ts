/** Reads a coordinator's log, as it is or compressed by gzip, for the greatest runs that its lines tell of. */
import { closeSync, createReadStream, openSync, readSync, statSync } from "node:fs";
import { pipeline, Readable } from "node:stream";
import { constants, createGunzip, gunzipSync } from "node:zlib";
import { ArchiveError } from "./archive-error.js";
import { beginningOf, isGzip } from "./beginning.js";
import { LogScan, type LogScanResult } from "./log-scan.js";
import { mustBeNoneOf } from "./scan-archive.js";
import { scanLines } from "./text-lines.js";

export interface LogOptions {
  /** The path of a file; or the bytes of a stream. */
  readonly source: string | AsyncIterable<Buffer>;
  /** Files that are never opened: those of an embedded store, whose locks would be lost. */
  readonly never: readonly string[];
}

const CHUNK_BYTES = 1_048_576;
const PEEK_BYTES = 4_096;
/** Compressed data that end early, or are damaged: what stood before is good. */
const GZIP_FAULTS: ReadonlySet<string | undefined> = new Set(["Z_BUF_ERROR", "Z_DATA_ERROR"]);

/**
 * Reads all of it, in constant memory. What can't be read in it is counted and passed over.
 * @throws ArchiveError when the file can't be read.
 */
export async function scanLog({ source, never }: LogOptions): Promise<LogScanResult> {
  const scan = new LogScan();
  try {
    if (typeof source === "string") mustBeNoneOf(source, never);
    const bytes = typeof source === "string" ? createReadStream(source, { highWaterMark: CHUNK_BYTES }) : source;
    const { isCompressed, chunks } = await beginningOf(bytes as AsyncIterable<Buffer>);
    await scanLines(isCompressed ? unzipped(chunks) : chunks, scan);
  } catch (error) {
    const { code, syscall, message } = error as NodeJS.ErrnoException;
    if (GZIP_FAULTS.has(code))
      scan.takeMalformed(null, () => `its compressed data are damaged or end early (${message})`);
    else if (error instanceof ArchiveError || syscall !== undefined) {
      const name = typeof source === "string" ? source : "standard input";
      throw new ArchiveError(`${name} can't be scanned: ${message}`, { cause: error });
    } else throw error;
  }
  return scan.result;
}

/** Whether a file begins as a log does: no call number, and no row of names, begins with a brace. Only regular files are looked at. */
export function isLogFile(path: string, never: readonly string[]): boolean {
  try {
    if (!statSync(path).isFile()) return false;
    mustBeNoneOf(path, never);
    return /^\s*\{/.test(beginningOfFile(path));
  } catch {
    // Whoever reads the whole says what is wrong with it.
    return false;
  }
}

function beginningOfFile(path: string): string {
  const bytes = Buffer.alloc(PEEK_BYTES);
  const file = openSync(path, "r");
  try {
    const read = bytes.subarray(0, readSync(file, bytes));
    return (isGzip(read) ? gunzipSync(read, { finishFlush: constants.Z_SYNC_FLUSH }) : read).toString("latin1");
  } finally {
    closeSync(file);
  }
}

function unzipped(chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  // Whoever reads the end of it is told of a fault of its beginning, too.
  pipeline(Readable.from(chunks), gunzip, () => {});
  return gunzip;
}
