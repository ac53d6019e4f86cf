/**
 * The examples of docs/how-to/store-call-numbers.md as they are run: statements are blocks "sql ENGINE:NAME", a program is a block
 * "js ENGINE:NAME", the result of either is the block "text ENGINE:NAME". And the tests that all databases have.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { REPOSITORY } from "../processes/command.js";
import { type SqlServer, serverForFile } from "./sql-servers.js";

const DOCUMENT = join(REPOSITORY, "docs", "how-to", "store-call-numbers.md");
const BLOCK = /^```(sql|js|text) (\w+):([\w-]+)\n([\s\S]*?)^```$/gm;
const OF_NO_ENGINE = /^```(sql|js|text)(?! (mariadb|postgres|sqlite):)/m;
const COLUMN_GAP = /\s{3,}/;

export const STORED = "2VznWE2i";
/** They differ in case alone; of runs 6 and 8. */
export const SAME_BUT_FOR_CASE = ["02q1iOKe", "02Q1IOKe"] as const;
/** No call numbers, each for another reason. */
const MALFORMED = ["", "2VznWE2", "2VznWE2-", " 2VznWE2", "2VznWE\n2", "dxlGgaI4", "zzzzzzzz", "2VznWEé2", "2VznWE2ii"];
export const ALL_MESSAGES = "SELECT call_number, message FROM messages ORDER BY call_number";

type Rows = string[][];

/** Those of one engine. Each must be used until the end of the test file: the others would be claims that no test has tried. */
function documentExamples(engine: Engine["name"]) {
  const document = readFileSync(DOCUMENT, "utf8");
  if (OF_NO_ENGINE.test(document)) throw new Error(`${DOCUMENT} has an example that no test runs`);
  const blocks = new Map<string, string>();
  for (const [, kind, ofEngine, name, text = ""] of document.matchAll(BLOCK)) {
    if (ofEngine === engine) blocks.set(`${kind} ${name}`, text);
  }
  const unused = new Set(blocks.keys());
  const block = (name: string): string => {
    const text = blocks.get(name);
    if (text === undefined) throw new Error(`docs/how-to/store-call-numbers.md has no block ${name}`);
    unused.delete(name);
    return text;
  };
  return {
    unused,
    /** The statements of the example. @throws Error when the document has none. */
    sql: (name: string) => block(`sql ${name}`),
    /** The program of the example. @throws Error when the document has none. */
    js: (name: string) => block(`js ${name}`),
    /** What the document shows that the program prints. @throws Error when it shows nothing. */
    printed: (name: string) => block(`text ${name}`),
    /** The rows that the document shows below the example. @throws Error when it shows none. */
    rows(name: string): Rows {
      const lines = block(`text ${name}`).trimEnd().split("\n");
      return lines.map((line) => line.split(COLUMN_GAP));
    },
  };
}

interface Engine {
  readonly name: "mariadb" | "postgres" | "sqlite";
  /** Resolves to why there can be no server here, for `ctx.skip`. */
  readonly start: () => Promise<SqlServer | string>;
  /** Of the database. */
  readonly settings?: string;
  /** The text as a literal. Default: between quotes. */
  readonly literal?: (text: string) => string;
  /** Literals that the table rejects, too. */
  readonly alsoMalformed?: readonly string[];
  /** The errors of a malformed and of a repeated call number. */
  readonly malformed: RegExp;
  readonly duplicate: RegExp;
}

/**
 * Runs each test of the file in an empty database of its own, and first those that all engines have. At the end every example of the engine
 * must have been run. Returns the examples, and what runs statements in the database of the test.
 */
export function testArchive({
  name,
  start,
  settings = "",
  literal = (text) => `'${text}'`,
  alsoMalformed = [],
  malformed,
  duplicate,
}: Engine) {
  const examples = documentExamples(name);
  const server = serverForFile(start);
  let testCount = 0;
  beforeEach(async () => {
    testCount++;
    await server().run(`CREATE DATABASE archive ${settings}`);
    onTestFinished(async () => void (await server().run("DROP DATABASE archive")));
  });
  afterAll(() => {
    if (testCount > 0) expect([...examples.unused], "every example of the document is run").toEqual([]);
  });
  const run = (sql: string): Promise<Rows> => server().run(sql, "archive");

  test("the table keeps both of two call numbers that differ in case alone, and finds each", async () => {
    const [first, other] = SAME_BUT_FOR_CASE;
    await run(examples.sql("table"));
    await run(examples.sql("insert"));
    await run(`INSERT INTO messages VALUES ('${first}', 'first'), ('${other}', 'other')`);
    expect(await run(`SELECT message FROM messages WHERE call_number = '${other}'`)).toEqual([["other"]]);
    const all = [
      [other, "other"],
      [first, "first"],
      [STORED, "the message"],
    ];
    expect(await run(ALL_MESSAGES)).toEqual(all.toSorted());
  });

  test("the table rejects what is not a call number", async () => {
    await run(examples.sql("table"));
    for (const text of [...MALFORMED.map(literal), ...alsoMalformed]) {
      await expect(run(`INSERT INTO messages VALUES (${text}, 'm')`), text).rejects.toThrow(malformed);
    }
    await run("INSERT INTO messages VALUES ('dxlGgaI3', 'the greatest'), ('00000000', 'the least')");
  });

  test("the plain INSERT is create-only: the second one fails, and the first message stays", async () => {
    await run(examples.sql("table"));
    await run(`INSERT INTO messages VALUES ('${STORED}', 'the first message')`);
    await expect(run(examples.sql("insert"))).rejects.toThrow(duplicate);
    expect(await run(ALL_MESSAGES)).toEqual([[STORED, "the first message"]]);
  });

  return { examples, run };
}
