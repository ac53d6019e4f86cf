/**
 * Each comparison of what a store sends to its server left out, and each write, one at a time: the tests of `npm test` notice. Part of
 * `npm run test:mutation`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { MUTANT_VARIABLE, MUTANTS } from "./mutants.js";

/** The quick ones first: most mutants go no further. */
const STAGES = {
  lua: [
    ["redis-keys", "redis-leases-together", "apply-edited", "stores.test"],
    ["apply", "two-stores"],
    ["redis-", "ledger-", "store-copy", "move.test"],
  ],
  sql: [
    ["apply", "--testNamePattern=PostgreSQL"],
    ["apply-edited", "postgres-store", "stores.test", "two-stores", "--testNamePattern=PostgreSQL"],
    ["ledger-", "store-copy", "move", "--testNamePattern=PostgreSQL"],
  ],
};
const AT_ONCE = 2;

const kind = process.env["CALLNUMBER_MUTATE"] as keyof typeof STAGES;

test(`every comparison and write that is left out is noticed: ${kind}`, async () => {
  const stages = STAGES[kind];
  for (const words of stages) expect(await isPassed(words), `without a mutant: ${words.join(" ")}`).toBe(true);
  const mutants = MUTANTS[kind]();
  const left = [...mutants];
  const survivors: string[] = [];
  const worker = async () => {
    for (let mutant = left.shift(); mutant !== undefined; mutant = left.shift()) {
      if (await isNoticed(mutant.name, stages)) continue;
      survivors.push(`${mutant.name}: ${mutant.before}`);
      console.log(`Survives: ${survivors.at(-1)}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  console.log(`${kind}: ${mutants.length - survivors.length} of ${mutants.length} mutants noticed`);
  expect(survivors.sort()).toEqual([]);
});

async function isNoticed(name: string, stages: readonly (readonly string[])[]): Promise<boolean> {
  for (const words of stages) if (!(await isPassed(words, { [MUTANT_VARIABLE]: name }))) return true;
  return false;
}

async function isPassed(words: readonly string[], mutant: NodeJS.ProcessEnv = {}): Promise<boolean> {
  const all = ["vitest", "run", "--config", "test/mutation/mutant.config.ts", ...words];
  const [code] = await once(spawn("npx", all, { env: { ...process.env, ...mutant }, stdio: "ignore" }), "close");
  return code === 0;
}
