/** Stores for random states: put there past every rule, or as far as a store in this process can hold them. */
import { hash } from "node:crypto";
import { runOfLedgerId } from "@callnumber/protocol/api";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { Redis } from "ioredis";
import pg from "pg";
import { onTestFinished } from "vitest";
import { sharedPostgres } from "../../../test/postgres/test-postgres.js";
import { TESTER_LOGIN } from "../../../test/redis/shipped-users.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import type { KeyName } from "../src/guard/checks.js";
import { type Bounds, DEFAULT_BOUNDS } from "../src/guard/clocks.js";
import type { StepCommand } from "../src/guard/commands.js";
import { decide, type Written } from "../src/guard/decide.js";
import type { NamespaceStepsOptions } from "../src/guard/namespace-steps.js";
import {
  checksumOf,
  type NamespaceState,
  type ObservedFields,
  RECORD_FIELDS,
  readRecord,
  storedFields,
} from "../src/guard/record.js";
import { isRefusal, type Refusal } from "../src/guard/refusals.js";
import { type Change, type Observed, recordToWrite } from "../src/guard/step-store.js";
import { lastLedgerIdOf } from "../src/ledger/lease-identity.js";
import { importLeases } from "../src/ledger/ledger-changes.js";
import { RECORD_COLUMNS } from "../src/stores/postgres/statements.js";
import type { PostgresStore } from "../src/stores/postgres/store.js";
import { keysOf } from "../src/stores/redis/scripts.js";
import { RedisStore, type RedisStoreOptions } from "../src/stores/redis/store.js";
import type { Store } from "../src/stores/store.js";
import { appliedLocally, entriesOf, holderJsonOf } from "../src/stores/stored-shapes.js";
import { holder, LEASE_NONCE, NAMESPACE } from "./commands-for-test.js";
import { foundKeys, type KeptState, putState, readState } from "./kept-state.js";
import type { OpenForTest } from "./store-contract.js";
import { openPostgres, redisAddressForTest } from "./stores-for-test.js";

interface Table {
  readonly store: NamespaceStepsOptions["store"];
  found(): Promise<Observed>;
  /** Puts the state in place of whatever stands there. Returns whether the store can hold it. */
  put(state: KeptState): Promise<boolean>;
  /** All that the store holds of the namespace. */
  contents(): Promise<unknown>;
  remove(): Promise<void>;
}

export type SetTable = () => Promise<Table>;

function redisTable(store: Store, redis: Redis, keyPrefix: string): SetTable {
  const keys = keysOf(keyPrefix, NAMESPACE);
  const own = [keys.record, keys.ledger, keys.holders];
  const remove = async () => {
    const aside = await redis.keys(`${keys.record.slice(0, -"record".length)}*:foreign:*`);
    await redis.del(...own, ...aside);
  };
  return async () => ({
    store,
    found: () => untilConnected(() => store.read(NAMESPACE)),
    put: async (state) => {
      await putState(redis, keys, state);
      return true;
    },
    contents: async () => ({ ...(await readState(redis, keys)), timeMs: 0 }),
    remove,
  });
}

/** A new store for each state. Its record is written as the store writes any, and its ledger imported. */
export function localTable(open: OpenForTest): SetTable {
  return async () => {
    const { store, remove } = await open();
    let isNew = true;
    return {
      store,
      found: () => store.read(NAMESPACE),
      async put({ record, ledger, holders }) {
        const isOurs = typeof record === "object" ? !record.expires : record === "none";
        if (!isOurs || ledger === "string" || holders === "list") return false;
        const kept = typeof record === "object" ? readRecord(record.fields, NAMESPACE) : undefined;
        if (kept !== undefined && isRefusal(kept)) return false;
        const held = await store.leases(NAMESPACE, { direction: "oldest_first", limit: 100 });
        const missing = (ledger === "none" ? [] : ledger).slice(held.length);
        if (!isNew && (missing.length > 0 || kept === undefined)) return false;
        isNew = false;
        if (missing.some((id) => runOfLedgerId(id).run === 0)) return false;
        await importLeases(store, NAMESPACE, missing.map(entryAt));
        if (kept !== undefined) await store.apply(NAMESPACE, anyState(await store.read(NAMESPACE)), changeTo(kept));
        return true;
      },
      contents: async () => ({
        keys: (await store.read(NAMESPACE)).keys,
        leases: await store.leases(NAMESPACE, { direction: "newest_first", limit: 10 }),
      }),
      remove,
    };
  };
}

/** A schema of its own, whose rows the owner puts there: any fields, and entries of any id. */
export async function postgresTable(): Promise<SetTable> {
  const { store, remove } = await openPostgres();
  onTestFinished(remove);
  const { schema } = store as PostgresStore;
  const client = new pg.Client({ connectionString: sharedPostgres() });
  await client.connect();
  onTestFinished(() => client.end());
  const columns = RECORD_COLUMNS.join(", ");
  const parameters = RECORD_COLUMNS.map((_, at) => `$${at + 2}`).join(", ");
  const empty = `DELETE FROM ${schema}.leases; DELETE FROM ${schema}.namespaces`;
  return async () => ({
    store,
    found: () => store.read(NAMESPACE),
    async put({ record, ledger, holders }) {
      const isOurs = typeof record === "object" ? !record.expires : record === "none";
      if (!isOurs || ledger === "string" || holders === "list") return false;
      const fields: ObservedFields = typeof record === "object" ? record.fields : {};
      if (Object.keys(fields).some((name) => !(RECORD_COLUMNS as readonly string[]).includes(name))) return false;
      const kept = fields["k"] === checksumOf(fields) ? { ...fields, k: sha256Of(fields) } : fields;
      await client.query(empty);
      await client.query(`INSERT INTO ${schema}.namespaces (name, ${columns}) VALUES ($1, ${parameters})`, [
        NAMESPACE,
        ...RECORD_COLUMNS.map((name) => kept[name] ?? null),
      ]);
      await client.query(`INSERT INTO ${schema}.holders VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, [
        HOLDER_ID,
        holder.name,
        holderJsonOf(entryAt(1)),
      ]);
      for (const id of ledger === "none" ? [] : ledger) {
        const values = [NAMESPACE, id, HOLDER_ID, LEASE_NONCE];
        await client.query(
          `INSERT INTO ${schema}.leases (namespace, last_ledger_id, run_count, leased_at_ms, holder_id, nonce) VALUES ($1, $2, 1, 1, $3, $4)`,
          values,
        );
      }
      return true;
    },
    contents: async () => ({
      rows: (await client.query(`SELECT * FROM ${schema}.namespaces`)).rows,
      leases: (await client.query(`SELECT * FROM ${schema}.leases ORDER BY last_ledger_id`)).rows,
    }),
    remove: async () => void (await client.query(empty)),
  });
}

const HOLDER_ID = "00000000-0000-4000-8000-000000000000";

function sha256Of(fields: ObservedFields): string {
  return hash("sha256", RECORD_FIELDS.map((name) => fields[name] ?? "").join("\n"));
}

/** What the stores of this process share, on any state and any server: without a store around it. */
export const bareTable: SetTable = async () => {
  const server = { timeMs: Date.now(), role: "master", epoch: "process:history:0:0", connectedReplicas: 0 };
  let state: KeptState = { record: "none", ledger: "none", holders: "none" };
  const read = async (): Promise<Observed> => ({ keys: foundKeys(state), server: { ...server } });
  return {
    store: {
      isExclusive: false,
      read,
      async apply(_, expected, change) {
        const found = await read();
        const written = recordToWrite(found, expected, change);
        if (written === undefined) return found;
        const record = { fields: storedFields(written), expires: false };
        const entries = entriesOf(change, written).map(lastLedgerIdOf);
        const isAside = (name: KeyName) => change.movesAside.includes(name);
        const ledger = isAside("ledger") || state.ledger === "none" ? [] : state.ledger;
        state = {
          record,
          ledger: typeof ledger === "string" ? ledger : [...ledger, ...entries],
          holders: entries.length > 0 ? "hash" : isAside("holders") ? "none" : state.holders,
        };
        return appliedLocally(written);
      },
    },
    found: read,
    async put(next) {
      state = next;
      return true;
    },
    contents: async () => state,
    remove: async () => {},
  };
};

function anyState(found: Observed) {
  return { found, replicasMax: 99, timeMinMs: 0, timeMaxMs: Number.MAX_SAFE_INTEGER, rising: undefined };
}

function changeTo(record: NamespaceState): Change {
  return { record, leases: [], movesAside: [], acceptsCopy: false, persists: false, skipped: undefined };
}

function entryAt(ledgerId: number): LedgerEntry {
  const { version, run } = runOfLedgerId(ledgerId);
  const granted = { version, firstRun: run, runCount: 1, leasedAtMs: 1, holder, coordinator: "test" };
  return { ...granted, nonce: LEASE_NONCE, progress: null };
}

/** After a server that is no master the connection is made again; until then nothing is sent. */
export async function untilConnected<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!/the connection broke/.test((error as Error).message)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

/** One step in a store, by the coordinator's clock. */
export interface Case {
  readonly table: Table;
  readonly command: StepCommand;
  readonly nowMs: number;
  readonly bounds: Bounds;
}

/** Full or narrow: a step is at its thresholds in both. */
export const BOUNDS: readonly Bounds[] = [
  DEFAULT_BOUNDS,
  { epsMs: 40, gapMs: 6_000, attendedMs: 6_000, heartbeatEveryMs: 100 },
];

export function decidedOn(
  { command, nowMs, bounds }: Omit<Case, "table">,
  { keys, server }: Observed,
  timeMs = server.timeMs,
): Written | Refusal {
  return decide({ namespace: NAMESPACE, keys, server: { ...server, timeMs }, nowMs, bounds }, command);
}

/** The coordinator's clock stands while one step is done, so that its distance from the server's is near a threshold. */
export function clockOf({ nowMs, bounds }: Pick<Case, "nowMs" | "bounds">) {
  return { now: () => nowMs, bounds };
}

/** A server's clock runs on while a step is done: every instant between two readings. */
export function instantsOf(before: Observed, after: Observed): readonly number[] {
  const { timeMs } = before.server;
  return Array.from({ length: after.server.timeMs - timeMs + 1 }, (_, index) => timeMs + index);
}

export function situationOf({ command, nowMs, bounds }: Case, before: unknown): string {
  return JSON.stringify({ command, nowMs, bounds, before }, null, 1);
}

/** A place on a server by itself, where the user of `as` does the steps and the tester puts the states. */
export async function tableAt(as: RedisStoreOptions, tester = { ...as, ...TESTER_LOGIN }): Promise<SetTable> {
  const store = await RedisStore.open({ ...as, quorumTimeoutMs: 1 });
  onTestFinished(() => store.close());
  const { host, port, database, username, password } = tester;
  const redis = new Redis({ host, port, db: database, ...(username && password ? { username, password } : {}) });
  onTestFinished(() => redis.disconnect());
  return redisTable(store, redis, as.keyPrefix);
}

export async function sharedTable(): Promise<SetTable> {
  const address = redisAddressForTest(sharedRedis().operatorUrl);
  const { username, password } = new URL(sharedRedis().url);
  return await tableAt(address, { ...address, username, password });
}
