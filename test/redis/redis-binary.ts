/** A redis-server program that can be started here: from PATH, else from Debian's packages, unpacked without root. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { unpackDebianPackages } from "../debian/unpacked-packages.js";

export interface RedisBinary {
  executable: string;
  /** Directories for LD_LIBRARY_PATH, where the program was unpacked and not installed. */
  libraryPath: string | undefined;
  version: string;
  /** Where it came from, for people. */
  origin: string;
}

/** Returns the first `redis-server` or `valkey-server` on `path` that runs, or why there is none. */
export function redisBinaryOnPath(path: string): RedisBinary | string {
  for (const folder of path.split(delimiter).filter(Boolean)) {
    for (const name of ["redis-server", "valkey-server"]) {
      const executable = join(folder, name);
      if (!existsSync(executable)) continue;
      const version = versionOf(executable, undefined);
      if (version === undefined) return `${executable} is on PATH but does not run`;
      return { executable, libraryPath: undefined, version, origin: `${executable}, found on PATH` };
    }
  }
  return "no redis-server or valkey-server on PATH";
}

/** Returns the unpacked Redis of an earlier run, else a freshly unpacked one, else why there is none. */
export function unpackDebianRedis(): Promise<RedisBinary | string> {
  return unpackDebianPackages("redis", ["redis-server"], ({ home, libraryPath, origin }) => {
    const executable = join(home, "usr", "bin", "redis-server");
    const version = versionOf(executable, libraryPath);
    return version === undefined ? undefined : { executable, libraryPath, version, origin };
  });
}

export function environmentFor(libraryPath: string | undefined): NodeJS.ProcessEnv {
  return libraryPath === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraryPath };
}

/** Returns undefined when the program does not run here. */
function versionOf(executable: string, libraryPath: string | undefined): string | undefined {
  try {
    const output = execFileSync(executable, ["--version"], {
      encoding: "utf8",
      env: environmentFor(libraryPath),
      stdio: ["ignore", "pipe", "ignore"],
    });
    return /\bv=(\S+)/.exec(output)?.[1];
  } catch {
    return undefined;
  }
}
