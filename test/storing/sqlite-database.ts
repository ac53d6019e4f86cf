/** A SQLite in memory that is spoken to as the servers are: statements in, rows of text out. */
import { DatabaseSync } from "@photostructure/sqlite";
import { onTestFinished } from "vitest";

export type RunSqlite = (sql: string) => string[][];

/** A database that ends with the test. Statements end with `;` at the end of a line. */
export function sqliteForTest(): RunSqlite {
  const database = new DatabaseSync(":memory:");
  onTestFinished(() => database.close());
  return (sql) =>
    sql
      .split(/;\s*$/m)
      .filter((statement) => statement.trim() !== "")
      .flatMap((statement) => {
        const rows = database.prepare(statement).all() as Record<string, unknown>[];
        return rows.map((row) => Object.values(row).map((value) => (value === null ? "NULL" : String(value))));
      });
}
