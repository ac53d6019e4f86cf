/**
 * Programs from Debian's own packages, unpacked into a cache folder: no root, no daemon, nothing installed.
 * apt works out which packages this machine lacks, so the same steps serve other releases of Debian and its children.
 * Knows nothing of the programs: the caller names the packages, and checks that what was unpacked runs.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { delimiter, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const CACHE_FOLDER = fileURLToPath(new URL("../../node_modules/.cache", import.meta.url));

export interface Unpacked {
  /** Stands for `/`: the packages' files lie below it. */
  readonly home: string;
  /** Folders for LD_LIBRARY_PATH. */
  readonly libraryPath: string;
  /** Where it came from, in words. */
  readonly origin: string;
}

/**
 * What `look` finds in the folder of an earlier run, which has the `name`, else in freshly unpacked packages, else why neither can be had.
 * Only the unpacking needs the network.
 */
export async function unpackDebianPackages<Found>(
  name: string,
  packages: readonly string[],
  look: (unpacked: Unpacked) => Found | undefined,
): Promise<Found | string> {
  const cacheFolder = join(CACHE_FOLDER, name);
  const home = join(cacheFolder, "unpacked");
  const earlier = await lookIn(home, look);
  if (earlier) return earlier;

  const missing = ["apt-get", "dpkg-deb"].filter((program) => !runs(program));
  if (missing.length > 0) return `Debian's packages cannot be unpacked: no ${missing.join(", no ")} here`;

  await mkdir(cacheFolder, { recursive: true });
  const scratch = await mkdtemp(join(cacheFolder, "unpacking-"));
  try {
    const unpacked = await downloadAndUnpack(packages, scratch);
    const meanwhile = await lookIn(home, look);
    if (meanwhile) return meanwhile;
    // What lies there, if anything, does not run on this machine: it was unpacked for another one.
    await rm(home, { recursive: true, force: true });
    // A rename is whole or not at all. Of two runs at once the second finds the folder taken, and uses the first one's.
    await rename(unpacked, home).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  } catch (error) {
    return `Debian's packages could not be unpacked: ${(error as Error).message}`;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return (
    (await lookIn(home, look)) ?? `what was unpacked from Debian's ${packages.join(", ")} into ${home} does not run`
  );
}

async function lookIn<Found>(
  home: string,
  look: (unpacked: Unpacked) => Found | undefined,
): Promise<Found | undefined> {
  if (!existsSync(home)) return undefined;
  const origin = `Debian's package, unpacked in ${relative(process.cwd(), home)}`;
  return look({ home, libraryPath: await libraryFolders(home), origin });
}

async function downloadAndUnpack(packages: readonly string[], scratch: string): Promise<string> {
  const state = join(scratch, "state");
  const cache = join(scratch, "cache");
  const unpacked = join(scratch, "unpacked");
  for (const folder of [state, cache, unpacked]) await mkdir(folder);

  const privateFolders = [
    ["Dir::State", state],
    ["Dir::Cache", cache],
    // The machine's own list of installed packages, read only: what is there already is not fetched again.
    ["Dir::State::status", "/var/lib/dpkg/status"],
    // Without root apt can neither change to its own user nor take the system's locks, and needs neither here.
    ["APT::Sandbox::User", ""],
    ["Debug::NoLocking", "1"],
  ].flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  const apt = (...words: string[]) => run("apt-get", ["-qq", ...privateFolders, ...words]);

  // apt counts a source that it cannot reach as a warning only, and its warning explains more than the missing package.
  const warnings = apt("update");
  try {
    apt("install", "-y", "--no-install-recommends", "--download-only", ...packages);
  } catch (error) {
    throw new Error([(error as Error).message, warnings].map(firstLine).filter(Boolean).join(" - "), { cause: error });
  }
  const archives = join(cache, "archives");
  for (const file of await readdir(archives)) {
    if (file.endsWith(".deb")) run("dpkg-deb", ["-x", join(archives, file), unpacked]);
  }
  return unpacked;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}

async function libraryFolders(home: string): Promise<string> {
  const folders: string[] = [];
  for (const parent of [join(home, "usr", "lib"), join(home, "lib")]) {
    const names = existsSync(parent) ? await readdir(parent) : [];
    folders.push(...names.filter((name) => name.includes("-linux-")).map((name) => join(parent, name)));
  }
  return folders.join(delimiter);
}

function runs(program: string): boolean {
  try {
    run(program, ["--version"]);
    return true;
  } catch {
    return false;
  }
}

/** Answers what the program warned of. @throws Error with what it complained of. */
function run(program: string, args: string[]): string {
  const { error, status, stderr } = spawnSync(program, args, {
    encoding: "utf8",
    env: { ...process.env, LC_ALL: "C" },
  });
  if (error) throw error;
  if (status !== 0) throw new Error(stderr.trim() || `${program} ended with ${status}`);
  return stderr.trim();
}
