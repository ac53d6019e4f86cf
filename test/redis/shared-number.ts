/**
 * A number that a running server reads from a file as often as it needs it, through a library loaded into it.
 * Also the folders such libraries need: they end with the test file.
 */
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

const MICROS_PER_MS = 1_000;

/** A folder that is removed at the end of the test file. */
export function folderForLibrary(): string {
  const folder = mkdtempSync(join(tmpdir(), "callnumber-preload-"));
  folders.push(folder);
  return folder;
}

/** Writes `ms` as eight bytes of microseconds, in this machine's byte order, over what stands in the file. */
export function writeMicros(path: string, ms: number): void {
  const number = new BigInt64Array([BigInt(Math.round(ms * MICROS_PER_MS))]);
  // Not made anew where it is there: servers have this very file before them. And one write: they read one number.
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT);
  writeSync(file, number, 0, number.byteLength, 0);
  closeSync(file);
}

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});
