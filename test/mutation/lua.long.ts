/** Each comparison and each write of the Redis scripts left out, one at a time: the tests of `npm test` notice. Part of `npm run test:mutation`. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { type LuaMutant, luaMutants } from "./lua-mutants.js";

/** The quick ones first: most mutants go no further. */
const STAGES = [
  ["redis-keys", "redis-leases-together", "redis-apply", "stores.test"],
  ["apply", "two-stores"],
  ["redis-", "ledger-", "store-copy", "move.test"],
];
const AT_ONCE = 2;

test("every comparison and write that is left out of a script is noticed", async () => {
  const mutants = luaMutants();
  const left = [...mutants];
  const survivors: string[] = [];
  const worker = async () => {
    for (let mutant = left.shift(); mutant !== undefined; mutant = left.shift()) {
      if (await isNoticed(mutant)) continue;
      survivors.push(`${mutant.name}: ${mutant.before}`);
      console.log(`Survives: ${survivors.at(-1)}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  console.log(`Lua: ${mutants.length - survivors.length} of ${mutants.length} mutants noticed`);
  expect(survivors.sort()).toEqual([]);
});

async function isNoticed({ name }: LuaMutant): Promise<boolean> {
  for (const files of STAGES) if ((await codeOf(name, files)) !== 0) return true;
  return false;
}

async function codeOf(name: string, files: readonly string[]): Promise<number | null> {
  const words = ["vitest", "run", "--config", "test/mutation/lua.config.ts", ...files];
  const env = { ...process.env, CALLNUMBER_LUA_MUTANT: name };
  const [code] = await once(spawn("npx", words, { env, stdio: "ignore" }), "close");
  return code as number | null;
}
