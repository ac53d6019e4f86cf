/** Before each test file: a script of Redis is read as the mutant of the run. */
import { createRequire, syncBuiltinESMExports } from "node:module";
import { fileURLToPath } from "node:url";
import { mutantOfRun } from "./mutants.js";

const mutant = mutantOfRun();
const fs = createRequire(import.meta.url)("node:fs") as { readFileSync: (...parameters: unknown[]) => unknown };
const { readFileSync } = fs;
fs.readFileSync = (path, ...more) => {
  const isMutated = path instanceof URL && fileURLToPath(path) === mutant?.file;
  return isMutated ? mutant.text : readFileSync(path, ...more);
};
syncBuiltinESMExports();
