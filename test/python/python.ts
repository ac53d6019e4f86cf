/** The Python of this machine, and the Python client in it as its sources are. Where something is missing, tests give the reason. */
import { execFile, spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { REPOSITORY } from "../processes/command.js";

export const PYTHON_CLIENT = join(REPOSITORY, "clients", "python");
const OLDEST = "3.9";

/** `python3` of PATH, or that of the system: a package of Debian's is a module of the latter only. */
const pythons = ["python3", "/usr/bin/python3"];

/** Why there is no Python that has these modules; undefined where there is one. */
export function withoutPython(...modules: readonly string[]): string | undefined {
  if (pythonWith(...modules) !== undefined) return undefined;
  return `there is no python3 of ${OLDEST} or later${modules.length > 0 ? ` with ${modules.join(", ")}` : ""}`;
}

export function pythonWith(...modules: readonly string[]): string | undefined {
  const [major, minor] = OLDEST.split(".");
  const script = ["import sys", `assert sys.version_info >= (${major}, ${minor})`, ...modules.map((name) => `import ${name}`)];
  return pythons.find((python) => spawnSync(python, ["-c", script.join("\n")]).status === 0);
}

/** What a program of Python needs to find the client. */
export function environmentOf(env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const { CALLNUMBER_COORDINATOR: _, ...inherited } = process.env;
  return { ...inherited, PYTHONPATH: join(PYTHON_CLIENT, "src"), PYTHONDONTWRITEBYTECODE: "1", ...env };
}

/** Runs a program of Python to its end. */
export async function python(words: readonly string[], env: NodeJS.ProcessEnv = {}, cwd = PYTHON_CLIENT) {
  const options = { cwd, env: environmentOf(env), maxBuffer: 2 ** 28 };
  return await promisify(execFile)(pythonWith() as string, words, options).then(
    ({ stdout, stderr }) => ({ status: 0, stdout, stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ status: code, stdout, stderr }),
  );
}

/** Starts a program of Python. */
export function startPython(words: readonly string[], env: NodeJS.ProcessEnv) {
  const options = { cwd: PYTHON_CLIENT, env: environmentOf(env), stdio: ["ignore", "pipe", "pipe"] as const };
  return spawn(pythonWith() as string, words, { ...options, stdio: ["ignore", "pipe", "pipe"] });
}
