/**
 * A store that lost a namespace: every route reports the loss, on whatever coordinator knows of it. None advises `init`, which would make the
 * numbers of the archive again.
 */
import { readdirSync, truncateSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HISTORY_WINDOWS_MS, pathOf, ROUTES } from "@callnumber/protocol/api";
import { expect, onTestFinished, test } from "vitest";
import type { CheckpointFile } from "../src/guard/checkpoint.js";
import { NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import { openCheckpointFile } from "../src/guard/checkpoint-file.js";
import type { Store } from "../src/stores/store.js";
import { LEASE_NONCE } from "./commands-for-test.js";
import { served } from "./served.js";
import { STORES } from "./stores-for-test.js";

type Served = Awaited<ReturnType<typeof served>>;

const inMain = (route: string) => route.replace(":namespace", "main").replace(":callNumber", "2VznWE2i");
const report = { nonce: LEASE_NONCE, lastSequence: 1, state: "open" };

/** Every route of a namespace. */
const ASKED: readonly [name: string, ask: (one: Served) => Promise<{ readonly text: string }>][] = [
  ["leases", ({ lease }) => lease()],
  ["numbers", ({ post }) => post(pathOf("numbers", { namespace: "main" }), {})],
  ["report", ({ post }) => post(pathOf("report", { namespace: "main", run: 1 }), report)],
  ["run", ({ get }) => get(pathOf("run", { namespace: "main", run: 1 }))],
  ["runOfVersion", ({ get }) => get(pathOf("runOfVersion", { namespace: "main", version: 0, run: 1 }))],
  ["runs", ({ get }) => get(inMain(ROUTES.runs))],
  ["callNumber", ({ get }) => get(inMain(ROUTES.callNumber))],
  ["callNumber, malformed", ({ get }) => get(pathOf("callNumber", { namespace: "main", callNumber: "x" }))],
  ["status", ({ get }) => get(inMain(ROUTES.status))],
  ["capacity", ({ get }) => get(inMain(ROUTES.capacity))],
  ["history", ({ get }) => get(`${inMain(ROUTES.history)}?windowMs=${HISTORY_WINDOWS_MS[0]}`)],
  ["export", ({ get }) => get(inMain(ROUTES.export))],
  ["readiness", ({ get }) => get(ROUTES.readiness)],
  ["namespaces", ({ get }) => get(ROUTES.namespaces)],
  ["publicCallNumber", ({ get }) => get(inMain(ROUTES.publicCallNumber))],
];

test("every route of a namespace is asked below", () => {
  const named = Object.entries(ROUTES)
    .filter(([, path]) => path.includes(":namespace"))
    .map(([name]) => name);
  expect(ASKED.map(([name]) => name)).toEqual(expect.arrayContaining(named));
});

/** A store that loses everything when `lose` is called, and a folder for the checkpoints of its coordinators. */
async function losingStore([, open]: (typeof STORES)[number]) {
  const [full, empty] = [await open(), await open()];
  const folder = await mkdtemp(join(tmpdir(), "callnumber-lost-"));
  onTestFinished(async () => {
    for (const one of [full, empty]) await one.remove();
    await rm(folder, { recursive: true });
  });
  let current = full.store;
  const store = new Proxy({} as Store, {
    get: (_, name) => {
      const value: unknown = Reflect.get(current, name);
      return typeof value === "function" ? value.bind(current) : value;
    },
  });
  const place = { group: "store", addresses: ["here"] };
  return {
    store,
    lose: () => {
      current = empty.store;
    },
    checkpointFileOf: (namespace: string) => openCheckpointFile({ folder, place, namespace }),
    damageCheckpoints: () => {
      for (const name of readdirSync(folder)) truncateSync(join(folder, name), 10);
    },
  };
}

async function servedOn(store: Store, checkpointFileOf: (namespace: string) => CheckpointFile, isKnown = false) {
  const own = { store, checkpointFileOf, checkpointedNamespaces: new Set(isKnown ? ["main"] : []) };
  return await served({ namespaces: [], publicInspect: true, own });
}

async function expectLossIn(one: Served, where: string): Promise<void> {
  for (const [name, ask] of ASKED) {
    const { text } = await ask(one);
    expect(text, `${name}, ${where}`).not.toMatch(/namespace_not_found|callnumber init|there is no/);
    const code = name === "publicCallNumber" ? "store_unavailable" : "namespace_lost";
    expect(text, `${name}, ${where}`).toContain(`"code":"${code}"`);
  }
}

test.each(STORES)(
  "every route reports a lost namespace, on every coordinator that knows of it (%s)",
  async (...kind) => {
    const { store, lose, checkpointFileOf, damageCheckpoints } = await losingStore(kind);
    const leasing = await servedOn(store, checkpointFileOf);
    await leasing.coordinator.initNamespace("main");
    expect((await leasing.lease()).status).toBe(201);
    const reading = await servedOn(store, () => NO_CHECKPOINT_FILE);
    expect((await reading.get(inMain(ROUTES.status))).status).toBe(200);
    lose();
    await expectLossIn(leasing, "the coordinator that leased from it");
    await expectLossIn(reading, "another coordinator that served it, without checkpoints");
    await expectLossIn(
      await servedOn(store, checkpointFileOf, true),
      "a coordinator started later, with its checkpoint",
    );
    damageCheckpoints();
    await expectLossIn(await servedOn(store, checkpointFileOf, true), "a coordinator with a damaged checkpoint");
  },
);

test("a name that no coordinator has met is not found, and not lost", async () => {
  const { get } = await served({ publicInspect: true });
  const path = `${ROUTES.history.replace(":namespace", "other")}?windowMs=${HISTORY_WINDOWS_MS[0]}`;
  expect(await get(path)).toMatchObject({ status: 404, body: { code: "namespace_not_found" } });
});
