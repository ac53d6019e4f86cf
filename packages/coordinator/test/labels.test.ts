/** Labels in each store: older stores, other programs, backups and moves. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, test } from "vitest";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { sized } from "../../../test/size-of-run.js";
import { NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import { moveNamespace } from "../src/operator/move.js";
import { backupSqliteFile } from "../src/stores/sqlite/backup.js";
import { NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
import { newStore } from "./embedded-place.js";
import { coordinatorOf, embeddedPlace, leaseOf, type MakePlace, memoryPlace, redisPlace } from "./places-for-move.js";
import { clientAt, newStoreAt } from "./redis-for-test.js";
import { init, recentStoreId } from "./steps-for-move.js";

const LABELS = { archive: "lists", team: "mail" };

function change(path: string, sql: string): unknown[] {
  const database = new DatabaseSync(path);
  try {
    return sql.startsWith("SELECT") ? database.prepare(sql).all() : [database.exec(sql)];
  } finally {
    database.close();
  }
}

const TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";

test("an embedded store of a release without labels opens, and does not change until some are set", async () => {
  const { path, open } = await newStore();
  const before = change(path, TABLES);
  expect(JSON.stringify(before)).not.toContain("labels");
  const store = open();
  expect((await store.readSettings(NAMESPACE)).labels).toEqual({});
  await store.close();
  expect(change(path, TABLES)).toEqual(before);
  const again = open();
  await again.changeSettings(NAMESPACE, { labels: LABELS });
  expect((await again.readSettings(NAMESPACE)).labels).toEqual(LABELS);
});

test("a backup of an embedded store holds its labels", async () => {
  const { path, folder, open } = await newStore();
  const store = open();
  await store.changeSettings(NAMESPACE, { labels: LABELS });
  const backup = join(folder, "backup.db");
  backupSqliteFile(path, backup);
  expect(change(backup, "SELECT json FROM namespace_labels")).toEqual([{ json: JSON.stringify(LABELS) }]);
  await rm(backup);
});

test.each(["", "[]", "7", '{"a":7}', "{"])(
  "labels that another program has made %j are not shown, and nothing else is affected",
  async (text) => {
    const { path, open } = await newStore();
    const store = open();
    await store.changeSettings(NAMESPACE, { labels: LABELS });
    await store.close();
    change(path, `UPDATE namespace_labels SET json = '${text}'`);
    const again = open();
    expect((await again.readSettings(NAMESPACE)).labels).toBeUndefined();
    const [described] = await coordinatorOf(again).namespaces();
    expect(described).toMatchObject({ labels: {}, record: { firstRun: 1 }, guard: { state: "active" } });
    expect(described?.guard.explanation).toContain('POST {"labels":{}} to /v1/namespaces/');
    await again.changeSettings(NAMESPACE, { labels: LABELS });
    expect((await again.readSettings(NAMESPACE)).labels).toEqual(LABELS);
  },
);

test("Redis keeps labels in one field of one hash, in the namespace's slot", async () => {
  const place = await redisPlace();
  const { store } = await newStoreAt(place.url);
  await store.changeSettings(NAMESPACE, { labels: LABELS });
  const prefix = new URL(place.url).searchParams.get("prefix");
  expect(await clientAt(sharedRedis().url).hgetall(`${prefix}{${NAMESPACE}}:labels`)).toEqual({
    json: JSON.stringify(LABELS),
  });
});

const PAIRS: readonly [name: string, from: MakePlace, to: MakePlace][] = [
  ["embedded to Redis", embeddedPlace, redisPlace],
  ["Redis to embedded", redisPlace, embeddedPlace],
  ["memory to memory", memoryPlace, memoryPlace],
];

test.each(PAIRS.slice(0, sized(1, PAIRS.length)))(
  "a move from %s copies labels; run again, it keeps those that were set since",
  async (_, makeSource, makeTarget) => {
    const [from, to] = [await makeSource(), await makeTarget()];
    const [source, target] = [await from.open(), await to.open()];
    await init(source, recentStoreId());
    await leaseOf(coordinatorOf(source));
    await source.changeSettings(NAMESPACE, { labels: LABELS });
    const moving = {
      store: source,
      namespace: NAMESPACE,
      checkpointFile: NO_CHECKPOINT_FILE,
      bounds: SHORT_BOUNDS,
      nodeCount: 1,
      target: { store: target, place: to.place, checkpointFile: NO_CHECKPOINT_FILE },
    };
    await moveNamespace(moving);
    expect((await target.readSettings(NAMESPACE)).labels).toEqual(LABELS);
    await leaseOf(coordinatorOf(target));
    await target.changeSettings(NAMESPACE, { labels: { archive: "others" } });
    expect(await moveNamespace(moving)).toMatchObject({ leaseCount: undefined });
    expect((await target.readSettings(NAMESPACE)).labels).toEqual({ archive: "others" });
  },
);
