/**
 * The records of the embedded store. However many steps of one transaction change a record, it is written once, in front of the
 * commit; until then each step finds what the one before it has left. Reads and writes within the caller's transaction.
 */
import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";
import {
  type NamespaceState,
  type ObservedFields,
  RECORD_FIELDS,
  type StoredFields,
  storedFields,
} from "../guard/record.js";
import { notInitialised } from "../guard/refusals.js";
import { preparedAll } from "./sqlite-turns.js";

/** All fields are empty while the ledger is taken over from another store: the record comes last. */
type NamespaceRow = { readonly [K in keyof StoredFields]: string | null } & {
  readonly id: number;
  readonly name: string;
};

/** A namespace as it stands within the transaction under way, or in the file when there is none. */
export interface StandingNamespace {
  readonly id: number;
  /** Empty when it has no record. */
  readonly fields: ObservedFields;
}

const KEPT_COLUMNS = [...RECORD_FIELDS, "k"] as const;

const STATEMENTS = {
  namespace: "SELECT * FROM namespaces WHERE name = ?",
  namespaces: "SELECT * FROM namespaces ORDER BY name",
  addName: "INSERT INTO namespaces (name) VALUES (?)",
  write: `UPDATE namespaces SET ${KEPT_COLUMNS.map((name) => `${name} = ?`).join(", ")} WHERE id = ?`,
} as const;

export class SqliteRecords {
  readonly #statements: Record<keyof typeof STATEMENTS, StatementSyncInstance>;
  /** Those that the transaction under way has changed, and that are not written yet. */
  readonly #saved = new Map<string, { readonly id: number; readonly fields: StoredFields }>();

  constructor(database: DatabaseSyncInstance) {
    this.#statements = preparedAll(database, STATEMENTS);
  }

  /** The records in the file, by name. */
  all(): ReadonlyMap<string, ObservedFields> {
    const rows = this.#statements.namespaces.all() as unknown as NamespaceRow[];
    return new Map(rows.map((row) => [row.name, foundFields(row)] as const).filter(([, fields]) => hasRecord(fields)));
  }

  /** Whether or not it has a record. */
  ifThere(namespace: string): StandingNamespace | undefined {
    const saved = this.#saved.get(namespace);
    if (saved !== undefined) return saved;
    const row = this.#statements.namespace.get(namespace) as unknown as NamespaceRow | undefined;
    return row && { id: row.id, fields: foundFields(row) };
  }

  /** @throws CoordinatorError `namespace_not_initialised` when it has no record. */
  of(namespace: string): StandingNamespace {
    const standing = this.ifThere(namespace);
    if (standing === undefined || !hasRecord(standing.fields)) throw notInitialised(namespace);
    return standing;
  }

  /** The id of a namespace that need not have a record. */
  idOf(namespace: string): number {
    const known = this.ifThere(namespace);
    if (known !== undefined) return known.id;
    return Number(this.#statements.addName.run(namespace).lastInsertRowid);
  }

  /** Keeps a record, to be written by `write`. */
  save(record: NamespaceState): { readonly id: number; readonly fields: StoredFields } {
    const saved = { id: this.idOf(record.namespace), fields: storedFields(record) };
    this.#saved.set(record.namespace, saved);
    return saved;
  }

  /** Before the commit. */
  write(): void {
    for (const { id, fields } of this.#saved.values()) {
      this.#statements.write.run(...KEPT_COLUMNS.map((name) => fields[name]), id);
    }
  }

  /** The transaction is at its end, whichever. */
  forget(): void {
    this.#saved.clear();
  }
}

export function hasRecord(fields: ObservedFields): boolean {
  return Object.keys(fields).length > 0;
}

/** A column that is empty is a field that is missing. */
function foundFields(row: NamespaceRow): ObservedFields {
  return Object.fromEntries(KEPT_COLUMNS.flatMap((name) => (row[name] === null ? [] : [[name, row[name]]])));
}
