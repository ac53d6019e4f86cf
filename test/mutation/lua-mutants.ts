/** Every refusal of a Redis script left out, and every write: one mutant each. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const LUA_FOLDER = join(import.meta.dirname, "..", "..", "packages", "coordinator", "lua");

export interface LuaMutant {
  /** `file:line`, as an editor opens it. */
  readonly name: string;
  readonly file: string;
  readonly before: string;
  /** The script without what the mutant leaves out. */
  readonly text: string;
}

const REFUSES = /\breturn (refuse\(|nil, (word|'[A-Z])|'[A-Z]+', |word, detail)/;
const CONDITION = /\b(else)?if (.+) then\b/;
const WRITES = /redis\.call\('(HSET|HDEL|XADD|XDEL|PERSIST|RENAMENX)'/g;

export function luaMutants(): readonly LuaMutant[] {
  return readdirSync(LUA_FOLDER).flatMap((file) => {
    const lines = readFileSync(join(LUA_FOLDER, file), "utf8").split("\n");
    const replaced = (at: number, text: string): LuaMutant => {
      const before = (lines[at] as string).trim();
      return { name: `${file}:${at + 1}`, file, before, text: lines.toSpliced(at, 1, text).join("\n") };
    };
    return lines.flatMap((line, index) => {
      const [code = ""] = line.split("--", 1);
      if (code.search(WRITES) >= 0) return [replaced(index, line.replaceAll(WRITES, "pcall(type, '$1'"))];
      if (!REFUSES.test(code)) return [];
      // A return alone stands below its condition, or is the last word of a function.
      const at = CONDITION.test(code) ? index : index - 1;
      const condition = lines[at] as string;
      if (at < index && !condition.trimEnd().endsWith("then")) return [];
      return [replaced(at, condition.replace(CONDITION, "$1if false then"))];
    });
  });
}
