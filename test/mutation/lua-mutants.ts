/** Every comparison of a Redis script left out, and every write: one mutant each. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutant } from "./mutants.js";

const LUA_FOLDER = join(import.meta.dirname, "..", "..", "packages", "coordinator", "lua");

const WRITES = /redis\.call\('(HSET|HDEL|XADD|XDEL|PERSIST|RENAMENX)'/g;
/** One comparison, or what must be there. */
const COMPARISONS =
  /not \w+|string\.match\(text, [^)]*\) and |[\w.#]+(?:\((?:[^()]|\([^()]*\))*\)|\[\w+\])?(?: \+ \w+)? (?:==|~=|<=|>=) (?:'\w*'|'-'|[\w.]+(?:\((?:[^()]|\([^()]*\))*\)|\[\w+\])?)/g;

export function luaMutants(): readonly Mutant[] {
  return readdirSync(LUA_FOLDER).flatMap((file) => {
    const lines = readFileSync(join(LUA_FOLDER, file), "utf8").split("\n");
    const head = lines.findIndex((line) => line.startsWith("]]"));
    const replaced = (at: number, text: string, number = ""): Mutant => {
      const before = (lines[at] as string).trim();
      const mutated = lines.toSpliced(at, 1, text).join("\n");
      return { name: `${file}:${at + 1}${number}`, file: join(LUA_FOLDER, file), before, text: mutated };
    };
    return lines.flatMap((line, index) => {
      const [code = ""] = line.split("--", 1);
      if (index <= head) return [];
      if (code.search(WRITES) >= 0) return [replaced(index, line.replaceAll(WRITES, "pcall(type, '$1'"))];
      return [...code.matchAll(COMPARISONS)].map(({ 0: found, index: at }, number) => {
        const leftOut = found.endsWith(" and ") ? "" : /^not |~=/.test(found) ? "false" : "true";
        return replaced(index, line.slice(0, at) + leftOut + line.slice(at + found.length), `#${number}`);
      });
    });
  });
}
