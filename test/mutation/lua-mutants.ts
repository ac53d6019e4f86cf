/** Every refusal of a Redis script left out, every comparison of the one that writes records, and every write: one mutant each. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const LUA_FOLDER = join(import.meta.dirname, "..", "..", "packages", "coordinator", "lua");

export interface LuaMutant {
  /** `file:line`, as an editor opens it, and the number of the mutant in it. */
  readonly name: string;
  readonly file: string;
  readonly before: string;
  /** The script without what the mutant leaves out. */
  readonly text: string;
}

const REFUSES = /\breturn (refuse\(|nil, (word|'[A-Z])|'[A-Z]+', |word, detail)/;
const CONDITION = /\b(else)?if (.+) then\b/;
const WRITES = /redis\.call\('(HSET|HDEL|XADD|XDEL|PERSIST|RENAMENX)'/g;
/** It knows no refusal: what does not compare alike is answered. */
const COMPARING = "apply.lua";
/** One comparison, or what must be there, of a line that says whether the change is fit. */
const COMPARISONS =
  /not \w+|string\.match\(text, [^)]*\) and |[\w.#]+(?:\((?:[^()]|\([^()]*\))*\)|\[\w+\])?(?: \+ \w+)? (?:==|~=|<=|>=) (?:'\w*'|'-'|[\w.]+(?:\((?:[^()]|\([^()]*\))*\)|\[\w+\])?)/g;

export function luaMutants(): readonly LuaMutant[] {
  return readdirSync(LUA_FOLDER).flatMap((file) => {
    const lines = readFileSync(join(LUA_FOLDER, file), "utf8").split("\n");
    const head = lines.findIndex((line) => line.startsWith("]]"));
    const replaced = (at: number, text: string, number = ""): LuaMutant => {
      const before = (lines[at] as string).trim();
      return { name: `${file}:${at + 1}${number}`, file, before, text: lines.toSpliced(at, 1, text).join("\n") };
    };
    return lines.flatMap((line, index) => {
      const [code = ""] = line.split("--", 1);
      if (index <= head) return [];
      if (code.search(WRITES) >= 0) return [replaced(index, line.replaceAll(WRITES, "pcall(type, '$1'"))];
      if (file === COMPARING) {
        return [...code.matchAll(COMPARISONS)].map(({ 0: found, index: at }, number) => {
          const leftOut = found.endsWith(" and ") ? "" : /^not |~=/.test(found) ? "false" : "true";
          return replaced(index, line.slice(0, at) + leftOut + line.slice(at + found.length), `#${number}`);
        });
      }
      if (!REFUSES.test(code)) return [];
      // A return alone stands below its condition, or is the last word of a function.
      const at = CONDITION.test(code) ? index : index - 1;
      const condition = lines[at] as string;
      if (at < index && !condition.trimEnd().endsWith("then")) return [];
      return [replaced(at, condition.replace(CONDITION, "$1if false then"))];
    });
  });
}
