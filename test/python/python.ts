/** The Python of this machine, with the sources of the Python client. */
import { execFile, spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { REPOSITORY } from "../processes/command.js";

export const PYTHON_CLIENT = join(REPOSITORY, "clients", "python");

/** `python3` of PATH, or that of the system: a package of Debian's is a module of the latter only. */
export function pythonWith(...modules: readonly string[]): string | undefined {
  const script = ["import sys", "assert sys.version_info >= (3, 9)", ...modules.map((name) => `import ${name}`)].join(
    "\n",
  );
  return ["python3", "/usr/bin/python3"].find((program) => spawnSync(program, ["-c", script]).status === 0);
}

/** Undefined: there is none of 3.9 or later. */
export const PYTHON = pythonWith();
/** Tests of the client are skipped then. */
export const noPython = PYTHON === undefined;
if (noPython) console.log("the tests of the Python client are skipped: there is no python3 of 3.9 or later");

/** Where Python can import the client and its tests. */
export function pythonEnv(): NodeJS.ProcessEnv {
  const { CALLNUMBER_COORDINATOR: _, ...inherited } = process.env;
  const folders = [join(PYTHON_CLIENT, "src"), join(PYTHON_CLIENT, "tests")].join(":");
  return { ...inherited, PYTHONPATH: folders, PYTHONDONTWRITEBYTECODE: "1", PYTHONIOENCODING: "utf8" };
}

/** Starts a program of Python, or an option such as `-c`, in the environment of `pythonEnv`. */
export function startPython(words: readonly string[], env: NodeJS.ProcessEnv = {}) {
  return spawn(PYTHON as string, words, { env: { ...pythonEnv(), ...env } });
}

/** As `startPython`, to its end. */
export async function python(words: readonly string[], env: NodeJS.ProcessEnv = {}, input = "") {
  const child = startPython(words, env);
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      output[name] += text;
    });
  }
  child.stdin.end(input);
  const status = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { status, ...output };
}

/** Runs any program to its end; throws with what it wrote when it fails. */
export async function outputOf(program: string, ...words: readonly string[]): Promise<string> {
  return (await promisify(execFile)(program, words)).stdout;
}
