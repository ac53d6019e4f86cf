/**
 * What the tests of both servers begin with: an empty database for each of them, skipped with the reason where there is no server; and
 * the table of the document, which keeps what it is there for.
 */
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { SqlServer } from "../processes/sql-server.js";
import type { DocumentExamples } from "./document-examples.js";
import { SAME_BUT_FOR_CASE, STORED } from "./numbers-of-tests.js";

export const ALL_MESSAGES = "SELECT call_number, message FROM messages ORDER BY call_number";

type Run = SqlServer["run"];

/** `settings` stand behind CREATE DATABASE. Answers what runs statements in the database of the test. */
export function emptyArchives(
  start: () => Promise<SqlServer | string>,
  settings = "",
): (sql: string) => ReturnType<Run> {
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

  return (sql) => server.run(sql, "archive");
}

export function testThatCaseCounts(run: (sql: string) => ReturnType<Run>, examples: DocumentExamples): void {
  const [first, other] = SAME_BUT_FOR_CASE;
  test("the table keeps both of two call numbers that differ in case alone, and finds each", async () => {
    await run(examples.sql("table"));
    await run(examples.sql("insert"));
    await run(`INSERT INTO messages VALUES ('${first}', 'first'), ('${other}', 'other')`);
    expect(await run(`SELECT message FROM messages WHERE call_number = '${other}'`)).toEqual([["other"]]);
    expect(await run(ALL_MESSAGES)).toEqual(
      [
        [other, "other"],
        [first, "first"],
        [STORED, "the message"],
      ].toSorted(),
    );
  });
}
