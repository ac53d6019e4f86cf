/**
 * The labels of the embedded store's namespaces, in a table of their own that is made when the first are given: a store of a
 * release without labels opens as it is, and goes back to that release. Reads and writes within the caller's transaction.
 */
import type { DatabaseSyncInstance } from "@photostructure/sqlite";

const TABLE = `
  CREATE TABLE IF NOT EXISTS namespace_labels (
    namespace_id INTEGER PRIMARY KEY REFERENCES namespaces,
    json TEXT NOT NULL
  ) STRICT`;

export class SqliteLabels {
  readonly #database: DatabaseSyncInstance;

  constructor(database: DatabaseSyncInstance) {
    this.#database = database;
  }

  set(namespaceId: number, text: string): void {
    this.#database.exec(TABLE);
    this.#database
      .prepare("INSERT INTO namespace_labels VALUES (?, ?) ON CONFLICT DO UPDATE SET json = excluded.json")
      .run(namespaceId, text);
  }

  /** Undefined when none were given. */
  of(namespaceId: number): string | undefined {
    if (!this.#hasTable()) return undefined;
    const row = this.#database.prepare("SELECT json FROM namespace_labels WHERE namespace_id = ?").get(namespaceId);
    return (row as { readonly json: string } | undefined)?.json;
  }

  #hasTable(): boolean {
    const sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'namespace_labels'";
    return this.#database.prepare(sql).get() !== undefined;
  }
}
