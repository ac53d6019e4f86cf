/** A real Redis from Debian's own packages. Knows nothing of how the server is started. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { unpackDebianPackages } from "../debian/unpacked-packages.js";
import { type RedisBinary, versionOf } from "./redis-binary.js";

/** The unpacked Redis of an earlier run, else a freshly unpacked one, else why neither can be had. */
export function unpackDebianRedis(cacheFolder: string): Promise<RedisBinary | string> {
  return unpackDebianPackages(["redis-server"], cacheFolder, ({ home, libraryPath, origin }) => {
    const executable = join(home, "usr", "bin", "redis-server");
    if (!existsSync(executable)) return undefined;
    const version = versionOf(executable, libraryPath);
    return version === undefined ? undefined : { executable, libraryPath, version, origin };
  });
}
