/**
 * Part of `npm run pack`: the Python client as wheel and sdist, by Python's `build` with the `setuptools` of this machine, without a network.
 * `python` finds a Python for the other scripts, too.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const CLIENT = fileURLToPath(new URL("../clients/python", import.meta.url));
/** What a checkout may hold and a package must not. */
const LEFTOVERS = /^(?:__pycache__|\.mypy_cache|.*\.egg-info)$/;

/** Packs into `python/` of the directory: npm reads each `*.tar.gz` next to its own. Returns the paths, or says on standard error why none. */
export function packPython(directory) {
  const program = python("build", "setuptools", "wheel");
  if (program === undefined) {
    const missing =
      "no python3 has the modules build, setuptools and wheel (Debian: python3-build, python3-setuptools)";
    console.error(`skipped the Python client: ${missing}`);
    return [];
  }
  const target = join(directory, "python");
  const work = mkdtempSync(join(tmpdir(), "callnumber-pack-python-"));
  try {
    mkdirSync(target, { recursive: true });
    // The build leaves files next to the sources.
    cpSync(CLIENT, work, { recursive: true, filter: (path) => !LEFTOVERS.test(basename(path)) });
    const words = ["-m", "build", "--no-isolation", "--outdir", target, work];
    const { status, stdout, stderr } = spawnSync(program, words, { encoding: "utf8" });
    if (status !== 0) throw new Error(`python3 -m build failed: ${stdout}${stderr}`);
  } finally {
    rmSync(work, { recursive: true });
  }
  return readdirSync(target).map((name) => join(target, name));
}

/** `python3` of PATH, or of the system: Debian's packages are modules of the latter alone. Undefined where neither has the modules. */
export function python(...modules) {
  const script = ["import sys", "assert sys.version_info >= (3, 9)", ...modules.map((name) => `import ${name}`)];
  const hasAll = (program) => spawnSync(program, ["-c", script.join("\n")]).status === 0;
  return ["python3", "/usr/bin/python3"].find(hasAll);
}
