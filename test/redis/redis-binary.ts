/**
 * A redis-server program that can be started here, whichever way it came to this machine.
 * Knows nothing of where to look besides PATH, and starts no server.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

export interface RedisBinary {
  executable: string;
  /** Folders for LD_LIBRARY_PATH, where the program was unpacked and not installed. */
  libraryPath: string | undefined;
  version: string;
  /** Where it came from, in words. */
  origin: string;
}

/** The first `redis-server` or `valkey-server` on `path` that runs, or why there is none. */
export function redisBinaryOnPath(path: string): RedisBinary | string {
  for (const name of ["redis-server", "valkey-server"]) {
    for (const folder of path.split(delimiter).filter(Boolean)) {
      const executable = join(folder, name);
      if (!existsSync(executable)) continue;
      const version = versionOf(executable, undefined);
      if (version === undefined) return `${executable} is on PATH but does not run`;
      return { executable, libraryPath: undefined, version, origin: `${executable}, found on PATH` };
    }
  }
  return "no redis-server or valkey-server on PATH";
}

/** What the program says of itself, or undefined when it does not run here. */
export function versionOf(executable: string, libraryPath: string | undefined): string | undefined {
  try {
    const answer = execFileSync(executable, ["--version"], {
      encoding: "utf8",
      env: environmentFor(libraryPath),
      stdio: ["ignore", "pipe", "ignore"],
    });
    return /\bv=(\S+)/.exec(answer)?.[1];
  } catch {
    return undefined;
  }
}

export function environmentFor(libraryPath: string | undefined): NodeJS.ProcessEnv {
  return libraryPath === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraryPath };
}
