/**
 * The examples of docs/storing-call-numbers.md, so that what the document says is what was run: statements are blocks
 * "sql ENGINE:NAME", what came back is the block "text ENGINE:NAME". And what the tests of each database begin with.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { REPOSITORY } from "../processes/command.js";
import type { SqlServer } from "../processes/sql-server.js";

const DOCUMENT = join(REPOSITORY, "docs", "storing-call-numbers.md");
const BLOCK = /^```(sql|text) (\w+):([\w-]+)\n([\s\S]*?)^```$/gm;
const OF_NO_ENGINE = /^```(sql|text)(?! (mariadb|postgres|sqlite):)/m;
const COLUMN_GAP = /\s{3,}/;

export const STORED = "2VznWE2i";
/** They differ in case alone; of runs 6 and 8. */
export const SAME_BUT_FOR_CASE = ["02q1iOKe", "02Q1IOKe"] as const;
/** Spelled like nothing that was ever issued, and each tempting in its own way. */
export const NO_CALL_NUMBERS = ["", "2VznWE2", "2VznWE2-", " 2VznWE2", "2VznWE\n2", "dxlGgaI4", "zzzzzzzz", "2VznWEé2"];
export const ALL_MESSAGES = "SELECT call_number, message FROM messages ORDER BY call_number";

export type Rows = string[][];

export class DocumentExamples {
  readonly #blocks = new Map<string, string>();
  readonly #unused = new Set<string>();

  /** Those of one engine. Each must be used until the end of the test file: the others would be claims that no test has tried. */
  constructor(engine: "mariadb" | "postgres" | "sqlite") {
    const document = readFileSync(DOCUMENT, "utf8");
    if (OF_NO_ENGINE.test(document)) throw new Error(`${DOCUMENT} has an example that no test runs`);
    for (const [, kind, ofEngine, name, text = ""] of document.matchAll(BLOCK)) {
      if (ofEngine === engine) this.#blocks.set(`${kind} ${name}`, text);
    }
    for (const block of this.#blocks.keys()) this.#unused.add(block);
  }

  /** The statements of the example. @throws Error when the document has none. */
  sql(name: string): string {
    return this.#block(`sql ${name}`);
  }

  /** The rows that the document shows below the example. @throws Error when it shows none. */
  rows(name: string): Rows {
    const lines = this.#block(`text ${name}`).trimEnd().split("\n");
    return lines.map((line) => line.split(COLUMN_GAP));
  }

  get unused(): string[] {
    return [...this.#unused];
  }

  #block(name: string): string {
    const text = this.#blocks.get(name);
    if (text === undefined) throw new Error(`docs/storing-call-numbers.md has no block ${name}`);
    this.#unused.delete(name);
    return text;
  }
}

/**
 * An empty database for each test, skipped with the reason where there is no server; the test of the table that all of them have; and at
 * the end of the file, whether every example was run. Returns what runs statements in the database of the test.
 */
export function testArchive(
  examples: DocumentExamples,
  start: () => Promise<SqlServer | string>,
  settings = "",
): (sql: string) => Promise<Rows> {
  let server: SqlServer;
  let unavailable: string | undefined;

  beforeAll(async () => {
    const started = await start();
    if (typeof started === "string") unavailable = started;
    else server = started;
  });
  beforeEach(async (context) => {
    context.skip(unavailable !== undefined, unavailable);
    await server.run(`CREATE DATABASE archive ${settings}`);
  });
  afterEach(async () => {
    if (unavailable === undefined) await server.run("DROP DATABASE archive");
  });
  afterAll(() => {
    if (unavailable === undefined) expect(examples.unused, "every example of the document is run").toEqual([]);
  });

  const run = (sql: string) => server.run(sql, "archive");
  testThatCaseCounts(examples, run);
  return run;
}

export function testThatCaseCounts(examples: DocumentExamples, run: (sql: string) => Rows | Promise<Rows>): void {
  const [first, other] = SAME_BUT_FOR_CASE;
  test("the table keeps both of two call numbers that differ in case alone, and finds each", async () => {
    await run(examples.sql("table"));
    await run(examples.sql("insert"));
    await run(`INSERT INTO messages VALUES ('${first}', 'first'), ('${other}', 'other')`);
    expect(await run(`SELECT message FROM messages WHERE call_number = '${other}'`)).toEqual([["other"]]);
    const all = await run(ALL_MESSAGES);
    expect(all).toEqual(
      [
        [other, "other"],
        [first, "first"],
        [STORED, "the message"],
      ].toSorted(),
    );
  });
}
