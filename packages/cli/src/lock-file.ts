/** A lock that is a file's name: the process that creates the file holds it, and the file contains its id. */
import { closeSync, openSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { pid } from "node:process";

/**
 * Creates the file; returns false when it exists already.
 * @throws the system's error; then no file is left, which would lock every process out once a full disk has room again.
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
    writeFileSync(file, `${pid}\n`);
  } catch (error) {
    unlinkSync(path);
    throw error;
  } finally {
    closeSync(file);
  }
  return true;
}

/** Returns the holder for a message. Its id is unknown when it has just ended. */
export function holderOfLock(path: string): string {
  try {
    const text = readFileSync(path, "utf8").trim();
    if (/^\d{1,10}$/.test(text)) return `process ${text}`;
  } catch {
    // Gone, or not to be read.
  }
  return "another process";
}
