/**
 * The PostgreSQL store sends each step once, needs no right that we do not ship, and counts nothing as acknowledged that a standby may lack.
 * Guarantees: G4, G5 (docs/guarantees.md).
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { beforeEach, describe, expect, inject, onTestFinished, test } from "vitest";
import { type Direction, startCuttingProxy } from "../../../test/postgres/cutting-proxy.js";
import { findPgbouncer, startPgbouncer } from "../../../test/postgres/pgbouncer.js";
import { OTHER_USER } from "../../../test/postgres/postgres-programs.js";
import { archive, baseBackup, followed } from "../../../test/postgres/standby.js";
import {
  asCoordinator,
  type PostgresServer,
  shippedRights,
  startPostgresServer,
  storeUrlAt,
} from "../../../test/postgres/test-postgres.js";
import { callnumber, folderForTest, REPOSITORY, serve } from "../../../test/processes/command.js";
import { smallDisk, smallDiskUnavailable } from "../../../test/small-disk.js";
import { type CertificateAndKey, newAuthority } from "../../../test/tls/certificates.js";
import { Coordinator } from "../src/coordinator.js";
import { NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import { NamespaceGuard } from "../src/guard/namespace-guard.js";
import { planRecovery, recoverNamespace } from "../src/operator/recover.js";
import { statementsIn } from "../src/stores/postgres/statements.js";
import type { Store } from "../src/stores/store.js";
import { NAMESPACE } from "./commands-for-test.js";
import { needsOwnPostgres, newPostgresStoreAt, newSchemaAt, postgresStoreAt } from "./postgres-for-test.js";
import { inHand, withNamespace } from "./store-in-hand.js";
import { postgresAddressForTest } from "./stores-for-test.js";

beforeEach(needsOwnPostgres);

let shared: PostgresServer | undefined;
/** One for the tests that neither end nor configure it. */
async function server(): Promise<PostgresServer> {
  shared ??= await startPostgresServer();
  return shared;
}

const unavailable = expect.objectContaining({ code: "store_unavailable" });

/** Leads each connection to the next of several servers. */
async function spreadingProxy(servers: readonly PostgresServer[]) {
  let next = 0;
  const proxy = createServer((client) => {
    const { host, port } = servers[next++ % servers.length] as PostgresServer;
    const upstream = connect({ host, port });
    for (const [one, other] of [[client, upstream] as const, [upstream, client] as const]) {
      one.on("error", () => {}).on("close", () => other.destroy());
      one.pipe(other);
    }
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => void proxy.close());
  return { host: "127.0.0.1", port: (proxy.address() as AddressInfo).port };
}

async function throughProxy() {
  const { port, host } = await server();
  const direct = await newPostgresStoreAt(await server());
  const proxy = await startCuttingProxy({ host, port });
  onTestFinished(() => proxy.close());
  const url = new URL(direct.url);
  url.port = String(proxy.port);
  const store = await postgresStoreAt(url.href);
  return { direct, proxy, ...inHand(store, { storeId: direct.storeId }) };
}

test.each<[Direction, number]>([
  ["to_client", 1],
  ["to_server", 1],
])("a lease whose connection is cut at any byte %s fails, and its run is not granted again", async (direction) => {
  const { direct, proxy, lease } = await throughProxy();
  await lease();
  const before = proxy.passed[direction];
  await lease();
  const stepBytes = proxy.passed[direction] - before;
  expect(stepBytes).toBeGreaterThan(100);
  const granted = new Set<number>();
  let lostCount = 0;
  // Of the answer each byte; of the long statement each tenth, from one on that the seed draws.
  const every = direction === "to_client" ? 1 : 10;
  for (let byteCount = 1 + (inject("seed") % every); byteCount <= stepBytes; byteCount += every) {
    void proxy.cutAfter(direction, byteCount);
    const outcome = await lease().catch((error: Error) => error);
    if (outcome instanceof Error) {
      expect(outcome).toEqual(unavailable);
      lostCount++;
    } else {
      expect(granted.has(outcome.firstRun)).toBe(false);
      granted.add(outcome.firstRun);
    }
    const { firstRun } = await lease();
    expect(granted.has(firstRun)).toBe(false);
    granted.add(firstRun);
  }
  expect(lostCount).toBeGreaterThan(stepBytes / 20);
  const { highWaterMark } = await direct.read();
  expect(highWaterMark).toBeGreaterThanOrEqual(Math.max(...granted));
});

test("a lease that is answered too late fails, is not sent again, and no later step gets its answer", async () => {
  const one = await newPostgresStoreAt(await server(), { timeoutMs: 500 });
  await one.lease();
  // Another transaction holds the row for longer than the coordinator waits for its answer.
  const held = (await server()).run(
    `BEGIN; SELECT FROM ${one.schema}.namespaces FOR UPDATE; SELECT pg_sleep(1.5) /* ${one.schema} */; COMMIT;`,
  );
  await expect.poll(() => waiting(one.schema)).toBeGreaterThan(0);
  await expect(one.lease()).rejects.toEqual(unavailable);
  await held;
  expect((await one.lease()).firstRun).toBeGreaterThan(1);
});

test("connections that are ended at any moment, also within the login, fail steps and no process, and no run comes twice", async () => {
  const { lease } = await newPostgresStoreAt(await server());
  const client = await superuserAt(await server());
  const runs: number[] = [];
  let failureCount = 0;
  const over = new AbortController();
  const ending = (async () => {
    while (!over.signal.aborted) {
      await client.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'callnumber'",
      );
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 4));
    }
  })();
  while (failureCount < 300) {
    const outcome = await lease().catch((error: Error) => error);
    if (!(outcome instanceof Error)) runs.push(outcome.firstRun);
    else {
      expect(outcome).toEqual(unavailable);
      failureCount++;
    }
  }
  over.abort();
  await ending;
  expect(runs).toEqual([...new Set(runs)].sort((one, other) => one - other));
});

/** A folder that the servers' user may write. */
function folderOfServers(): string {
  const folder = mkdtempSync(join(tmpdir(), "received-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  if (OTHER_USER !== undefined) chownSync(folder, OTHER_USER.uid, OTHER_USER.gid);
  return folder;
}

async function superuserAt({ url }: PostgresServer): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

async function waiting(schema: string): Promise<number> {
  const rows = await (await server()).run(
    `SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%/* ${schema} */%' AND wait_event = 'PgSleep'`,
  );
  return Number(rows[0]?.[0]);
}

test("a server whose disk is full grants nothing, and nothing twice once there is room", async (context) => {
  const reason = OTHER_USER === undefined ? "only root can start it on a disk of its own" : smallDiskUnavailable();
  context.skip(reason !== undefined, reason);
  const disk = await smallDisk(await folderForTest(), 96 * 1_024);
  const own = await startPostgresServer({ disk, settings: { max_wal_size: "2MB", min_wal_size: "2MB" } });
  const one = await newPostgresStoreAt(own);
  const runs = [(await one.lease()).firstRun];
  disk.fill();
  const longHolder = (at: number) => ({ name: `${at} ${"x".repeat(2_000)}`, host: "h", pid: 1, labels: {} });
  // Some leases find room in what is allocated already.
  for (let at = 0, isFull = false; !isFull; at++) {
    const outcome = await one.lease({ holder: longHolder(at) }).catch((error: Error) => error);
    isFull = outcome instanceof Error;
    if (outcome instanceof Error) expect(outcome).toEqual(unavailable);
    else runs.push(outcome.firstRun);
  }
  disk.free();
  await own.kill("SIGQUIT");
  await own.start();
  await expect(one.lease()).rejects.toMatchObject({ reason: "epoch_changed" });
  expect(await one.skipAhead()).toBeGreaterThan(Math.max(...runs));
  expect(runs).toEqual(runs.map((_, index) => index + 1));
});

describe("TLS", () => {
  const authority = newAuthority();

  async function withTls(
    certificate: CertificateAndKey,
  ): Promise<{ readonly server: PostgresServer; readonly ca: string }> {
    const own = await startPostgresServer();
    const files = { cert: certificate.certificate, key: certificate.key };
    for (const [name, text] of Object.entries(files)) {
      const path = join(own.data, `server.${name}`);
      writeFileSync(path, text, { mode: 0o600 });
      if (OTHER_USER !== undefined) chownSync(path, OTHER_USER.uid, OTHER_USER.gid);
    }
    await own.configure({ ssl: "on", ssl_cert_file: "server.cert", ssl_key_file: "server.key" });
    const ca = join(await folderForTest(), "ca.pem");
    writeFileSync(ca, authority.certificate);
    return { server: own, ca };
  }

  const urlOf = ({ url }: PostgresServer, settings: string) =>
    `${storeUrlAt(url, "tls")}&sslmode=verify-full${settings}`;

  test("a server with a certificate of the given authority is used over TLS, and one of another is not", async () => {
    const { server: own, ca } = await withTls(authority.issue());
    await expect.poll(() => own.run("SHOW ssl")).toEqual([["on"]]);
    const { lease } = await withNamespace(await postgresStoreAt(urlOf(own, `&ca=${ca}`), { create: true }));
    expect((await lease()).firstRun).toBe(1);
    expect(
      await own.run(
        "SELECT count(*) > 0 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name = 'callnumber'",
      ),
    ).toEqual([["t"]]);
    await expect(postgresStoreAt(urlOf(own, ""))).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("its certificate is of an authority that is not known here"),
    });
  });

  test("a server without TLS is refused where TLS is asked for", async () => {
    await expect(postgresStoreAt(urlOf(await server(), ""))).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("does not support SSL"),
    });
  });
});

describe("rights", () => {
  test("the shipped rights let a coordinator make no table and drop none", async () => {
    const { schema } = await newPostgresStoreAt(await server());
    for (const sql of [
      `DROP SCHEMA ${schema} CASCADE`,
      `CREATE TABLE ${schema}.other ()`,
      `DELETE FROM ${schema}.namespaces`,
    ]) {
      await expect((await server()).run(`SET ROLE callnumber; ${sql}`)).rejects.toThrow(/42501/);
    }
  });

  test("a user who may not read the epoch is refused with the function to grant, and leases nothing", async () => {
    const own = await startPostgresServer();
    const url = await newSchemaAt(own);
    await own.run("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC");
    const store = await postgresStoreAt(url);
    await expect(store.read(NAMESPACE)).rejects.toMatchObject({
      code: "store_epoch_unreadable",
      message: expect.stringContaining("EXECUTE on pg_control_system"),
    });
  });

  test("so is one whose server speaks another language", async (context) => {
    const environment = { LANGUAGE: "de" };
    const own = await startPostgresServer({ environment, settings: { lc_messages: "C.utf8" } });
    const denied = await own.run("SELECT 1/0").catch(String);
    context.skip(!String(denied).includes("durch Null"), "the server has no German messages here");
    const store = await postgresStoreAt(await newSchemaAt(own));
    const refused = (right: string) =>
      expect(store.read(NAMESPACE)).rejects.toMatchObject({
        code: "store_epoch_unreadable",
        message: expect.stringMatching(`keine Berechtigung für .*Grant ${right} to`),
      });
    await own.run("REVOKE SELECT ON pg_stat_replication FROM PUBLIC");
    await refused("SELECT on pg_stat_replication");
    await own.run("GRANT SELECT ON pg_stat_replication TO PUBLIC");
    await own.run("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC");
    await refused("EXECUTE on pg_control_system");
  });

  test("a database whose name is like one of the server's own functions is not taken for one", async () => {
    const coordinator = new URL(await newSchemaAt(await server()));
    await (await server()).run("CREATE DATABASE pg_archive");
    const place = new URL(coordinator);
    place.pathname = "/pg_archive";
    await expect(postgresStoreAt(place.href, { create: true })).rejects.toMatchObject({ code: "store_unavailable" });
  });

  test("a user without a right to the tables is refused with the file that grants it", async () => {
    const url = storeUrlAt((await server()).url);
    await postgresStoreAt(url, { create: true });
    await expect(postgresStoreAt(asCoordinator(url))).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("deploy/postgres/coordinator.sql"),
    });
  });
});

test("the user and the database that the image's script makes are enough for init and for leases", async () => {
  const { host, port } = await server();
  const script = join(REPOSITORY, "deploy/postgres/make-database.sh");
  const env = { PGHOST: host, PGPORT: String(port), POSTGRES_USER: "postgres", CALLNUMBER_POSTGRES_PASSWORD: "it's" };
  await (await server()).run("DROP ROLE IF EXISTS callnumber_of_the_image");
  const text = readFileSync(script, "utf8").replaceAll(/\bcallnumber\b(?! init)/g, "callnumber_of_the_image");
  await promisify(execFile)("sh", ["-c", text], { env: { ...process.env, ...env } });
  const url = `postgres://callnumber_of_the_image@${host}:${port}/callnumber_of_the_image`;
  const { lease, store } = await withNamespace(await postgresStoreAt(url, { create: true }));
  expect((await lease()).firstRun).toBe(1);
  // The servers of tests sync nothing to the disk.
  expect((await store.preflight()).map(({ override }) => override)).toEqual(["fsync"]);
});

describe("the schema", () => {
  test("a store that is missing is named with the command that makes it, and made only with create", async () => {
    const url = storeUrlAt((await server()).url, "missing");
    await expect(postgresStoreAt(url)).rejects.toMatchObject({
      code: "store_not_found",
      message: expect.stringContaining("callnumber init --store STORE_URL"),
    });
    expect((await postgresStoreAt(url, { create: true })).isNew).toBe(true);
    expect((await postgresStoreAt(url, { create: true })).isNew).toBe(false);
    await (await server()).run("DROP SCHEMA missing CASCADE");
  });

  test("tables of another version are rejected, and nothing is written", async () => {
    const { schema, url } = await newPostgresStoreAt(await server());
    await (await server()).run(`UPDATE ${schema}.store SET schema_version = 2`);
    await expect(postgresStoreAt(url)).rejects.toMatchObject({ code: "store_schema_unsupported" });
  });

  test("a record whose row was edited is corrupt, and one that is put back as it was leases", async () => {
    const { schema, lease, store } = await newPostgresStoreAt(await server());
    await lease();
    await (await server()).run(`UPDATE ${schema}.namespaces SET c = '7'`);
    await expect(store.readNamespace(NAMESPACE)).rejects.toMatchObject({ code: "store_corrupt" });
    await expect(lease()).rejects.toMatchObject({ code: "store_corrupt" });
    await (await server()).run(`UPDATE ${schema}.namespaces SET c = '1'`);
    expect((await lease()).firstRun).toBe(2);
  });

  test.each(["namespaces", "leases", "holders"])("a store whose table %s is gone is corrupt", async (table) => {
    const { schema, lease } = await newPostgresStoreAt(await server());
    await (await server()).run(`DROP TABLE ${schema}.${table} CASCADE`);
    await expect(lease()).rejects.toMatchObject({ code: "store_corrupt", message: expect.stringContaining(schema) });
  });

  const TABLES = ["store", "namespaces", "holders", "leases"];
  const ACCIDENTS = [
    ...TABLES.map((table) => `DROP TABLE ${table} CASCADE`),
    "TRUNCATE store",
    `TRUNCATE ${TABLES.join(", ")}`,
    `DROP TABLE ${TABLES.join(", ")}`,
  ];

  /** A store that has leased run 1, after the accident, and what the coordinator prints then. */
  async function storeAfter(accident: string) {
    const own = await server();
    const coordinator = await newSchemaAt(own);
    const { schema } = postgresAddressForTest(coordinator);
    const owner = storeUrlAt(own.url, schema);
    const place = ["--checkpoint-dir", await folderForTest()];
    const nextRun = async () => {
      const { url, stop } = await serve(coordinator, ...place);
      let stdout = "";
      // On a busy machine it leases later than `next` waits.
      await expect
        .poll(async () => {
          const finished = await callnumber(["next", "--coordinator", url]);
          ({ stdout } = finished);
          return finished.code;
        })
        .toBe(0);
      await stop();
      return Number((await callnumber(["decode", stdout.trim()])).stdout.split(",")[1]);
    };
    const rowsIn = (table: string) =>
      own.run(`SELECT count(*) FROM ${schema}.${table}`).then(
        ([row]) => Number(row?.[0]),
        () => "no table",
      );
    await callnumber(["init", "--store", owner, ...place]);
    expect(await nextRun()).toBe(1);
    await own.run(`SET search_path TO ${schema}; ${accident}`);
    const { stderr } = await callnumber(["serve", "--port", "0", "--store", coordinator, ...place]);
    const [, printed = ""] = /`callnumber (recover [^`]+)`/.exec(stderr) ?? [];
    const words = printed.split(" ").map((word) => (word.includes("postgres:") ? owner : word));
    return { accident, schema, words, nextRun, rows: () => Promise.all(TABLES.map(rowsIn)) };
  }

  test("the printed command makes tables and rows that are missing, keeps what is there, and recovers above all that was leased", async () => {
    // One after the other, because each changes the rights of one user.
    const stores = [];
    for (const accident of ACCIDENTS) stores.push(await storeAfter(accident));
    const recovering = stores.map(async ({ accident, words, rows }) => {
      const left = await rows();
      const planned = await callnumber(words);
      const { code: plannedCode } = planned;
      expect({ accident, code: plannedCode, rows: await rows() }, planned.stderr).toEqual({
        accident,
        code: 0,
        rows: left,
      });
      const { code, stderr } = await callnumber([...words, "--apply"]);
      // The record is made again, and the version of the schema.
      const [, , ...ledger] = left.map((count) => (count === "no table" ? 0 : count));
      expect({ accident, code, rows: await rows() }, stderr).toEqual({ accident, code: 0, rows: [1, 1, ...ledger] });
    });
    await Promise.all(recovering);
    for (const { schema } of stores) {
      for (const statement of shippedRights(schema)) await (await server()).run(statement);
    }
    for (const run of await Promise.all(stores.map(({ nextRun }) => nextRun()))) expect(run).toBeGreaterThan(65_536);
  });

  test("a recovery that makes a missing table keeps the data nodes of the record that is there", async () => {
    const own = await server();
    const { schema } = postgresAddressForTest(await newSchemaAt(own));
    const owner = storeUrlAt(own.url, schema);
    const place = ["--store", owner, "--checkpoint-dir", await folderForTest()];
    expect(await callnumber(["init", ...place])).toMatchObject({ code: 0 });
    const table = `${schema}.namespaces`;
    const fields = "v, ns, sid, ver, c, t, ep, g, p, '2', rk, ph";
    const checksum = `encode(sha256(convert_to(array_to_string(ARRAY[${fields}], E'\\n', ''), 'UTF8')), 'hex')`;
    await own.run(`UPDATE ${table} SET n = 2, k = ${checksum}; DROP TABLE ${schema}.store`);
    const [[storeId = ""] = []] = await own.run(`SELECT sid FROM ${table}`);
    const { stderr } = await callnumber(["recover", ...place, "--store-id", storeId, "--apply"]);
    expect(stderr).toContain("quorum_missing");
    expect(await own.run(`SELECT n FROM ${table}`)).toEqual([["2"]]);
  });

  test("without a checkpoint, tables that are missing are named with the command that makes them, which init does not repeat", async () => {
    const { schema, url, lease, storeId } = await newPostgresStoreAt(await server());
    await lease();
    await (await server()).run(`DROP TABLE ${schema}.leases`);
    await expect(postgresStoreAt(url)).rejects.toMatchObject({
      code: "store_corrupt",
      message: expect.stringMatching(/lacks its leases\..*`callnumber recover --store STORE_URL --store-id STORE_ID`/),
    });
    const made = await postgresStoreAt(storeUrlAt((await server()).url, schema), { create: true });
    expect(made.isNew).toBe(false);
    expect(await made.readNamespace(NAMESPACE)).toMatchObject({ storeId, highWaterMark: 1 });
    await expect(withNamespace(made)).rejects.toMatchObject({ code: "namespace_exists" });
    // The new table has no rights yet.
    await expect(lease()).rejects.toMatchObject({
      message: expect.stringContaining("deploy/postgres/coordinator.sql"),
    });
  });

  test("what is missing is not made next to tables of another version, or another program's", async () => {
    const { schema } = await newPostgresStoreAt(await server());
    await (await server()).run(`DROP TABLE ${schema}.leases; UPDATE ${schema}.store SET schema_version = 2`);
    const owner = storeUrlAt((await server()).url, schema);
    await expect(postgresStoreAt(owner, { create: true })).rejects.toMatchObject({ code: "store_schema_unsupported" });
    const foreign = `DROP SCHEMA ${schema} CASCADE; CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.leases (id integer)`;
    await (await server()).run(foreign);
    await expect(postgresStoreAt(owner, { create: true })).rejects.toMatchObject({ code: "store_corrupt" });
    const tables = `SELECT tablename FROM pg_tables WHERE schemaname = '${schema}'`;
    expect(await (await server()).run(tables)).toEqual([["leases"]]);
  });

  test("text of any kind in a holder is kept", async () => {
    const { lease, store } = await newPostgresStoreAt(await server());
    const holder = { name: "ß \\ \" ' \u0001 \u{1f4ee}", host: "h\u0000", pid: 1, labels: { "𝄞": "\ud800" } };
    await lease({ holder });
    const [entry] = await store.leases(NAMESPACE, { direction: "newest_first", limit: 1 });
    expect(entry?.holder).toEqual(holder);
    expect(await store.hasHolder(NAMESPACE, holder.name)).toBe(true);
  });
});

test("the SQL of the documents removes one namespace, and leaves the others as they are", async () => {
  const page = readFileSync(join(REPOSITORY, "docs/how-to/maintain.md"), "utf8");
  const [, sql = ""] = /```sql postgres:remove-namespace\n(.*?)```/s.exec(page) ?? [];
  const { schema, ...kept } = await newPostgresStoreAt(await server());
  const removed = await withNamespace(kept.store, { namespace: "list" });
  for (const { lease } of [kept, kept, removed]) await lease();
  await (await server()).run(sql.replaceAll("callnumber.", `${schema}.`));
  expect(await kept.store.listNamespaces()).toEqual([NAMESPACE]);
  const all = { direction: "oldest_first", limit: 9 } as const;
  expect(await kept.store.leases("list", all)).toEqual([]);
  expect((await kept.store.leases(NAMESPACE, all)).map(({ holder }) => holder.name)).toEqual(["importer", "importer"]);
  expect((await kept.lease()).firstRun).toBe(3);
  // It may be made again, as one that never was.
  expect((await (await withNamespace(kept.store, { namespace: "list" })).lease()).firstRun).toBe(1);
});

test("a store works through PgBouncer in transaction mode, whose sessions change with each transaction", async (context) => {
  const program = await findPgbouncer();
  if (program.missing !== undefined) return context.skip(program.missing);
  const url = await newSchemaAt(await server());
  const bouncer = await startPgbouncer(program, await server());
  const through = new URL(url);
  through.port = String(bouncer.port);
  const one = await withNamespace(await postgresStoreAt(through.href));
  const others = await Promise.all(
    [1, 2, 3].map(async () => inHand(await postgresStoreAt(through.href), { storeId: one.storeId })),
  );
  const leases = await Promise.all(Array.from({ length: 200 }, (_, index) => others[index % 3]?.lease()));
  expect(new Set(leases.map((lease) => lease?.firstRun)).size).toBe(200);
  expect((await one.read()).highWaterMark).toBe(200);
});

test("a record that has several rows, because its key was lost, is corrupt", async () => {
  const one = await newPostgresStoreAt(await server());
  await one.lease();
  const table = `${one.schema}.namespaces`;
  await (await server()).run(`ALTER TABLE ${table} DROP CONSTRAINT namespaces_pkey CASCADE`);
  await (await server()).run(`INSERT INTO ${table} SELECT * FROM ${table}`);
  await expect(one.read()).rejects.toMatchObject({ code: "store_corrupt" });
});

test("a coordinator that is gone in the middle of a transaction holds up the others for seconds", async () => {
  const one = await newPostgresStoreAt(await server());
  const gone = new pg.Client({ connectionString: (await server()).url });
  gone.on("error", () => {});
  onTestFinished(() => gone.end());
  await gone.connect();
  const { beginLocally, lockName } = statementsIn(one.schema);
  await gone.query("BEGIN");
  await gone.query(beginLocally);
  await gone.query(lockName, [NAMESPACE]);
  await expect(one.lease()).rejects.toMatchObject({ message: expect.stringContaining("pg_stat_activity") });
  await expect.poll(() => one.lease().then(() => "leased", String)).toBe("leased");
});

test("a replication connection that streams nothing is no standby", async () => {
  const one = await newPostgresStoreAt(await server());
  const url = new URL((await server()).url);
  url.searchParams.set("replication", "true");
  const monitor = new pg.Client({ connectionString: url.href });
  await monitor.connect();
  expect(await (await server()).run("SELECT state FROM pg_stat_replication")).toEqual([["startup"]]);
  await one.lease();
  expect((await one.store.preflight()).map(({ code }) => code)).not.toContain("unexpected_replicas");
  await monitor.end();
});

test("steps fail while another program locks a table, and leave no connection that goes on waiting", async () => {
  const own = await startPostgresServer();
  const one = await newPostgresStoreAt(own);
  await one.lease();
  const locked = own.run(`BEGIN; LOCK TABLE ${one.schema}.namespaces; SELECT pg_sleep(14); COMMIT`);
  const held = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted";
  // Asked of the server: a lease may be answered before the end of the lock is known here.
  const isHeld = async () => Number((await own.run(held))[0]?.[0]) > 0;
  await expect.poll(isHeld).toBe(true);
  const ended = locked.then(() => "ended");
  const now = () => Promise.race([ended, "locked"]);
  const counts: number[] = [];
  while ((await now()) === "locked") {
    const leases = await Promise.allSettled([one, one, one].map(({ lease }) => lease()));
    if (await isHeld()) expect(leases.map(({ status }) => status)).toContain("rejected");
    const waiting =
      "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'callnumber' AND wait_event_type = 'Lock'";
    counts.push(Number((await own.run(waiting))[0]?.[0]));
  }
  await locked;
  expect(Math.max(...counts)).toBe(0);
  expect((await one.lease()).runCount).toBe(1);
});

describe("with a synchronous standby", () => {
  async function pair(settings: Readonly<Record<string, string>> = {}) {
    const primary = await startPostgresServer({ settings });
    const standby = await startPostgresServer({
      fill: (data) => baseBackup(primary, data, `primary_conninfo = '${followed(primary)}'\n`),
    });
    await primary.configure({ synchronous_standby_names: "ANY 1 (standby)" });
    await expect.poll(() => primary.run("SELECT sync_state FROM pg_stat_replication")).toEqual([["quorum"]]);
    return { primary, standby };
  }

  const sessions = "FROM pg_stat_activity WHERE application_name = 'callnumber' AND wait_event = 'SyncRep'";

  async function recoverFor(store: Store, nodeCount: number, overrides: readonly string[] = []) {
    const options = {
      store,
      namespace: NAMESPACE,
      checkpointFile: NO_CHECKPOINT_FILE,
      storeId: undefined,
      floors: [],
      nodeCount,
      overrides,
      isClockChecked: false,
      watchMs: 0,
      pause: async () => {},
    };
    return await recoverNamespace(options, await planRecovery(options));
  }

  test("a lease counts when the standby has it, and the epoch of a promoted one is another", async () => {
    const { primary, standby } = await pair();
    const one = await newPostgresStoreAt(primary, { nodeCount: 2 });
    const { acknowledgedCount, check } = await one.step(one.commands.lease());
    expect(acknowledgedCount).toBe(1);
    expect(check).toMatchObject({ role: "master", generation: 0 });
    const url = new URL(one.url);
    url.port = String(standby.port);
    const other = inHand(await postgresStoreAt(url.href), { storeId: one.storeId });
    expect((await other.read()).highWaterMark).toBe(1);
    await expect(other.lease()).rejects.toMatchObject({ code: "store_is_replica" });
    await standby.run("SELECT pg_promote()");
    await expect(other.lease()).rejects.toMatchObject({ reason: "epoch_changed" });
  });

  test.each([
    ["pg_cancel_backend", "quorum_missing"],
    ["pg_terminate_backend", "store_unavailable"],
  ])("a lease whose wait for the standby ends by %s is not acknowledged (%s)", async (end, code) => {
    const { primary, standby } = await pair();
    // The warning is all that shows it.
    await primary.run("ALTER DATABASE postgres SET client_min_messages = 'error'");
    const one = await newPostgresStoreAt(primary, { nodeCount: 2 });
    await one.lease();
    const [[pid = ""] = []] = await standby.run("SELECT pid FROM pg_stat_wal_receiver");
    process.kill(Number(pid), "SIGSTOP");
    const steps = one.step(one.commands.lease()).then(
      ({ acknowledgedCount }) => (acknowledgedCount === 0 ? "quorum_missing" : "acknowledged"),
      (error: { code: string }) => error.code,
    );
    await expect.poll(() => primary.run(`SELECT ${end}(pid) ${sessions}`)).toEqual([["t"]]);
    expect(await steps).toBe(code);
    process.kill(Number(pid), "SIGCONT");
  });

  test("a lease that waits for a standby for too long is not acknowledged: statement_timeout does not end a commit", async () => {
    const { primary, standby } = await pair();
    const one = await newPostgresStoreAt(primary, { nodeCount: 2 });
    await primary.run("ALTER ROLE callnumber SET statement_timeout = '300ms'");
    const limited = inHand(await postgresStoreAt(one.url, { timeoutMs: 1_000 }), { storeId: one.storeId });
    await limited.lease();
    const [[pid = ""] = []] = await standby.run("SELECT pid FROM pg_stat_wal_receiver");
    process.kill(Number(pid), "SIGSTOP");
    await expect(limited.lease()).rejects.toEqual(unavailable);
    process.kill(Number(pid), "SIGCONT");
  });

  test("a lease that no commit waits for is not acknowledged, and a report waits for no standby", async () => {
    const { primary, standby } = await pair();
    const one = await newPostgresStoreAt(primary, { nodeCount: 2 });
    await primary.configure({ synchronous_standby_names: "" });
    await expect.poll(() => primary.run("SELECT sync_state FROM pg_stat_replication")).toEqual([["async"]]);
    expect((await one.step(one.commands.lease())).acknowledgedCount).toBe(0);
    const [[pid = ""] = []] = await standby.run("SELECT pid FROM pg_stat_wal_receiver");
    process.kill(Number(pid), "SIGSTOP");
    await primary.configure({ synchronous_standby_names: "ANY 1 (standby)" });
    await expect.poll(() => primary.run("SELECT sync_state FROM pg_stat_replication")).toEqual([["quorum"]]);
    const [lease] = await one.store.leases(NAMESPACE, { direction: "newest_first", limit: 1 });
    const progress = { run: 1, lastSequence: 5, state: "open", reportedAtMs: Date.now() } as const;
    expect(await one.store.setProgress(NAMESPACE, lease as NonNullable<typeof lease>, progress)).toBe(true);
    await one.store.setRetentionDays(NAMESPACE, 30);
    expect(await primary.run(`SELECT 1 ${sessions}`)).toEqual([]);
    process.kill(Number(pid), "SIGCONT");
  });

  test("standbys of another server, which a pooler leads to, acknowledge nothing", async (context) => {
    const program = await findPgbouncer();
    if (program.missing !== undefined) return context.skip(program.missing);
    const { primary } = await pair();
    const one = await newPostgresStoreAt(primary, { nodeCount: 2 });
    const isolated = await startPostgresServer({
      fill: (data) =>
        baseBackup(primary, data, `primary_conninfo = '${followed(primary)}'\nsynchronous_standby_names = ''\n`),
    });
    await isolated.run("SELECT pg_promote()");
    // Connected, as a standby whose network is cut seems to be for a while.
    const archiving = archive(isolated, folderOfServers(), "silent");
    await expect.poll(() => isolated.run("SELECT count(*) FROM pg_stat_replication")).toEqual([["1"]]);
    await expect.poll(() => primary.run("SELECT count(*) FROM pg_stat_replication")).toEqual([["1"]]);
    const storeAt = async ({ port }: { readonly port: number }) => {
      const url = new URL(one.url);
      url.port = String(port);
      return inHand(await postgresStoreAt(url.href), { storeId: one.storeId });
    };
    const there = await storeAt(isolated);
    const pooler = await startPgbouncer(program, await spreadingProxy([primary, isolated]));
    const pooled = await storeAt(pooler);
    const other = new pg.Pool({ host: "127.0.0.1", port: pooler.port, database: "postgres", user: "any" });
    onTestFinished(() => other.end());
    // Opens both sessions of the pooler, which it then uses in turns.
    const sleeping = ["SELECT pg_sleep(0.5)", "SELECT pg_sleep(0.5)"].map((text) => other.query(text));
    await Promise.all(sleeping);
    // So that it is left to chance which session comes next.
    const ending = new AbortController();
    const disturbing = (async () => {
      while (!ending.signal.aborted) {
        await other.query("SELECT 1");
        await delay(Math.random() * 4);
      }
    })();
    let writtenThere = 0;
    for (let tries = 0; tries < 300 && writtenThere < 12; tries++) {
      const { generation } = await there.read();
      const claimed = await pooled.step(pooled.commands.claim(generation)).catch((error: Error) => error);
      if ((await there.read()).generation === generation) continue;
      writtenThere++;
      if (!(claimed instanceof Error)) expect(claimed.acknowledgedCount).toBe(0);
    }
    ending.abort();
    await disturbing;
    expect(writtenThere).toBe(12);
    await isolated.kill("SIGQUIT");
    await archiving;
  });

  test("a copy of the database has another epoch", async () => {
    const own = await startPostgresServer();
    const { url, store } = await newPostgresStoreAt(own);
    const { epoch } = (await store.read(NAMESPACE)).server;
    await own.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres'", "template1");
    await own.run("CREATE DATABASE copy TEMPLATE postgres", "template1");
    const copy = await postgresStoreAt(url.replace("/postgres?", "/copy?"));
    expect((await copy.read(NAMESPACE)).server).toMatchObject({
      role: "master",
      epoch: expect.not.stringMatching(epoch ?? ""),
    });
  });

  test("a crash of a part of the server changes the epoch, and a trigger that makes commits asynchronous loses no lease", async (context) => {
    const own = await startPostgresServer({ settings: { wal_writer_delay: "10s" } });
    const one = await newPostgresStoreAt(own);
    await own.run(`CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql
      AS $$ BEGIN PERFORM set_config('synchronous_commit', 'off', true); RETURN NEW; END $$`);
    await own.run(`CREATE TRIGGER late BEFORE UPDATE ON ${one.schema}.namespaces FOR EACH ROW EXECUTE FUNCTION late()`);
    const { firstRun } = await one.lease();
    const [[pid = ""] = []] = await own.run("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");
    const [[version = ""] = []] = await own.run("SHOW server_version_num");
    context.skip(Number(version) < 150_000, "PostgreSQL 14 does not show such a crash");
    process.kill(Number(pid), "SIGKILL");
    let last = firstRun;
    const next = () => one.lease().then((lease) => void (last = lease.firstRun));
    await expect.poll(() => next().catch(({ reason }) => reason)).toBe("epoch_changed");
    expect(await one.store.readNamespace(NAMESPACE)).toMatchObject({ highWaterMark: last });
  });

  test("a standby that comes back changes the epoch: it may have followed another server", async () => {
    const { primary, standby } = await pair();
    const one = await newPostgresStoreAt(primary, { nodeCount: 2 });
    await one.lease();
    await primary.run("SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
    await expect.poll(() => primary.run("SELECT sync_state FROM pg_stat_replication")).toEqual([["quorum"]]);
    await expect(one.lease()).rejects.toMatchObject({ reason: "epoch_changed" });
    expect(await one.skipAhead()).toBeGreaterThan(1);
    await standby.kill("SIGQUIT");
  });

  test.each(["a logical subscriber", "an archiver"])(
    "a lease that only %s has received is not acknowledged",
    async (other) => {
      const { primary, standby } = await pair({ wal_level: "logical" });
      await primary.configure({ synchronous_standby_names: "ANY 1 (*)" });
      const one = await newPostgresStoreAt(primary, { nodeCount: other === "an archiver" ? 3 : 2 });
      await one.lease();
      const folder = folderOfServers();
      await primary.run("SELECT pg_create_logical_replication_slot('copy', 'test_decoding')");
      // Only one that writes a file acknowledges what it has received.
      const words = [
        "--dbname=postgres",
        "--slot=copy",
        "--start",
        "--no-loop",
        `--file=${join(folder, "copy")}`,
        "--fsync-interval=1",
        "--status-interval=1",
      ];
      const copying =
        other === "an archiver"
          ? archive(primary, folder, "barman_receive_wal")
          : primary.program("pg_recvlogical", words).catch(() => {});
      const waitedFor = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'";
      await expect.poll(() => primary.run(waitedFor)).toEqual([["2"]]);
      const [[pid = ""] = []] = await standby.run("SELECT pid FROM pg_stat_wal_receiver");
      process.kill(Number(pid), "SIGSTOP");
      // An archiver of this name may be a standby that came, after which the store is to be recovered: that begins with a claim.
      const step = other === "an archiver" ? one.commands.claim(0) : one.commands.lease();
      const acknowledged = () => one.step(step).then(({ acknowledgedCount }) => acknowledgedCount);
      expect(await acknowledged().catch(({ code }: { code: string }) => code)).toBeOneOf([0, "store_unavailable"]);
      expect(await one.store.preflight()).toContainEqual(expect.objectContaining({ code: "quorum_missing" }));
      process.kill(Number(pid), "SIGCONT");
      await primary.run("SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
      await primary.kill("SIGQUIT");
      await copying;
    },
  );

  test("a lease is not taken for granted where a trigger of another program has written another mark", async () => {
    const server = await startPostgresServer();
    const one = await newPostgresStoreAt(server);
    const other = inHand(await postgresStoreAt(one.url), { storeId: one.storeId });
    await one.lease();
    await other.lease();
    await server.run("CREATE FUNCTION old() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'");
    await server.run(
      `CREATE TRIGGER old BEFORE UPDATE ON ${one.schema}.namespaces FOR EACH ROW EXECUTE FUNCTION old()`,
    );
    await expect(one.lease()).rejects.toEqual(unavailable);
    await expect(other.lease()).rejects.toMatchObject({ reason: "rolled_back" });
  });

  test("findings name standbys that no commit waits for, too few of them, and those that are not counted", async () => {
    const { primary } = await pair();
    const { store } = await newPostgresStoreAt(primary, { nodeCount: 2 });
    const codes = async () => (await store.preflight()).map(({ code }) => code).filter((code) => code !== undefined);
    expect(await codes()).toEqual([]);
    await primary.configure({ synchronous_standby_names: "" });
    await expect.poll(() => primary.run("SELECT sync_state FROM pg_stat_replication")).toEqual([["async"]]);
    expect(await codes()).toEqual(["quorum_missing", "unexpected_replicas"]);
    const { store: single, lease } = await newPostgresStoreAt(await server());
    expect((await single.preflight()).filter(({ code }) => code !== undefined)).toEqual([]);
    await lease();
  });

  test("a majority of the standbys is enough only where the operator accepts it, and an archiver is none of them", async () => {
    const { primary } = await pair();
    const { store } = await newPostgresStoreAt(primary, { nodeCount: 2 });
    await startPostgresServer({
      fill: (data) => baseBackup(primary, data, `primary_conninfo = '${followed(primary)}'\n`),
    });
    const states = () => primary.run("SELECT sync_state FROM pg_stat_replication");
    const inSync = (count: number) => expect.poll(states).toEqual(Array.from({ length: count }, () => ["quorum"]));
    await primary.configure({ synchronous_standby_names: "ANY 1 (*)" });
    await inSync(2);
    const uncounted = (await store.preflight()).find(({ code }) => code === "unexpected_replicas");
    expect(uncounted?.remedy).toContain("wal_sender_timeout");
    const refused = { code: "quorum_missing", message: expect.stringMatching(/ANY 2 .*--ignore-findings majority/) };
    await expect(recoverFor(store, 3)).rejects.toMatchObject(refused);
    expect((await recoverFor(store, 3, ["majority"])).after.nodeCount).toBe(3);
    const init = (overrides: readonly string[]) =>
      new Coordinator({ store, name: "test", overrides }).initNamespace("other", { nodeCount: 3 });
    await expect(init([])).rejects.toMatchObject(refused);
    await expect(init(["majority"])).resolves.toMatchObject({ nodeCount: 3 });
    const stopping = async () => {
      const found = (await store.preflight({ asOperator: true })).filter(({ code }) => code !== undefined);
      return found.map(({ code, override }) => `${code} ${override}`);
    };
    expect(await stopping()).toEqual(["quorum_missing majority"]);
    await primary.configure({ synchronous_standby_names: "ANY 2 (*)" });
    await expect.poll(stopping).toEqual([]);
    await primary.configure({ synchronous_standby_names: "ANY 3 (*)" });
    // Doctor says that each commit waits for one that is not there.
    await expect.poll(stopping).toEqual(["quorum_missing undefined"]);
    await primary.configure({ synchronous_standby_names: "ANY 2 (*)" });
    const archiving = archive(primary, folderOfServers(), "pg_receivewal");
    await inSync(3);
    expect(await stopping()).toEqual(["quorum_missing majority"]);
    await primary.kill("SIGQUIT");
    await archiving;
  });

  test("nothing is written for two nodes before a standby is connected and waited for", async () => {
    const primary = await startPostgresServer();
    const store = await postgresStoreAt(await newSchemaAt(primary));
    const coordinator = new Coordinator({ store, name: "test" });
    const tried = () => coordinator.initNamespace(NAMESPACE, { nodeCount: 2 });
    const isMissing = () =>
      expect(store.readNamespace(NAMESPACE)).rejects.toMatchObject({ code: "namespace_not_found" });
    const refused = {
      code: "quorum_missing",
      message: expect.stringContaining("synchronous_standby_names = 'ANY 1 (…)'"),
    };
    await expect(tried()).rejects.toMatchObject(refused);
    // Its name is there before the standby is: a step alone sees that none is connected.
    await primary.configure({ synchronous_standby_names: "ANY 1 (standby)" });
    await expect.poll(() => primary.run("SHOW synchronous_standby_names")).toEqual([["ANY 1 (standby)"]]);
    await expect(tried()).rejects.toMatchObject({ code: "quorum_missing" });
    await isMissing();
    await primary.configure({ synchronous_standby_names: "" });
    await startPostgresServer({
      fill: (data) => baseBackup(primary, data, `primary_conninfo = '${followed(primary)}'\n`),
    });
    await expect.poll(() => primary.run("SELECT sync_state FROM pg_stat_replication")).toEqual([["async"]]);
    await expect(tried()).rejects.toMatchObject(refused);
    await isMissing();
    await primary.configure({ synchronous_standby_names: "ANY 1 (standby)" });
    await expect.poll(() => primary.run("SELECT sync_state FROM pg_stat_replication")).toEqual([["quorum"]]);
    await expect(tried()).resolves.toMatchObject({ nodeCount: 2 });
  });

  test("a recovery counts no second node, and changes nothing, before commits wait for it", async () => {
    const primary = await startPostgresServer();
    const { store } = await newPostgresStoreAt(primary);
    await startPostgresServer({
      fill: (data) => baseBackup(primary, data, `primary_conninfo = '${followed(primary)}'\n`),
    });
    await expect.poll(() => primary.run("SELECT sync_state FROM pg_stat_replication")).toEqual([["async"]]);
    const before = await store.readNamespace(NAMESPACE);
    const recovered = () => recoverFor(store, 2);
    await expect(recovered()).rejects.toMatchObject({ code: "quorum_missing" });
    expect(await store.readNamespace(NAMESPACE)).toEqual(before);
    await primary.configure({ synchronous_standby_names: "ANY 1 (standby)" });
    await expect.poll(() => primary.run("SELECT sync_state FROM pg_stat_replication")).toEqual([["quorum"]]);
    expect((await recovered()).after.nodeCount).toBe(2);
  });

  test("a user who may not see whether standbys are synchronous is named with the grant, or with INHERIT where it has that", async () => {
    const { primary } = await pair();
    const { store } = await newPostgresStoreAt(primary, { nodeCount: 2 });
    const remedies = async () =>
      (await store.preflight())
        .filter(({ code }) => code === "store_epoch_unreadable")
        .map(({ remedy }) => /GRANT.*TO|.*INHERIT/.exec(remedy)?.[0]);
    expect(await remedies()).toEqual([]);
    await primary.run("ALTER ROLE callnumber NOINHERIT");
    const [[version = ""] = []] = await primary.run("SHOW server_version_num");
    const isOfGrant = Number(version) >= 160_000;
    if (isOfGrant) await primary.run("GRANT pg_read_all_stats TO callnumber WITH INHERIT FALSE");
    expect(await remedies()).toEqual([expect.stringMatching(isOfGrant ? /WITH INHERIT/ : /ALTER ROLE … INHERIT/)]);
    await primary.run("REVOKE pg_read_all_stats FROM callnumber");
    expect(await remedies()).toEqual(["GRANT pg_read_all_stats TO"]);
    await primary.run("ALTER ROLE callnumber INHERIT; GRANT pg_read_all_stats TO callnumber");
    expect(await remedies()).toEqual([]);
  });

  test("a logical subscriber is named, and no standby: it is another cluster", async () => {
    const primary = await startPostgresServer({ settings: { wal_level: "logical" } });
    const { store, lease } = await newPostgresStoreAt(primary);
    await primary.run("SELECT pg_create_logical_replication_slot('copy', 'test_decoding')");
    const words = ["--dbname=postgres", "--slot=copy", "--start", "--no-loop", "--file=-"];
    const copying = primary.program("pg_recvlogical", words).catch(() => {});
    await expect.poll(() => primary.run("SELECT count(*) FROM pg_stat_replication")).toEqual([["1"]]);
    expect((await lease()).firstRun).toBe(1);
    expect((await store.preflight()).map(({ override }) => override)).toContain("logical-subscriber");
    await primary.run("SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
    await primary.kill("SIGQUIT");
    await copying;
  });

  test("a standby that pg_basebackup made by its own name, with PGAPPNAME, is one all the same", async () => {
    const primary = await startPostgresServer();
    const { lease } = await newPostgresStoreAt(primary);
    await lease();
    const named = `primary_conninfo = '${followed(primary)} application_name=pg_basebackup'\n`;
    await startPostgresServer({ fill: (data) => baseBackup(primary, data, named) });
    await expect.poll(() => primary.run("SELECT count(replay_lsn) FROM pg_stat_replication")).toEqual([["1"]]);
    await expect(lease()).rejects.toMatchObject({ code: "unexpected_replicas" });
  });

  test("a store that counts one node leases nothing while a standby is attached, nor when it was promoted, until a recovery", async () => {
    const primary = await startPostgresServer();
    const one = await newPostgresStoreAt(primary);
    await one.lease();
    const standby = await startPostgresServer({
      fill: (data) => baseBackup(primary, data, `primary_conninfo = '${followed(primary)}'\n`),
    });
    await expect.poll(() => primary.run("SELECT count(*) FROM pg_stat_replication")).toEqual([["1"]]);
    await expect(one.lease()).rejects.toMatchObject({ code: "unexpected_replicas" });
    // It needs no right to see that there is one, nor to keep it.
    await primary.run("REVOKE pg_read_all_stats FROM callnumber");
    await expect(one.lease()).rejects.toMatchObject({ code: "unexpected_replicas" });
    expect(await one.store.preflight()).toContainEqual(expect.objectContaining({ code: "unexpected_replicas" }));
    const guard = await NamespaceGuard.open({
      store: one.store,
      namespace: NAMESPACE,
      checkpointFile: NO_CHECKPOINT_FILE,
    });
    await expect(guard.heartbeat()).rejects.toMatchObject({ code: "unexpected_replicas" });
    await standby.run("SELECT pg_promote()");
    await expect.poll(() => primary.run("SELECT count(*) FROM pg_stat_replication")).toEqual([["0"]]);
    const code = "manual_recovery_required";
    await expect(one.lease()).rejects.toMatchObject({ code });
    await expect(guard.heartbeat()).rejects.toMatchObject({ code });
    // Nor does a restart show whether the other one leases.
    await primary.kill("SIGQUIT");
    await primary.start();
    await expect.poll(() => one.lease().catch((error: { code: string }) => error.code)).toBe(code);
    await expect(guard.heartbeat()).rejects.toMatchObject({ code });
    await one.step(one.commands.recover());
    await guard.heartbeat();
  });

  test("a standby that is seen while nothing can be written ends leasing, too, also for those who have not seen it", async () => {
    const primary = await startPostgresServer();
    const one = await newPostgresStoreAt(primary);
    const { store } = one;
    const guard = await NamespaceGuard.open({ store, namespace: NAMESPACE, checkpointFile: NO_CHECKPOINT_FILE });
    await guard.heartbeat();
    const setReadOnly = async (to: string) => {
      await primary.run(`ALTER SYSTEM SET default_transaction_read_only = ${to}`);
      await primary.run("SELECT pg_reload_conf()");
    };
    await setReadOnly("on");
    const standby = await startPostgresServer({
      fill: (data) => baseBackup(primary, data, `primary_conninfo = '${followed(primary)}'\n`),
    });
    await expect.poll(() => primary.run("SELECT count(*) FROM pg_stat_replication")).toEqual([["1"]]);
    const refusal = () => guard.heartbeat().catch(({ code }: { code: string }) => code);
    // A write that fails comes first: it rests on what was seen before.
    await expect.poll(refusal).toBe("unexpected_replicas");
    await standby.run("SELECT pg_promote()");
    await expect.poll(() => primary.run("SELECT count(*) FROM pg_stat_replication")).toEqual([["0"]]);
    const code = "manual_recovery_required";
    expect(await refusal()).toBe(code);
    const epoch = async () => (await store.read(NAMESPACE)).keys.fields["ep"];
    expect(await epoch()).not.toBe("-:-:attached");
    await setReadOnly("off");
    await expect
      .poll(async () => {
        expect(await refusal()).toBe(code);
        return await epoch();
      })
      .toBe("-:-:attached");
    await expect(one.lease()).rejects.toMatchObject({ code });
  });
});
