/** Before each test file: a script of Redis is read as the mutant that the environment names. */
import { createRequire, syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LUA_FOLDER, luaMutants } from "./lua-mutants.js";

const name = process.env["CALLNUMBER_LUA_MUTANT"];
const mutant = luaMutants().find((one) => one.name === name);
if (mutant === undefined) throw new Error(`there is no mutant "${name}"`);

const fs = createRequire(import.meta.url)("node:fs") as { readFileSync: (...parameters: unknown[]) => unknown };
const { readFileSync } = fs;
fs.readFileSync = (path, ...more) => {
  const isMutated = path instanceof URL && fileURLToPath(path) === join(LUA_FOLDER, mutant.file);
  return isMutated ? mutant.text : readFileSync(path, ...more);
};
syncBuiltinESMExports();
