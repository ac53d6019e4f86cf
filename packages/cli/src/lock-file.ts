/** A lock that is a file's name: whoever makes the file has it, and whoever finds it there may read in it who that is. */
import { closeSync, openSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import process from "node:process";

/**
 * Makes the file, with this process's id in it; false when it is there already.
 * @throws the system's error; then no file is left, which would lock everybody out once a full disk has room again.
 */
export function makeLockFile(path: string): boolean {
  let file: number;
  try {
    file = openSync(path, "wx", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
  try {
    writeFileSync(file, `${process.pid}\n`);
  } catch (error) {
    unlinkSync(path);
    throw error;
  } finally {
    closeSync(file);
  }
  return true;
}

/** In words for a message: it may have ended just now, and then its number is not known. */
export function holderOfLock(path: string): string {
  try {
    const pid = readFileSync(path, "utf8").trim();
    if (/^\d{1,10}$/.test(pid)) return `process ${pid}`;
  } catch {
    // Gone, or not to be read.
  }
  return "another process";
}
