/** What another program on PostgreSQL does while a store writes: by a trigger, or in a transaction for whose end the store waits. */
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { sharedPostgres } from "../../../test/postgres/test-postgres.js";
import { isApplied } from "../src/guard/step-store.js";
import type { PostgresStore } from "../src/stores/postgres/store.js";
import { NAMESPACE } from "./commands-for-test.js";
import { preparedFor } from "./steps-for-test.js";
import { ledgerOf, withNamespace } from "./store-in-hand.js";
import { HAS_POSTGRES, openPostgres } from "./stores-for-test.js";

const ROUNDS_MAX = 20;

describe.runIf(HAS_POSTGRES)("PostgreSQL", () => {
  test.for(["c", "t"])("a lease is not granted where a trigger has written another %s", async (field) => {
    const { lease, schema, client } = await openedStore();
    await client.query(`CREATE FUNCTION ${schema}.other() RETURNS trigger LANGUAGE plpgsql
      AS $$ BEGIN NEW.${field} := '7'; RETURN NEW; END $$`);
    await client.query(`CREATE TRIGGER other BEFORE UPDATE ON ${schema}.namespaces
      FOR EACH ROW EXECUTE FUNCTION ${schema}.other()`);
    await expect(lease()).rejects.toMatchObject({ code: "store_unavailable" });
  });

  test("a confirmation that waits for another transaction sees the lease that this has written", async () => {
    const { store, lease, commands, step, read, schema, duringTransaction } = await openedStore();
    await lease();
    await step(commands.claim(0));
    const answer = await duringTransaction(
      (turn) => [
        `SELECT FROM ${schema}.namespaces FOR UPDATE`,
        `INSERT INTO ${schema}.leases (namespace, last_ledger_id, run_count, leased_at_ms, holder_id, nonce)
          SELECT namespace, ${100 + turn}, 1, leased_at_ms, holder_id, nonce FROM ${schema}.leases LIMIT 1`,
      ],
      async () => {
        const prepared = await preparedFor(store, NAMESPACE, commands.confirm(1));
        return () => store.apply(NAMESPACE, ...prepared);
      },
    );
    expect(isApplied(answer)).toBe(false);
    expect((await read()).phase).toBe(1);
  });

  test("a trim that waits for a report to be written keeps the lease", async () => {
    const { store, lease, read, schema, duringTransaction } = await openedStore();
    await lease();
    await lease();
    const isTrimmed = await duringTransaction(
      (turn) => [
        `UPDATE ${schema}.leases SET progress_run = 1, progress_sequence = ${turn}, progress_state = 'in_use',
        progress_at_ms = 1 WHERE last_ledger_id = 1`,
      ],
      async () => {
        const [first] = (await ledgerOf(store, NAMESPACE)) as [LedgerEntry];
        const trim = { record: await read(), trimmedThrough: 0, through: 1, leasedAtMs: 1, leases: [first] };
        return () => store.trimLedger(NAMESPACE, trim);
      },
    );
    expect(isTrimmed).toBe(false);
    expect(await ledgerOf(store, NAMESPACE)).toHaveLength(2);
  });
});

/** A store with a namespace, and a connection of the owner. */
async function openedStore() {
  const { store, remove } = await openPostgres();
  onTestFinished(remove);
  const { schema } = store as PostgresStore;
  const client = new pg.Client({ connectionString: sharedPostgres() });
  await client.connect();
  onTestFinished(() => client.end());
  const isWaitedFor = async () => {
    // A transaction goes on seeing what it has seen of these statistics.
    await client.query("SELECT pg_stat_clear_snapshot()");
    const { rowCount } = await client.query(
      "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1",
      [`%"${schema}"%`],
    );
    return rowCount !== 0;
  };
  /** Prepares something, and does it when a transaction has done its part; that ends as soon as it is waited for. */
  async function duringTransaction<T>(
    statements: (turn: number) => readonly string[],
    prepare: () => Promise<() => Promise<T>>,
  ): Promise<T> {
    for (let turn = 0; ; turn++) {
      const act = await prepare();
      await client.query("BEGIN");
      for (const statement of statements(turn)) await client.query(statement);
      let hasEnded = false;
      const acted = act().finally(() => {
        hasEnded = true;
      });
      const answer = acted.catch((error: unknown) => {
        // On a busy machine the store may have waited for so long as it waits at most.
        if (turn === ROUNDS_MAX) throw error;
      });
      await expect.poll(async () => hasEnded || (await isWaitedFor())).toBe(true);
      await client.query("COMMIT");
      const found = await answer;
      if (found !== undefined) return found;
    }
  }
  return { ...(await withNamespace(store)), schema, client, duringTransaction };
}
