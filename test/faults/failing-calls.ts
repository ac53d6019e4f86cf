/** Runs programs whose system calls on some files fail, by strace: also those that SQLite makes. */
import { spawn, spawnSync } from "node:child_process";
import type { SpawnProgram } from "./node-program.js";
import { oneOf } from "./one-of.js";

const CALLS = ["openat", "pread64", "pwrite64", "fsync", "fdatasync", "ftruncate", "fcntl", "fstat", "mmap", "unlink"];
const ERRORS = ["EIO", "ENOSPC", "EMFILE", "EACCES"];
/** A start makes fewer than so many of the most frequent one. */
const CALL_MAX = 60;

/** Why no program can run so on this machine; undefined when it can. */
export function tracerUnavailable(): string | undefined {
  const { status, stderr, error } = spawnSync("strace", ["-o", "/dev/null", "true"]);
  return status === 0 ? undefined : `strace: ${error?.message ?? String(stderr).trim()}`;
}

/** The k-th call of one kind on the files fails, and perhaps every later one. The program ends with its tracer. */
export function spawnWithFailingCall(files: readonly string[], random: () => number): SpawnProgram {
  const [call, error] = [oneOf(random, CALLS), oneOf(random, ERRORS)];
  const when = `${1 + Math.floor(random() * CALL_MAX)}${random() < 0.5 ? "" : "+"}`;
  const inject = `inject=${call}:error=${error}:when=${when}`;
  const words = [
    "-f",
    "-o",
    "/dev/null",
    ...files.flatMap((file) => ["-P", file]),
    "-e",
    `trace=${call}`,
    "-e",
    inject,
  ];
  return (program, own, options) =>
    spawn("strace", [...words, "setpriv", "--pdeathsig", "KILL", program, ...own], options);
}
