/** What the stores send to their servers, with one thing of it left out: the mutants that Stryker does not make. */
import { luaMutants } from "./lua-mutants.js";
import { sqlMutants } from "./sql-mutants.js";

export interface Mutant {
  /** `file:line`, as an editor opens it, and the number of the mutant in it. */
  readonly name: string;
  /** Path of the source. */
  readonly file: string;
  readonly before: string;
  /** The source without what the mutant leaves out. */
  readonly text: string;
}

export const MUTANTS = { lua: luaMutants, sql: sqlMutants };

/** Names the mutant of a run of the tests, in the environment. */
export const MUTANT_VARIABLE = "CALLNUMBER_MUTANT";

/** Returns the mutant that the environment names; undefined where it names none. @throws Error when there is none of that name. */
export function mutantOfRun(): Mutant | undefined {
  const name = process.env[MUTANT_VARIABLE];
  if (name === undefined) return;
  const mutant = Object.values(MUTANTS)
    .flatMap((mutants): readonly Mutant[] => mutants())
    .find((one) => one.name === name);
  if (mutant === undefined) throw new Error(`there is no mutant "${name}"`);
  return mutant;
}
