/** What only a store on a server can find when a change is written: an edit by another program. For all stores see apply-contract.ts. */
import { expect, onTestFinished, test } from "vitest";
import { checksumOf } from "../src/guard/record.js";
import { isApplied } from "../src/guard/step-store.js";
import type { Store } from "../src/stores/store.js";
import { MARK, sentLease } from "./apply-contract.js";
import { postgresTable, type SetTable, sharedTable } from "./apply-tables.js";
import { NAMESPACE } from "./commands-for-test.js";
import { preparedFor } from "./steps-for-test.js";
import { withNamespace } from "./store-in-hand.js";
import { HAS_POSTGRES, HAS_REDIS } from "./stores-for-test.js";

const TABLES: readonly [string, () => Promise<SetTable>][] = [
  ...(HAS_REDIS ? [["Redis", sharedTable] as [string, () => Promise<SetTable>]] : []),
  ...(HAS_POSTGRES ? [["PostgreSQL", postgresTable] as [string, () => Promise<SetTable>]] : []),
];

async function emptyTable(open: () => Promise<SetTable>) {
  const table = await (await open())();
  onTestFinished(() => table.remove());
  return { ...table, store: table.store as Store };
}

test.for(TABLES)("a lease above what another program has written is not written to %s", async ([, open]) => {
  const table = await emptyTable(open);
  const { apply, expected } = await sentLease(table.store);
  const { fields } = expected.found.keys;
  const { c = "", t = "", k = "" } = fields;
  const edit = async (own: Record<string, string>, ...newer: readonly number[]) => {
    const edited = { ...fields, ...own };
    const record = { fields: { ...edited, k: own["k"] ?? checksumOf(edited) }, expires: false };
    expect(await table.put({ record, ledger: [MARK, ...newer], holders: "hash" })).toBe(true);
  };
  for (const text of [`${"0".repeat(15)}${c}`, ` ${c}`, `${c}.0`, `${c}e0`, "0x5", "", "nan"]) {
    await edit({ c: text });
    expect(await apply({}), `c ${text}`).toBe(false);
  }
  for (const text of [`000${t}`, ` ${t}`, `${t}.0`, "", "nan"]) {
    await edit({ t: text });
    expect(await apply({}), `t ${text}`).toBe(false);
  }
  await edit({ c: "6", k });
  expect(await apply({}), "a checksum of another mark").toBe(false);
  await edit({}, MARK + 1);
  expect(await apply({}), "a newer entry").toBe(false);
  expect(await apply({}, { isLedgerReached: false, markIdMin: MARK })).toBe(true);
});

test.for(TABLES)(
  "a confirmation is not written to %s when its ledger has a newer entry meanwhile",
  async ([, open]) => {
    const table = await emptyTable(open);
    const { store, commands, step, read } = await withNamespace(table.store);
    await step(commands.claim(0));
    const prepared = await preparedFor(store, NAMESPACE, commands.confirm(1));
    const { fields } = prepared[0].found.keys as { readonly fields: Record<string, string> };
    const addTo = (...ledger: readonly number[]) =>
      table.put({ record: { fields: { ...fields, k: checksumOf(fields) }, expires: false }, ledger, holders: "hash" });
    await addTo(6);
    const other = await preparedFor(store, NAMESPACE, commands.confirm(1));
    await addTo(6, 7);
    for (const [expected, change] of [prepared, other]) {
      expect(isApplied(await store.apply(NAMESPACE, expected, change))).toBe(false);
      expect((await read()).phase).toBe(1);
    }
    await step(commands.confirm(1));
    expect((await read()).phase).toBe(0);
  },
);
