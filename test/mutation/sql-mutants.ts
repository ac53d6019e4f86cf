/** Every comparison of PostgreSQL's statements left out, every lock and every maximum: one mutant each. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutant } from "./mutants.js";

const FOLDER = join(import.meta.dirname, "..", "..", "packages", "coordinator", "src", "stores", "postgres");
const SOURCE = join(FOLDER, "statements.ts");

/** What standbys have: their tests are slow (postgres-store.slow.test.ts), and notice it. */
const OF_STANDBYS = /^flush_lsn/;
/** A name, a call or a part of an array, maybe with something added; or what the source puts together. */
const OPERAND = String.raw`(?:\$\{)?[\w.$]+(?:\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\]+)?\}?(?: [+-] [\w.]+)?`;
/** Where a condition begins: an assignment begins elsewhere. */
const BEFORE = String.raw`(?<=(?:WHERE|AND|ON|OR|WHEN|n\.t,) \(?|= \`|leases\("|^ +(?=\$))`;
const LEFT_OUT = new RegExp(
  [
    `${BEFORE}${OPERAND} (?:(?:=|>=|<=|>) ${OPERAND}|BETWEEN ${OPERAND} AND ${OPERAND})(?![\\w(])`,
    String.raw`seen\.is_whole|(?<not>NOT ask\.is_ledger_reached)`,
    "(?<lock> FOR UPDATE(?: OF n)?)",
    "(?<write>FROM written(?=,))",
    String.raw`greatest\((?<first>[^,]+), [^()]+\)`,
  ].join("|"),
  "g",
);

export function sqlMutants(): readonly Mutant[] {
  const lines = readFileSync(SOURCE, "utf8").split("\n");
  const head = lines.findIndex((line) => line.startsWith("export function statementsIn"));
  return lines.flatMap((line, index) => {
    if (index <= head) return [];
    const found = [...line.matchAll(LEFT_OUT)].filter(([text]) => !OF_STANDBYS.test(text));
    return found.map(({ 0: before, index: at, groups = {} }, number): Mutant => {
      const { not, lock, write, first } = groups;
      const other = lock ? "" : not ? "false" : write ? "FROM (SELECT FROM written LIMIT 0) AS written" : "true";
      const instead = first ?? other;
      const text = lines.toSpliced(index, 1, line.slice(0, at) + instead + line.slice(at + before.length)).join("\n");
      return { name: `statements.ts:${index + 1}#${number}`, file: SOURCE, before, text };
    });
  });
}
