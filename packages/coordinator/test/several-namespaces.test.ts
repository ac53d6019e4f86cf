/**
 * A store with two namespaces, of which one is corrupted, lost, or another store's: the other one is leased from all the time, through a
 * start and through the repair.
 * Guarantees: G5, G8 (docs/guarantees.md).
 */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { initBackdated, unlessLate } from "../../../test/backdated.js";
import { folderForTest } from "../../../test/processes/command.js";
import { asOperator } from "../../../test/redis/shipped-users.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { drawn } from "../../../test/size-of-run.js";
import { Coordinator } from "../src/coordinator.js";
import { checkpointedNamespaces, openCheckpointFile } from "../src/guard/checkpoint-file.js";
import type { Bounds } from "../src/guard/clocks.js";
import { type ObservedFields, RECORD_FIELDS, readRecord, storedFields } from "../src/guard/record.js";
import { isRefusal } from "../src/guard/refusals.js";
import { createServer } from "../src/http/server.js";
import { planRecovery, recoverNamespace } from "../src/operator/recover.js";
import { openStore } from "../src/stores/open-store.js";
import { keysOf } from "../src/stores/redis/scripts.js";
import type { Store } from "../src/stores/store.js";
import { parseStoreUrl, placeOf } from "../src/stores/store-url.js";
import { SMALL_BOUNDS } from "./commands-for-test.js";
import { expectNoRunTwice, greatestRun, keptLog, SHORT_BOUNDS, startCrowd } from "./leasing-crowd.js";
import { clientAt } from "./redis-for-test.js";

const [HEALTHY, BAD] = ["main", "lists"] as const;
/** More than two heartbeats. */
const WATCH_MS = 400;
const COLUMNS = [...RECORD_FIELDS, "k"];

interface Place {
  readonly bounds: Bounds;
  readonly url: string;
  readonly operatorUrl: string;
  /** Past every rule; of an embedded store only while it is closed. */
  read(): Promise<ObservedFields>;
  write(fields: ObservedFields): Promise<void>;
}

async function redisPlace(): Promise<Place> {
  const { url, storeUrl } = sharedRedis();
  const redis = clientAt(url);
  const key = keysOf(new URL(storeUrl).searchParams.get("prefix") as string, BAD).record;
  return {
    bounds: SHORT_BOUNDS,
    url: storeUrl,
    operatorUrl: asOperator(storeUrl),
    read: () => redis.hgetall(key),
    async write(fields) {
      const writing = redis.multi().del(key);
      if (Object.keys(fields).length > 0) writing.hset(key, fields);
      await writing.exec();
    },
  };
}

async function sqlitePlace(): Promise<Place> {
  const path = join(await folderForTest(), "store.db");
  const url = `sqlite:${path}`;
  const inDatabase = <T>(act: (database: DatabaseSyncInstance) => T): T => {
    const database = new DatabaseSync(path);
    try {
      return act(database);
    } finally {
      database.close();
    }
  };
  return {
    bounds: SMALL_BOUNDS,
    url,
    operatorUrl: url,
    read: async () =>
      inDatabase((database) => {
        const row = database.prepare(`SELECT ${COLUMNS} FROM namespaces WHERE name = ?`).get(BAD);
        return { ...(row as Record<string, string>) };
      }),
    write: async (fields) =>
      inDatabase((database) => {
        const columns = COLUMNS.map((name) => `${name} = ?`);
        const values = COLUMNS.map((name) => fields[name] ?? null);
        database.prepare(`UPDATE namespaces SET ${columns} WHERE name = ?`).run(...values, BAD);
      }),
  };
}

async function opened({ bounds, url }: Pick<Place, "bounds" | "url">): Promise<Store> {
  const { store } = await openStore(parseStoreUrl(url), { create: true, epsMs: bounds.epsMs });
  onTestFinished(() => store.close());
  return store;
}

/** A coordinator as `serve` makes it. */
function started(store: Store, { bounds, url }: Place, folder: string) {
  const place = placeOf(parseStoreUrl(url));
  const { log, events } = keptLog();
  const coordinator = new Coordinator({
    store,
    name: "test",
    bounds,
    log,
    checkpointFileOf: (namespace) => openCheckpointFile({ folder, place, namespace }),
    checkpointedNamespaces: checkpointedNamespaces(folder, place),
  });
  onTestFinished(() => coordinator.stopHeartbeat());
  return { coordinator, events };
}

/** What its server shows to load balancers and monitoring. */
async function shownBy(coordinator: Coordinator) {
  const server = createServer({ coordinator, release: "0" });
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  const [readiness, metrics] = await Promise.all(["/readyz", "/metrics"].map((path) => fetch(new URL(path, url))));
  const shown = { readiness: await readiness?.json(), metrics: await metrics?.text() };
  await server.stop();
  return shown;
}

/** As `callnumber recover --namespace lists --apply` does. */
async function recover(store: Store, { bounds, url }: Place, folder: string): Promise<void> {
  const checkpointFile = openCheckpointFile({ folder, place: placeOf(parseStoreUrl(url)), namespace: BAD });
  const pause = async (pauseMs: number) => void (await delay(pauseMs));
  const options = {
    store,
    namespace: BAD,
    checkpointFile,
    storeId: undefined,
    floors: [],
    nodeCount: undefined,
    pause,
  };
  const asked = { ...options, isClockChecked: false, bounds, watchMs: store.isExclusive ? 0 : WATCH_MS };
  try {
    await unlessLate(async () => void (await recoverNamespace(asked, await planRecovery(asked))));
  } finally {
    checkpointFile.close();
  }
}

/** The record of another store, with a checksum that is right. */
function foreign(fields: ObservedFields): ObservedFields {
  const record = readRecord(fields, BAD);
  if (isRefusal(record)) throw new Error(`not a record: ${record.code}`);
  const [, ...rest] = record.storeId.split("-");
  return storedFields({ ...record, storeId: ["00000000", ...rest].join("-") });
}

const DAMAGES: [string, string, (fields: ObservedFields) => ObservedFields][] = [
  ["corrupted", "store_corrupt", (fields) => ({ ...fields, k: "0".repeat(40) })],
  ["lost", "namespace_lost", () => ({})],
  ["another store's", "store_id_mismatch", foreign],
];

describe.each<[string, () => Promise<Place>]>([
  ["Redis", redisPlace],
  ["the embedded store", sqlitePlace],
])("on %s", (_, newPlace) => {
  test.each(drawn(DAMAGES, 3, inject("seed")))(
    "a coordinator starts and leases when the record of another namespace is %s",
    async (_, code, damage) => {
      const place = await newPlace();
      const folder = join(await folderForTest(), "checkpoints");
      let store = await opened(place);
      for (const namespace of [HEALTHY, BAD]) await initBackdated(store, namespace);
      const first = started(store, place, folder);
      first.coordinator.startHeartbeat();
      const before = startCrowd([first.coordinator], [HEALTHY, BAD]);
      await before.untilLeased();
      await before.stop();
      await first.coordinator.stopHeartbeat();
      await store.close();

      const right = await place.read();
      await place.write(damage(right));
      store = await opened(place);
      let { coordinator, events } = started(store, place, folder);
      const { namespaces, unavailable } = await coordinator.assertReady();
      expect(namespaces).toEqual([HEALTHY]);
      expect(unavailable).toEqual([{ namespace: BAD, error: expect.objectContaining({ code }) }]);
      coordinator.startHeartbeat();
      let crowd = startCrowd([coordinator], [HEALTHY, BAD]);
      await crowd.untilRefused(BAD, code);
      await crowd.untilLeased([HEALTHY]);
      const listed = await coordinator.namespaces();
      expect(listed.map(({ namespace, guard }) => [namespace, guard.code])).toEqual([
        [BAD, code],
        [HEALTHY, null],
      ]);
      await expect.poll(() => events.filter(({ event }) => event === "stopped")).toHaveLength(1);
      expect(events.find(({ event }) => event === "stopped")?.fields).toMatchObject({ namespace: BAD, code });
      const { readiness, metrics } = await shownBy(coordinator);
      expect(readiness).toEqual({ ready: true, namespaces: [HEALTHY], unavailable: [{ namespace: BAD, code }] });
      expect(metrics).toContain(`callnumber_guard_state{namespace="${BAD}",state="stopped"} 1`);
      expect(metrics).toContain(`callnumber_guard_state{namespace="${HEALTHY}",state="active"} 1`);

      const leases = [...before.leases];
      if (store.isExclusive) {
        await crowd.stop();
        leases.push(...crowd.leases);
        await coordinator.stopHeartbeat();
        await store.close();
      }
      if (code === "store_id_mismatch") await place.write(right);
      else {
        const operators = await opened({ ...place, url: place.operatorUrl });
        await recover(operators, place, folder);
        await operators.close();
      }
      if (store.isExclusive) {
        store = await opened(place);
        ({ coordinator, events } = started(store, place, folder));
        coordinator.startHeartbeat();
        crowd = startCrowd([coordinator], [HEALTHY, BAD]);
      }
      await crowd.untilLeased();
      await crowd.stop();
      expect((await coordinator.assertReady()).namespaces).toEqual(expect.arrayContaining([HEALTHY, BAD]));
      expect(crowd.refusalsOf(HEALTHY)).toEqual({});
      leases.push(...crowd.leases);
      expectNoRunTwice(leases);
      expect(greatestRun(leases, BAD)).toBeGreaterThan(greatestRun(before.leases, BAD));
    },
  );
});

test("a coordinator is not ready when no namespace leases", async () => {
  const place = await sqlitePlace();
  const folder = join(await folderForTest(), "checkpoints");
  let store = await opened(place);
  await initBackdated(store, BAD);
  await store.close();
  await place.write({ ...(await place.read()), k: "0".repeat(40) });
  store = await opened(place);
  const { coordinator } = started(store, place, folder);
  await expect(coordinator.assertReady()).rejects.toMatchObject({ code: "store_corrupt" });
});
