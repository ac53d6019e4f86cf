/** The web servers that the configurations are tested with: from this machine, else from Debian's packages, unpacked without root. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { unpackDebianPackages } from "../debian/unpacked-packages.js";

/** Debian's place for them, which is not on every PATH. */
const SYSTEM_FOLDERS = ["/usr/sbin", "/usr/local/sbin"];
const FOLDERS = [...(process.env["PATH"] ?? "").split(delimiter).filter(Boolean), ...SYSTEM_FOLDERS];

export interface WebServer {
  readonly program: string;
  readonly environment: NodeJS.ProcessEnv;
}

export interface Apache extends WebServer {
  /** With mod_rewrite.so and the others. */
  readonly modules: string;
  /** Makes DBM files for it. */
  readonly httxt2dbm: string;
}

/** Resolves to one that runs, or to why there is none. */
export async function findNginx(): Promise<WebServer | string> {
  for (const folder of FOLDERS) {
    const nginx = { program: join(folder, "nginx"), environment: {} };
    if (runs(nginx)) return nginx;
  }
  return await unpackDebianPackages("nginx", ["nginx"], ({ home, libraryPath }) => {
    const nginx = { program: join(home, "usr", "sbin", "nginx"), environment: { LD_LIBRARY_PATH: libraryPath } };
    return runs(nginx) ? nginx : undefined;
  });
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

function runs({ program, environment }: WebServer): boolean {
  return existsSync(program) && spawnSync(program, ["-v"], { env: { ...process.env, ...environment } }).status === 0;
}
