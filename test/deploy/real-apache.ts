/** The real Apache for tests of the maps of old links: this machine's, else Debian's. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { unpackDebianPackages } from "../debian/unpacked-packages.js";
import type { Nginx } from "./real-nginx.js";

export interface Apache extends Nginx {
  /** With mod_rewrite.so and the others. */
  readonly modules: string;
  /** Makes DBM files for it. */
  readonly httxt2dbm: string;
}

/** As `findNginx`. Packages that are installed are not unpacked, so the server and its helper may be in two places. */
export async function findApache(): Promise<Apache | string> {
  const installed = apacheBelow("/", {});
  if (installed !== undefined && existsSync(installed.httxt2dbm)) return installed;
  return await unpackDebianPackages("apache", ["apache2-bin", "apache2-utils"], ({ home, libraryPath }) => {
    const apache = installed ?? apacheBelow(home, { LD_LIBRARY_PATH: libraryPath });
    const httxt2dbm = join(home, "usr", "sbin", "httxt2dbm");
    return apache && existsSync(httxt2dbm) ? { ...apache, httxt2dbm } : undefined;
  });
}

function apacheBelow(home: string, environment: NodeJS.ProcessEnv): Apache | undefined {
  const [program, httxt2dbm] = ["apache2", "httxt2dbm"].map((name) => join(home, "usr", "sbin", name)) as [
    string,
    string,
  ];
  const apache = { program, environment, httxt2dbm, modules: join(home, "usr", "lib", "apache2", "modules") };
  return runs(apache) ? apache : undefined;
}

function runs({ program, environment }: Nginx): boolean {
  return existsSync(program) && spawnSync(program, ["-v"], { env: { ...process.env, ...environment } }).status === 0;
}
