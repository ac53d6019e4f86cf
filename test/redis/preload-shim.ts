/**
 * A small C library that is loaded into a server before its own (LD_PRELOAD) and changes what the system tells it. Compiled once for each
 * text of the source, into node_modules/.cache. A number in a file tells a running server what the library shall do.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache/shims", import.meta.url));
const MICROS_PER_MS = 1_000;
const COMPILERS = ["cc", "gcc", "clang"];

/**
 * The path of the library compiled from `source`, a C file beside this one, or why there is none.
 * A compiler's complaint is a reason too: what stands in the source does not exist on every system.
 */
export function compiledShim(source: string): { library: string } | { unavailable: string } {
  if (process.platform !== "linux") return { unavailable: `LD_PRELOAD is Linux's, and this is ${process.platform}` };
  const path = fileURLToPath(new URL(source, import.meta.url));
  const text = readFileSync(path);
  // Another machine may share the folder: the architecture is part of the name.
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 16);
  const library = join(CACHE_FOLDER, `${basename(source, ".c")}-${process.arch}-${digest}.so`);
  if (existsSync(library)) return { library };

  const compiler = COMPILERS.find((name) => spawnSync(name, ["--version"]).status === 0);
  if (!compiler) return { unavailable: `no C compiler on PATH (${COMPILERS.join(", ")})` };
  mkdirSync(CACHE_FOLDER, { recursive: true });
  const scratch = `${library}.${process.pid}`;
  const { status, stderr } = spawnSync(
    compiler,
    ["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", scratch, path, "-ldl"],
    { encoding: "utf8" },
  );
  if (status !== 0) return { unavailable: `${compiler} could not compile ${source}: ${stderr.trim()}` };
  // Whole or not at all, since another run may look for it right now.
  renameSync(scratch, library);
  return { library };
}

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
