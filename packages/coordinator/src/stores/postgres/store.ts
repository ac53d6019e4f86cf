/**
 * State in PostgreSQL: a record, a ledger and holders for each namespace, in the tables of one schema (sql/store.sql). A step of the guard is one
 * statement, and one round trip.
 * Guarantees: G4 (docs/guarantees.md).
 */
import { hash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { LEDGER_ID_MAX, ledgerIdOf, type Progress } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { CoordinatorError } from "../../errors.js";
import { namespaceRecordIn } from "../../guard/checks.js";
import {
  checksumOf,
  fieldsOf,
  type NamespaceRecord,
  type ObservedFields,
  quorumOf,
  RECORD_FIELDS,
} from "../../guard/record.js";
import type {
  Applied,
  Change,
  CountedNodes,
  Expected,
  Finding,
  Observed,
  PreflightScope,
} from "../../guard/step-store.js";
import { freshNonce } from "../../guard/verify-outcome.js";
import { lastLedgerIdOf } from "../../ledger/lease-identity.js";
import { type LeaseQuery, type LedgerTrim, NO_RETENTION, type Retention, type Store } from "../store.js";
import {
  holderJsonOf,
  isAsTrimExpects,
  ledgerEntriesOf,
  observedLocally,
  type StoredLease,
  wholeIn,
} from "../stored-shapes.js";
import type { PostgresAddress } from "./address.js";
import { PostgresConnections, type Row, type Send } from "./connection.js";
import { postgresFindings } from "./findings.js";
import { prepareSchema, type SchemaOptions } from "./schema.js";
import { type Ask, RECORD_COLUMNS, type Statements, statementsIn, stillFieldsOf } from "./statements.js";

export interface PostgresStoreOptions extends PostgresAddress, SchemaOptions {
  /** How long connecting, and each answer, may take. Default 5,000 ms. */
  readonly timeoutMs?: number;
}

/** As long as on Redis, where the other nodes are waited for. */
const ACKNOWLEDGED_WITHIN_MS = 1_000;
const LOOK_AGAIN_MS = 2;
/** Without its key, each step would add to every row. */
const SEVERAL_ROWS =
  "the store's table namespaces has several rows of one namespace: it has lost its primary key. Restore the schema, or remove all rows but the latest and add the key";

/** The record, and up to which ledger id the ledger was trimmed. */
interface Locked {
  readonly fields: ObservedFields;
  readonly through: number;
}

export class PostgresStore implements Store {
  readonly kind = "postgres";
  readonly isExclusive = false;
  /** Whether its tables were made when this store was opened. */
  readonly isNew: boolean;
  readonly schema: string;
  readonly #address: PostgresAddress;
  readonly #connections: PostgresConnections;
  readonly #statements: Statements;

  private constructor(address: PostgresAddress, connections: PostgresConnections, isNew: boolean) {
    this.schema = address.schema;
    this.#address = address;
    this.#connections = connections;
    this.#statements = statementsIn(address.schema);
    this.isNew = isNew;
  }

  /** @throws CoordinatorError `store_not_found`, `store_schema_unsupported`, `store_unavailable`. */
  static async open({ timeoutMs, ...options }: PostgresStoreOptions): Promise<PostgresStore> {
    const connections = new PostgresConnections(options, timeoutMs);
    try {
      return new PostgresStore(options, connections, await prepareSchema(connections, options));
    } catch (error) {
      await connections.close();
      throw error;
    }
  }

  async read(namespace: string): Promise<Observed> {
    return (await this.#connections.use("steps", (send) => this.#readBy(send, namespace))).value;
  }

  async #readBy(send: Send, namespace: string): Promise<Observed> {
    const nonce = freshNonce();
    const { rows } = await send(this.#statements.read, [JSON.stringify({ nonce, namespace } satisfies Partial<Ask>)]);
    return this.#foundIn(rows, nonce).observed;
  }

  async readNamespace(namespace: string): Promise<NamespaceRecord> {
    return namespaceRecordIn(await this.read(namespace), namespace);
  }

  async apply(namespace: string, expected: Expected, change: Change): Promise<Applied | Observed> {
    const ask = askOf(namespace, expected, change);
    const { applyRising, applyExactly } = this.#statements;
    const parameters = [JSON.stringify(ask)];
    const { value, warnings } =
      expected.rising === undefined
        ? await this.#locked(namespace, (send) => send(applyExactly, parameters))
        : await this.#connections.use("steps", (send) => send(applyRising, parameters));
    return await this.#answerIn(value.rows, ask.nonce, change, warnings);
  }

  /** For more nodes than one the server is looked at again: what it waited for may have been changed meanwhile. */
  async #answerIn(
    rows: readonly Row[],
    nonce: string,
    { record }: Change,
    warnings: readonly string[],
  ): Promise<Applied | Observed> {
    const { observed, row } = this.#foundIn(rows, nonce);
    if (row["written_mark"] === null) return observed;
    const { written_mark: highWaterMark, written_time: changedAtMs } = row;
    // A trigger of another program may have written something else.
    const isWritten = isWhole(highWaterMark) && isWhole(changedAtMs) && row["is_as_asked"] === true;
    if (!isWritten) throw this.#connections.unexpectedAnswer();
    const applied = { highWaterMark, changedAtMs, movedAside: [] };
    if (quorumOf(record.nodeCount) === 0) return { ...applied, acknowledgedCount: 0, check: undefined };
    const { value } = await this.#connections.use("steps", async (send) => ({
      // A wait that was canceled reports success, and this warning.
      count: warnings.length > 0 ? 0 : await this.#acknowledgedCount(send, quorumOf(record.nodeCount), observed.server),
      now: await this.#readBy(send, record.namespace),
    }));
    const { keys, server } = value.now;
    const generation = Number(keys.fields["g"] ?? Number.NaN);
    const check = { role: server.role, epoch: server.epoch ?? "-", generation };
    return { ...applied, acknowledgedCount: value.count, check };
  }

  /**
   * How many standbys that commits wait for have on their disks what this server has on its own by now: also what was just committed. Whether its
   * commit waited can't be known: a new setting is shown before it is in force. A pooler may lead to another server than the one that wrote: what that
   * one's standbys have counts for nothing.
   */
  async #acknowledgedCount(send: Send, quorum: number, wrote: Observed["server"]): Promise<number> {
    const givenUpAtMs = performance.now() + ACKNOWLEDGED_WITHIN_MS;
    for (let lsn: unknown = null; ; ) {
      const [row = {}] = (await send(this.#statements.acknowledged, [lsn])).rows;
      const isSame = row["role"] === wrote.role && row["epoch"] === wrote.epoch;
      const count = isSame ? Number(row["acknowledged"]) : 0;
      if (count >= quorum || !isSame || Number(row["connected"]) < quorum || performance.now() > givenUpAtMs)
        return count;
      lsn = row["lsn"];
      await delay(LOOK_AGAIN_MS);
    }
  }

  async listNamespaces(): Promise<readonly string[]> {
    return (await this.#rows(this.#statements.names, [])).map(({ name }) => String(name));
  }

  async leases(namespace: string, { from, sinceMs, direction, limit }: LeaseQuery): Promise<readonly LedgerEntry[]> {
    const { oldest, newest, since } = this.#statements;
    const [statement, begin] =
      sinceMs !== undefined
        ? [since, sinceMs]
        : direction === "oldest_first"
          ? [oldest, from ?? 0]
          : [newest, Math.min(from ?? LEDGER_ID_MAX, LEDGER_ID_MAX)];
    return leasesIn(await this.#rows(statement, [namespace, begin, limit]));
  }

  async hasHolder(_namespace: string, name: string): Promise<boolean> {
    const [row] = await this.#rows(this.#statements.hasHolder, [name]);
    return row?.["found"] === true;
  }

  async setProgress(namespace: string, lease: LedgerEntry, progress: Progress): Promise<boolean> {
    const columns = (one: Progress | null) => [one?.run, one?.lastSequence, one?.state, one?.reportedAtMs];
    const parameters = [namespace, lastLedgerIdOf(lease), ...columns(progress), ...columns(lease.progress)];
    const { value } = await this.#connections.use("reads", (send) => send(this.#statements.setProgress, parameters));
    return value.rowCount === 1;
  }

  async preflight({ asOperator = false, planned }: PreflightScope = {}): Promise<readonly Finding[]> {
    const namespaces: CountedNodes[] = planned === undefined ? [] : [planned];
    for (const namespace of await this.listNamespaces()) {
      if (namespace === planned?.namespace) continue;
      const nodeCount = wholeIn((await this.read(namespace)).keys.fields["n"]);
      // Of a record that can't be read its own steps report why.
      if (nodeCount !== undefined) namespaces.push({ namespace, nodeCount });
    }
    return await postgresFindings(this.#connections, { address: this.#address, asOperator, namespaces });
  }

  async appendLeases(namespace: string, newestLedgerId: number, leases: readonly LedgerEntry[]): Promise<boolean> {
    const { newestId, append } = this.#statements;
    const { value } = await this.#locked(namespace, async (send, { fields }) => {
      const [newest] = (await send(newestId, [namespace])).rows;
      if (Object.keys(fields).length > 0 || newest?.["id"] !== newestLedgerId) return false;
      await send(append, [namespace, JSON.stringify(leases.map(appendedOf))]);
      return true;
    });
    return value;
  }

  async readRetention(namespace: string): Promise<Retention> {
    const [row] = await this.#rows(this.#statements.retention, [namespace]);
    return row === undefined ? NO_RETENTION : (row as unknown as Retention);
  }

  async setRetentionDays(namespace: string, days: number): Promise<void> {
    await this.#connections.use("reads", (send) => send(this.#statements.setDays, [namespace, days]));
  }

  async trimLedger(namespace: string, trim: LedgerTrim): Promise<boolean> {
    const { lockUpTo, oldest, setTrimmed, removeUpTo } = this.#statements;
    const { value } = await this.#locked(namespace, async (send, { fields, through }) => {
      // No report comes between.
      await send(lockUpTo, [namespace, trim.through]);
      const { rows } = await send(oldest, [namespace, 0, trim.leases.length + 1]);
      if (!isAsTrimExpects(trim, { fields, through, oldest: leasesIn(rows) })) return false;
      await send(setTrimmed, [namespace, trim.through, trim.leasedAtMs]);
      await send(removeUpTo, [namespace, trim.through]);
      return true;
    });
    return value;
  }

  async close(): Promise<void> {
    await this.#connections.close();
  }

  #foundIn(rows: readonly Row[], nonce: string) {
    const [row = {}, another] = rows;
    if (another !== undefined) throw new CoordinatorError("store_corrupt", SEVERAL_ROWS);
    const { role, epoch, now_ms: timeMs, ledger_mark: ledgerMark, standbys: connectedReplicas } = row;
    const isOurs = row["nonce"] === nonce && typeof role === "string";
    if (
      !isOurs ||
      (epoch !== null && typeof epoch !== "string") ||
      !isWhole(timeMs) ||
      !isWhole(ledgerMark) ||
      !isWhole(connectedReplicas)
    ) {
      throw this.#connections.unexpectedAnswer();
    }
    const { keys } = observedLocally({ fields: fieldsIn(row), ledgerMark, epoch: "", timeMs });
    const observed: Observed = {
      keys: { ...keys, fingerprint: String(row["fingerprint"]) },
      server: { timeMs, role, epoch: epoch ?? undefined, connectedReplicas },
    };
    return { observed, row };
  }

  /** In a transaction that begins when all others of the namespace have ended. */
  #locked<T>(namespace: string, run: (send: Send, found: Locked) => Promise<T>) {
    const { beginLocally, addName, lockName } = this.#statements;
    return this.#connections.transaction(async (send) => {
      await send(beginLocally);
      await send(addName, [namespace]);
      const [row = {}] = (await send(lockName, [namespace])).rows;
      // Its statements see all that others have left; one that waited itself would see the ledger of before.
      return await run(send, { fields: fieldsIn(row), through: Number(row["trimmed_through"]) });
    });
  }

  async #rows(statement: string, parameters: readonly unknown[]): Promise<readonly Row[]> {
    return (await this.#connections.use("reads", (send) => send(statement, parameters))).value.rows;
  }
}

/** A null column is a missing field. The checksum becomes the guard's own where it is right. */
function fieldsIn(row: Row): ObservedFields {
  const fields = Object.fromEntries(
    RECORD_COLUMNS.flatMap((name) => (typeof row[name] === "string" ? [[name, row[name] as string]] : [])),
  );
  return row["is_whole"] === true ? { ...fields, k: checksumOf(fields) } : fields;
}

function askOf(namespace: string, expected: Expected, { record, leases }: Change): Ask {
  const { found, replicasMax, timeMinMs, timeMaxMs, rising } = expected;
  const { keys, server } = found;
  const written: Readonly<Record<string, string>> = fieldsOf(record);
  const holders = leases.map((lease) => holderRowOf(lease));
  return {
    nonce: freshNonce(),
    namespace,
    server: [server.role, ...(server.epoch === undefined ? [] : [server.epoch])].join(" "),
    standbys_max: replicasMax,
    time_min_ms: timeMinMs,
    time_max_ms: timeMaxMs,
    place: [keys.record, keys.ledger, keys.holders, keys.expires].join(" "),
    fingerprint: keys.fingerprint,
    ledger_mark: keys.ledgerMark,
    still: rising && stillFieldsOf(keys.fields),
    now_ms: rising?.nowMs,
    age_min_ms: rising?.ageMinMs,
    age_max_ms: rising?.ageMaxMs,
    base: ledgerIdOf(record.version, 0),
    mark_id_min: rising?.markIdMin,
    is_ledger_reached: rising?.isLedgerReached,
    mark_max: rising?.highWaterMarkMax,
    after: RECORD_FIELDS.map((name) => written[name] as string),
    holders: [...new Map(holders.map((holder) => [holder.id, holder])).values()],
    leases: leases.map(({ runCount: runs, leaseNonce: nonce }, at) => ({ runs, nonce, holder: holders[at]?.id ?? "" })),
  };
}

/** The id comes from the JSON: 128 bits of its SHA-256, as PostgreSQL writes a UUID. */
function holderRowOf(lease: Parameters<typeof holderJsonOf>[0]): Ask["holders"][number] {
  const json = holderJsonOf(lease);
  return { id: hash("sha256", json).slice(0, 32), name: lease.holder.name, json };
}

function appendedOf(lease: LedgerEntry) {
  const { runCount: runs, leasedAtMs: time_ms, nonce, progress } = lease;
  const { id: holder, name, json } = holderRowOf(lease);
  const { run, lastSequence: sequence, state, reportedAtMs: reported_at_ms } = progress ?? {};
  return { id: lastLedgerIdOf(lease), runs, time_ms, holder, name, json, nonce, run, sequence, state, reported_at_ms };
}

function leasesIn(rows: readonly Row[]): LedgerEntry[] {
  return ledgerEntriesOf(
    rows.map((row) => {
      const { run, lastSequence, state, reportedAtMs, ...lease } = row as unknown as LeaseRow;
      return { ...lease, progress: state === null ? null : { run, lastSequence, state, reportedAtMs } };
    }),
  );
}

/** As the statements name its columns; those of the progress are null until the first report. */
type LeaseRow = Omit<StoredLease, "progress"> & Omit<Progress, "state"> & { readonly state: Progress["state"] | null };

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
