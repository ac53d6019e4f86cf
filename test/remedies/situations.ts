/**
 * Situations in which something is printed for an operator to run: what happened, and to which of the two namespaces. A new one is a few
 * lines here.
 */
import { copyFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { shellWord } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import { DatabaseSync } from "@photostructure/sqlite";
import { type NamespaceState, readRecord, storedFields } from "../../packages/coordinator/src/guard/record.js";
import { isRefusal } from "../../packages/coordinator/src/guard/refusals.js";
import { newStoreId } from "../../packages/coordinator/src/guard/store-id.js";
import { command, info, until, untilInfo } from "../redis/redis-command.js";
import { launchRedisServer, type RedisServer } from "../redis/redis-server.js";
import type { OperatorWorld } from "./operator-world.js";

export interface Situation {
  readonly name: string;
  readonly store: "redis" | "sqlite" | "postgres";
  readonly namespace: "lists" | "main";
  /** What leases fail with, or the start of a coordinator. */
  readonly code: string;
  readonly inject: (world: OperatorWorld) => Promise<void>;
  /** The other namespace is damaged too: its high-water mark may move. */
  readonly hurtsBoth?: boolean;
  /** Store ids of namespaces that are not the default ones. */
  readonly storeIdOf?: (namespace: string) => string | undefined;
  /** Not what a coordinator prints, but what this command does, which an operator ran. */
  readonly entered?: (world: OperatorWorld) => string;
  /** What is printed where nothing helps but time, instead of a command. */
  readonly endsIn?: RegExp;
}

const DAY_MS = 24 * 3_600_000;
const RATE = 16;
/** A run ceiling that began so long ago has passed its last run. */
const endedStoreId = (namespace: string) =>
  namespace === "lists"
    ? newStoreId({ firstRun: 1, initializedAtMs: Date.now() - Math.ceil(RUN_MAX / RATE) * 1_000, rate: RATE })
    : undefined;
const LONG_AGO_MS = 31 * DAY_MS;

type Redis = (...words: readonly (string | number)[]) => Promise<unknown>;
type OnRedis = (redis: Redis, key: (name: string) => string, world: OperatorWorld) => Promise<unknown>;

type Settings = Partial<Omit<Situation, "name" | "store" | "code" | "inject">>;

/** In one namespace of a Redis, by default `lists`, while a coordinator leases from it. */
function onRedis(name: string, code: string, settings: Settings, act: OnRedis): Situation {
  const { namespace = "lists" } = settings;
  const inject = async (world: OperatorWorld) => {
    const server = world.server as RedisServer;
    await act(
      (...words) => command(server, ...words),
      (key) => world.key(namespace, key),
      world,
    );
  };
  return { name, store: "redis", code, inject, ...settings, namespace };
}

/** In one namespace of an embedded store, by default `lists`, at rest. */
function onSqlite(
  name: string,
  code: string,
  settings: Settings,
  act: (path: string, world: OperatorWorld) => void | Promise<void>,
): Situation {
  const inject = async (world: OperatorWorld) => {
    await world.stopServing();
    await act(world.storeUrl.slice("sqlite:".length), world);
  };
  return { name, store: "sqlite", code, inject, namespace: "lists", ...settings };
}

/** In one namespace of a PostgreSQL, while a coordinator leases from it. */
function onPostgres(name: string, code: string, settings: Settings, sqlOf: (namespace: string) => string): Situation {
  const { namespace = "lists" } = settings;
  const inject = async (world: OperatorWorld) => {
    await world.postgres?.run(`SET search_path TO archive; BEGIN; LOCK namespaces; ${sqlOf(namespace)}; COMMIT`);
  };
  return { name, store: "postgres", code, inject, ...settings, namespace };
}

export const SITUATIONS: readonly Situation[] = [
  ...(["lists", "main"] as const).flatMap((namespace) => [
    onRedis("the record deleted", "namespace_lost", { namespace }, (redis, key) => redis("DEL", key("record"))),
    onRedis("a field of the record edited", "store_corrupt", { namespace }, (redis, key) =>
      redis("HSET", key("record"), "c", 7),
    ),
    onPostgres(
      "the record and its leases deleted",
      "namespace_lost",
      { namespace },
      (name) => `DELETE FROM leases WHERE namespace = '${name}'; DELETE FROM namespaces WHERE name = '${name}'`,
    ),
    onPostgres(
      "a field of the record edited",
      "store_corrupt",
      { namespace },
      (name) => `UPDATE namespaces SET c = '7' WHERE name = '${name}'`,
    ),
    onSqlite("a field of the record edited", "store_corrupt", { namespace }, (path) =>
      edit(path, `UPDATE namespaces SET c = '7' WHERE name = '${namespace}'`),
    ),
  ]),
  ...["record", "ledger", "holders"].map((name) =>
    onRedis(`a string in place of the ${name}`, "store_corrupt", {}, (redis, key) => redis("SET", key(name), "x")),
  ),
  onRedis("another program's hash in place of the record", "store_corrupt", {}, async (redis, key) => {
    await redis("DEL", key("record"));
    await redis("HSET", key("record"), "name", "value");
  }),
  onRedis("a record with a time to live", "store_corrupt", {}, (redis, key) => redis("EXPIRE", key("record"), 3_600)),
  onRedis("two copies met", "store_forked", {}, (redis, key) =>
    rewrite(redis, key("record"), "lists", { phase: 2, seal: "forked" }),
  ),
  onRedis("silent for more than 30 days", "manual_recovery_required", {}, (redis, key) =>
    rewrite(redis, key("record"), "lists", { changedAtMs: Date.now() - LONG_AGO_MS }),
  ),
  onRedis("the record renamed", "namespace_lost", { namespace: "main" }, (redis, key) =>
    redis("RENAME", key("record"), `${key("record")}:away`),
  ),
  onRedis("restarted without its data", "namespace_lost", { hurtsBoth: true }, async (_, __, { server }) => {
    await (server as RedisServer).kill("SIGKILL");
    rmSync(join((server as RedisServer).directory, "appendonlydir"), { recursive: true });
    await (server as RedisServer).start();
  }),
  onRedis(
    "leased under a clock that was far ahead, then restarted",
    "manual_recovery_required",
    { hurtsBoth: true, endsIn: /recover this one after \d{4}-/ },
    async (redis, key, { server }) => {
      await rewrite(redis, key("record"), "lists", { highWaterMark: 2 ** 29 });
      await (server as RedisServer).stop();
      await (server as RedisServer).start();
    },
  ),
  onRedis(
    "recovery started while a coordinator leases",
    "coordinator_still_running",
    { entered: () => "callnumber recover --namespace lists" },
    async () => {},
  ),
  onRedis("emptied", "namespace_lost", { hurtsBoth: true }, (redis) => redis("FLUSHALL")),
  onRedis("a replica attached and taken away", "manual_recovery_required", {}, async (_, __, world) => {
    const server = world.server as RedisServer;
    const replica = await launchRedisServer(world.binary, { config: { replicaof: `127.0.0.1 ${server.port}` } });
    await untilAttached(server);
    await replica.dispose();
    await untilInfo(server, { connected_slaves: "0" });
  }),
  onRedis("a replica that is not counted", "unexpected_replicas", { hurtsBoth: true }, async (_, __, world) => {
    await world.addReplica();
    await untilAttached(world.server as RedisServer);
  }),
  onSqlite("moved to another store", "namespace_moved", { endsIn: /moved to/ }, async (path, world) => {
    const to = sqliteUrl(join(world.folder, "new.db"));
    const { isDone, text } = await world.shell(
      `callnumber move --store ${sqliteUrl(path)} --namespace lists --to ${to} --apply`,
    );
    if (!isDone) throw new Error(text);
  }),
  onRedis("no such namespace", "namespace_not_found", {}, async (redis, key, world) => {
    await world.stopServing();
    await redis("DEL", key("record"), key("ledger"), key("holders"), key("reports"));
    await redis("HDEL", "callnumber:archive:namespaces", "lists");
    rmSync(join(world.folder, "state"), { recursive: true });
  }),
  onRedis(
    "the record deleted, and a new one made",
    "namespace_lost",
    { entered: () => "callnumber init --namespace lists" },
    (redis, key) => redis("DEL", key("record")),
  ),
  onRedis("all runs leased", "run_space_exhausted", { storeIdOf: endedStoreId }, (redis, key) =>
    rewrite(redis, key("record"), "lists", { highWaterMark: RUN_MAX }),
  ),
  onSqlite("the record lost", "namespace_lost", {}, (path) =>
    edit(
      path,
      `UPDATE namespaces SET ${["v", "ns", "sid", "ver", "c", "t", "ep", "g", "p", "n", "rk", "ph", "k"].map((field) => `${field} = NULL`).join(", ")} WHERE name = 'lists'`,
    ),
  ),
  onSqlite("the store id damaged", "store_corrupt", {}, (path) =>
    edit(path, "UPDATE namespaces SET sid = 'x' WHERE name = 'lists'"),
  ),
  onSqlite("a copy in its place", "store_copied", { hurtsBoth: true }, (path) => {
    copyFileSync(path, `${path}.copy`);
    renameSync(`${path}.copy`, path);
  }),
  onSqlite("a backup in its place", "store_copied", { hurtsBoth: true }, async (path, world) => {
    await world.shell(`callnumber backup --store ${sqliteUrl(path)} --to backup.db`);
    for (const end of ["-wal", "-shm", ""]) rmSync(`${path}${end}`, { force: true });
    renameSync(join(world.folder, "backup.db"), path);
  }),
  onSqlite("all runs leased", "run_space_exhausted", { storeIdOf: endedStoreId }, (path) =>
    rewriteRow(path, "lists", { highWaterMark: RUN_MAX }),
  ),
  onSqlite("two copies met", "store_forked", {}, (path) => rewriteRow(path, "lists", { phase: 2, seal: "forked" })),
  onSqlite("silent for more than 30 days, and nothing remembered", "manual_recovery_required", {}, (path, world) => {
    rewriteRow(path, "lists", { changedAtMs: Date.now() - LONG_AGO_MS });
    rmSync(join(world.folder, "state"), { recursive: true });
  }),
  onSqlite("no such namespace", "namespace_not_found", {}, (path, world) => {
    edit(
      path,
      "PRAGMA foreign_keys = OFF; DELETE FROM leases WHERE namespace_id = (SELECT id FROM namespaces WHERE name = 'lists'); DELETE FROM namespaces WHERE name = 'lists'",
    );
    rmSync(join(world.folder, "state"), { recursive: true });
  }),
];

function edit(path: string, statements: string): void {
  const database = new DatabaseSync(path);
  database.exec(statements);
  database.close();
}

/** Writes the record as no step would, but with a good checksum. */
async function rewrite(redis: Redis, key: string, namespace: string, change: Partial<NamespaceState>): Promise<void> {
  const flat = (await redis("HGETALL", key)) as string[];
  const fields = Object.fromEntries(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1]]] : [])));
  await redis("HSET", key, ...Object.entries(changed(fields, namespace, change)).flat());
}

function rewriteRow(path: string, namespace: string, change: Partial<NamespaceState>): void {
  const database = new DatabaseSync(path);
  const row = database.prepare("SELECT * FROM namespaces WHERE name = ?").get(namespace) as Record<string, string>;
  const fields = Object.entries(changed(row, namespace, change));
  const columns = fields.map(([name]) => `${name} = ?`).join(", ");
  database
    .prepare(`UPDATE namespaces SET ${columns} WHERE name = ?`)
    .run(...fields.map(([, value]) => value), namespace);
  database.close();
}

function changed(
  fields: Readonly<Record<string, string | undefined>>,
  namespace: string,
  change: Partial<NamespaceState>,
) {
  const record = readRecord(fields as Record<string, string>, namespace);
  if (isRefusal(record)) throw new Error(`the record can't be read: ${record.detail}`);
  return storedFields({ ...record, ...change });
}

function untilAttached(server: RedisServer): Promise<unknown> {
  return until(
    "a replica is attached",
    () => info(server),
    ({ slave0 }) => slave0?.includes("state=online") === true,
  );
}

/** As a word of the shell. */
function sqliteUrl(path: string): string {
  return shellWord(`sqlite:${path}`);
}
