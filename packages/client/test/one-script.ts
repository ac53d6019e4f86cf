/**
 * The client as one script, as a V8 startup snapshot needs it: Node takes no imports but its own there.
 * Made from the sources by the compiler, each file wrapped in a function; a user's bundler does the same.
 */
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";

const REPOSITORY = join(import.meta.dirname, "..", "..", "..");
const TSC = join(REPOSITORY, "node_modules", "typescript", "bin", "tsc");
const ENTRIES = ["client/src/index.ts", "protocol/src/codec.ts", "protocol/src/http-api.ts"];

/** The text of a script that begins with `const { createClient, … }` and goes on with `main`. Works in an empty folder. */
export async function oneScript(folder: string, main: string): Promise<string> {
  const packages = join(REPOSITORY, "packages");
  await promisify(execFile)(process.execPath, [
    TSC,
    ...ENTRIES.map((path) => join(packages, path)),
    "--ignoreConfig",
    "--rootDir",
    packages,
    "--outDir",
    folder,
    "--skipLibCheck",
    "--types",
    "node",
    "--target",
    "es2023",
    "--module",
    "commonjs",
    "--moduleResolution",
    "bundler",
  ]);
  const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".js"));
  const modules = await Promise.all(files.map((name) => wrapped(folder, name)));
  return `${LOADER}${modules.join("")}const { createClient } = load("client/src/index.js");\n${main}`;
}

async function wrapped(folder: string, name: string): Promise<string> {
  const path = relative(folder, join(folder, name)).replaceAll("\\", "/");
  const text = await readFile(join(folder, name), "utf8");
  return `modules[${JSON.stringify(path)}] = function (exports, require) {\n${text}\n};\n`;
}

const LOADER = `
const modules = {}, loaded = {};
const resolved = (from, name) => name.startsWith("@callnumber/protocol/")
  ? "protocol/src/" + name.slice("@callnumber/protocol/".length) + ".js"
  : from.replace(/[^/]*$/, "") + name.slice("./".length);
function load(path) {
  if (loaded[path] === undefined) {
    loaded[path] = {};
    modules[path](loaded[path], (name) => name.startsWith("node:") ? require(name) : load(resolved(path, name)));
  }
  return loaded[path];
}
`;
