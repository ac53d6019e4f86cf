/**
 * Faults of PostgreSQL: crashes, copies put back, promotions, dumps restored, edits, and connections that end at any moment.
 * Guarantees: G3, G4, G5 (docs/guarantees.md).
 */
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { SUSPECT_EPOCH } from "../../../packages/coordinator/src/guard/checks.js";
import { type CuttingProxy, startCuttingProxy } from "../../postgres/cutting-proxy.js";
import { OTHER_USER } from "../../postgres/postgres-programs.js";
import type { PostgresServer } from "../../postgres/postgres-server.js";
import { archive, baseBackup, followed } from "../../postgres/standby.js";
import { storeUrlAt } from "../../postgres/test-postgres.js";
import { controlledMachineUnavailable } from "../../redis/controlled-machine.js";
import { smallDiskUnavailable } from "../../small-disk.js";
import { Apart } from "../apart.js";
import { recover, recoverCopy } from "../commands.js";
import { type PostgresWorld, postgresFault, SCHEMA } from "../postgres-world.js";
import type { Fault } from "../run-fault.js";
import { oneOf } from "../seeded-random.js";

const HOUR_MS = 3_600_000;
const MOVES_MS = [HOUR_MS, -HOUR_MS, 365 * 24 * HOUR_MS, -365 * 24 * HOUR_MS];
/** The processes of the server that serve coordinators. */
const SESSIONS = "FROM pg_stat_activity WHERE application_name = 'callnumber'";
/** Of a step: about as many bytes come back, and go. */
const BYTES_OF = { to_client: 1_300, to_server: 7_000 } as const;
const MANY = 250;
const PAUSE_MS_MAX = 20;

export const POSTGRES: readonly Fault[] = [
  postgresFault("the server killed with kill -9", { isShort: true, expected: ["epoch_changed"] }, async (world) => {
    await world.crash("SIGKILL");
    await world.untilSeen("epoch_changed");
  }),
  postgresFault(
    "an immediate shutdown, with three coordinators",
    { coordinatorCount: 3, expected: ["epoch_changed"] },
    async (world) => {
      await world.crash("SIGQUIT");
      await world.untilSeen("epoch_changed");
    },
  ),
  postgresFault("one of its processes killed with kill -9, so that all restart", {}, async (world) => {
    const [[version = ""] = []] = await world.server.run("SHOW server_version_num");
    for (const [pid] of await world.server.run(`SELECT pid ${SESSIONS} LIMIT 1`)) process.kill(Number(pid), "SIGKILL");
    // From PostgreSQL 15 on its epoch shows that, whether a request was in flight or not.
    await world.untilSeen(Number(version) < 150_000 ? "store_unavailable" : "epoch_changed");
  }),
  postgresFault(
    "a data directory put back under running coordinators",
    { isShort: true, expected: ["epoch_changed"] },
    async (world) => {
      const copy = await world.snapshot();
      await world.work();
      await world.crash("SIGKILL", () => world.restore(copy));
      await world.untilSeen("epoch_changed");
    },
  ),
  postgresFault("WAL lost in a crash without fsync", { isShort: true, expected: ["epoch_changed"] }, async (world) => {
    await world.server.run("CHECKPOINT");
    await world.work();
    // It ends at once, and what it did since the checkpoint is in the WAL alone.
    await world.crash("SIGQUIT", () => world.server.program("pg_resetwal", ["--force", world.server.data]));
    await world.untilSeen("epoch_changed");
  }),
  postgresFault(
    "a cluster cloned, and the clone used in place of the original",
    { injectionCountMax: 1, expected: ["epoch_changed"] },
    async (world) => {
      const clone = await cloned(world);
      await world.work();
      await replaceServer(world, clone);
      await world.untilSeen("epoch_changed");
    },
  ),
  postgresFault("a dump restored under running coordinators", { expected: ["epoch_changed"] }, async (world) => {
    const dumpOf = (words: string) => world.server.program("pg_dump", ["--dbname=postgres", words]);
    const dumps = [await dumpOf(`--schema=${SCHEMA}`), await dumpOf("--table=control*")];
    await world.work();
    const drop = `DROP SCHEMA ${SCHEMA} CASCADE; DROP TABLE control; DROP SEQUENCE control_sequence`;
    await world.server.run(`BEGIN; ${drop}; ${dumps.join("\n")} COMMIT;`);
    await world.untilSeen("epoch_changed");
  }),
  postgresFault(
    "a base backup recovered to an earlier time",
    { injectionCountMax: 1, expected: ["epoch_changed"] },
    async (world) => {
      const backup = await world.folderFor("backup");
      const restore = `restore_command = 'cp ${await world.folderFor("archive")}/%f %p'\n`;
      const lines = `${restore}recovery_target_name = 'earlier'\nrecovery_target_action = 'promote'\n`;
      await baseBackup(world.server, `${backup}/data`, lines, "recovery.signal");
      await world.work();
      await world.server.run("SELECT pg_create_restore_point('earlier')");
      await world.work();
      await world.server.run("SELECT pg_switch_wal()");
      await world.untilArchived();
      await world.crash("SIGQUIT", () => world.restore(`${backup}/data`));
      await world.untilSeen("epoch_changed");
    },
  ),
  postgresFault(
    "a lagging standby promoted, after the primary died",
    { injectionCountMax: 1, expected: ["epoch_changed", "store_is_replica"] },
    async (world) => {
      const backup = await world.folderFor("standby");
      // By the archive: the server sees no standby.
      await baseBackup(
        world.server,
        `${backup}/data`,
        `restore_command = 'cp ${await world.folderFor("archive")}/%f %p'\n`,
      );
      await world.server.run("SELECT pg_switch_wal()");
      await world.work();
      await world.crash("SIGKILL", () => world.restore(`${backup}/data`));
      await world.untilSeen("store_is_replica");
      await world.server.run("SELECT pg_promote()");
      await world.untilSeen("epoch_changed");
    },
  ),
  postgresFault(
    "a standby attached to the only server, and promoted, while that one goes on",
    { injectionCountMax: 1, expected: ["unexpected_replicas", "manual_recovery_required"] },
    async (world) => {
      const lines = `primary_conninfo = '${followed(world.server)}'\n`;
      // After a recovery it leases at the ceiling, as the promoted one will.
      await world.crash("SIGKILL");
      await world.untilSeen("epoch_changed");
      await world.untilLeasing();
      const standby = await world.addServer({}, { fill: (data) => baseBackup(world.server, data, lines) });
      await world.untilSeen("unexpected_replicas");
      // Twice in a row, so that the record has it: the copy of the data was seen as a standby, too, and ended.
      const epochs = `SELECT ep FROM ${SCHEMA}.namespaces`;
      const isKept = async () => (await world.server.run(epochs)).flat().includes(SUSPECT_EPOCH);
      await world.until("the record keeps that a standby was attached", isKept);
      await standby.run("SELECT pg_promote()");
      await world.untilSeen("manual_recovery_required");
      // Both stop. An operator goes on with the promoted one, and the other one is restarted.
      await world.onStore((store) => recoverCopy(world, store), storeUrlAt(standby.url, SCHEMA));
      const other = await world.addCoordinatorAt(standby);
      await Apart.start(world, other).lease();
      await world.crash("SIGKILL");
      await world.untilSeen("manual_recovery_required");
      await world.removeCoordinator(other);
      await standby.kill("SIGKILL");
      world.beginInjection();
      await world.withoutCoordinators(() => recover(world));
    },
  ),
  postgresFault(
    "two primaries, of which one has no standby",
    { nodeCount: 2, injectionCountMax: 1, expected: ["store_unavailable", "epoch_changed"] },
    async (world) => {
      const [old, standby] = world.servers as [PostgresServer, PostgresServer];
      const other = await world.addCoordinatorAt(standby);
      await standby.run("SELECT pg_promote()");
      await standby.configure({ synchronous_standby_names: "ANY 1 (*)" });
      await world.untilSeen("store_unavailable");
      // Both wait for a standby. The old one becomes the standby of the new one.
      await world.resync(old, standby);
      await world.untilSeen("epoch_changed");
      for (const coordinator of world.coordinators.filter((one) => one !== other))
        await world.removeCoordinator(coordinator);
    },
  ),
  postgresFault(
    "a standby made again from the old primary, after it had followed a promoted one",
    { nodeCount: 3, injectionCountMax: 1, overrides: ["majority"], expected: ["epoch_changed"] },
    async (world) => {
      const [old, promoted, follower] = world.servers as [PostgresServer, PostgresServer, PostgresServer];
      // After a recovery it leases at the ceiling, as the promoted one will.
      await old.run("SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
      await world.untilSeen("epoch_changed");
      await world.untilLeasing();
      await promoted.run("SELECT pg_promote()");
      await promoted.configure({ synchronous_standby_names: "ANY 1 (*)" });
      await world.resync(follower, promoted);
      await Apart.start(world, await world.addCoordinatorAt(promoted)).lease();
      await promoted.kill("SIGKILL");
      world.beginInjection();
      await world.resync(follower, old);
      // Perhaps the claim was written when the follower left, and waited for it since.
      await world.untilOneSeen("epoch_changed", "claimed");
    },
  ),
  postgresFault(
    "two primaries, each with an archiver that its commits wait for",
    { nodeCount: 2, injectionCountMax: 1, expected: ["quorum_missing", "epoch_changed"] },
    async (world) => {
      const [old, standby] = world.servers as [PostgresServer, PostgresServer];
      await standby.run("SELECT pg_promote()");
      await standby.configure({ synchronous_standby_names: "ANY 1 (*)" });
      const archivers = [];
      for (const server of [old, standby]) {
        const folder = await world.folderFor(`received-${server.port}`);
        archivers.push(archive(server, folder, "barman_receive_wal"));
      }
      // No importer asks both.
      const before = [...world.coordinators];
      const leasing = Apart.start(world, await world.addCoordinatorAt(standby)).lease();
      const wanted = world.codes.of("quorum_missing") + 40;
      const isSeen = () => world.codes.of("quorum_missing") >= wanted || world.received.problems.length > 0;
      await world.until("both primaries lack a standby, or repeat a run", isSeen);
      await standby.run("SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
      await world.resync(old, standby);
      await Promise.all([leasing, ...archivers]);
      await world.addCoordinatorAt(standby);
      for (const coordinator of before) await world.removeCoordinator(coordinator);
    },
  ),
  postgresFault(
    "the wait for a synchronous standby canceled",
    { nodeCount: 2, isShort: true, expected: ["quorum_missing"] },
    async (world) => {
      const standby = world.servers[1] as PostgresServer;
      await withoutStandby(standby, async () => {
        await world.until("a step was canceled in its wait", async () => {
          await world.server.run(`SELECT pg_cancel_backend(pid) ${SESSIONS} AND wait_event = 'SyncRep'`);
          return world.codes.has("quorum_missing");
        });
      });
    },
  ),
  postgresFault(
    "the wait for a synchronous standby ended by a time limit, or with its process",
    { nodeCount: 2, expected: ["store_unavailable"] },
    async (world) => {
      const standby = world.servers[1] as PostgresServer;
      const isLimit = world.random() < 0.5;
      if (isLimit) await limitStatements(world, "300ms");
      await withoutStandby(standby, async () => {
        // A limit of a statement does not end its commit: the coordinator waits no longer.
        if (isLimit) return await world.untilSeen("store_unavailable");
        await world.until("a step waits", async () => {
          const ended = await world.server.run(
            `SELECT pg_terminate_backend(pid) ${SESSIONS} AND wait_event = 'SyncRep'`,
          );
          return ended.length > 0;
        });
      });
      if (isLimit) await limitStatements(world, "0");
    },
  ),
  postgresFault("the row of the record edited", { expected: ["store_corrupt"] }, async (world) => {
    const field = oneOf(world.random, ["c", "t", "ep", "g", "p", "n", "rk", "ver", "sid", "ph", "k"]);
    const [[before = ""] = []] = await world.server.run(
      `UPDATE ${SCHEMA}.namespaces SET ${field} = ${field} || '1' RETURNING ${field}`,
    );
    await world.untilSeenAgain("store_corrupt", 2);
    await world.server.run(`UPDATE ${SCHEMA}.namespaces SET ${field} = left('${before}', -1)`);
  }),
  postgresFault("a young old record copied back", { expected: ["rolled_back"] }, async (world) => {
    await world.server.run(`DROP TABLE IF EXISTS old; CREATE TABLE old AS SELECT * FROM ${SCHEMA}.namespaces`);
    await world.work();
    const columns = "v, ns, sid, ver, c, t, ep, g, p, n, rk, ph, k";
    await world.server.run(
      `UPDATE ${SCHEMA}.namespaces AS n SET (${columns}) = (SELECT ${columns} FROM old WHERE old.name = n.name)`,
    );
    await world.untilSeen("rolled_back");
  }),
  postgresFault(
    "the record deleted, all emptied, or tables or the schema dropped",
    { isShort: true, expected: [] },
    async (world) => {
      const ways = [
        [
          `BEGIN; LOCK ${SCHEMA}.namespaces; DELETE FROM ${SCHEMA}.leases; DELETE FROM ${SCHEMA}.namespaces; COMMIT`,
          "namespace_lost",
        ],
        [`TRUNCATE ${SCHEMA}.namespaces CASCADE`, "namespace_lost"],
        [`TRUNCATE ${SCHEMA}.store, ${SCHEMA}.namespaces CASCADE`, "namespace_lost"],
        [`DROP TABLE ${SCHEMA}.store, ${SCHEMA}.namespaces CASCADE`, "store_corrupt"],
        [`DROP TABLE ${SCHEMA}.leases`, "store_corrupt"],
        [`DROP SCHEMA ${SCHEMA} CASCADE`, "store_corrupt"],
      ] as const;
      const [sql, code] = oneOf(world.random, ways);
      await world.server.run(sql);
      await world.untilSeen(code);
      await recover(world);
      await world.grantRights();
    },
  ),
  postgresFault(
    "the clock of a coordinator moved by an hour or a year, back and forth",
    { expected: ["clock_skew"] },
    async (world) => {
      const [coordinator] = world.coordinators;
      coordinator?.moveClock(oneOf(world.random, MOVES_MS));
      await world.untilSeen("clock_skew");
      coordinator?.moveClock(0);
    },
  ),
  postgresFault(
    "the clock of the server moved by an hour or a year, back and forth",
    { isClockControlled: true, expected: ["clock_skew"], unavailable: controlledMachineUnavailable },
    async (world) => {
      await world.moveClock(oneOf(world.random, MOVES_MS));
      await world.untilSeen("clock_skew");
      await world.moveClock(0);
    },
  ),
  postgresFault(
    "a disk that is full, until there is room again",
    {
      diskKib: 96 * 1_024,
      settings: { archive_mode: "off", max_wal_size: "2MB", min_wal_size: "2MB" },
      expected: ["store_unavailable"],
      unavailable: noSmallDisk,
    },
    async (world) => {
      world.disk.fill();
      await world.untilSeen("store_unavailable");
      world.disk.free();
      // What could not write may have ended the server.
      await world.crash("SIGQUIT");
    },
  ),
  postgresFault("the processes of connections ended, at many moments", { expected: ["store_unavailable"] }, (world) =>
    atManyMoments(world, `SELECT pg_terminate_backend(pid) ${SESSIONS}`),
  ),
  postgresFault("statements canceled, at many moments", {}, (world) =>
    atManyMoments(world, `SELECT pg_cancel_backend(pid) ${SESSIONS} AND state = 'active'`),
  ),
  postgresFault(
    "connections cut, at many bytes",
    { coordinatorCount: 1, expected: ["store_unavailable"] },
    async (world) => {
      const proxy = await proxyOf(world);
      for (let time = 0; time < MANY; time++) {
        const direction = oneOf(world.random, ["to_client", "to_server"] as const);
        await proxy.cutAfter(direction, 1 + Math.floor(world.random() * BYTES_OF[direction]));
      }
      return MANY;
    },
  ),
];

function noSmallDisk(): string | undefined {
  return OTHER_USER === undefined ? "only root can start it on a disk of its own" : smallDiskUnavailable();
}

async function atManyMoments(world: PostgresWorld, sql: string): Promise<number> {
  for (let time = 0; time < MANY; time++) {
    await delay(world.random() * PAUSE_MS_MAX);
    await world.often(sql);
  }
  return MANY;
}

async function cloned(world: PostgresWorld): Promise<PostgresServer> {
  const copy = await world.snapshot();
  return await world.addServer({}, { fill: (data) => world.copyTo(copy, data) });
}

/** Coordinators at another server, with the checkpoints of those before. */
async function replaceServer(world: PostgresWorld, server: PostgresServer): Promise<void> {
  await world.server.kill("SIGQUIT");
  world.servers.splice(0, world.servers.length, server);
  const before = [...world.coordinators];
  for (const coordinator of before) {
    await world.addCoordinatorAt(server);
    await world.removeCoordinator(coordinator);
  }
}

/** Something that is done while the standby's processes stand still. */
async function withoutStandby(standby: PostgresServer, act: () => Promise<unknown>): Promise<void> {
  const pids = (await standby.run("SELECT pid FROM pg_stat_wal_receiver")).map(([pid]) => Number(pid));
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  try {
    await act();
  } finally {
    for (const pid of pids) process.kill(pid, "SIGCONT");
  }
}

/** For sessions that begin from now on. */
async function limitStatements(world: PostgresWorld, limit: string): Promise<void> {
  // Not replicated while the standby stands still.
  await world.server.run(`SET synchronous_commit = local; ALTER ROLE callnumber SET statement_timeout = '${limit}'`);
  await world.server.run(`SELECT pg_terminate_backend(pid) ${SESSIONS}`);
}

const proxies = new WeakMap<PostgresWorld, CuttingProxy>();

/** Between a coordinator of its own and the server. */
async function proxyOf(world: PostgresWorld): Promise<CuttingProxy> {
  const known = proxies.get(world);
  if (known !== undefined) return known;
  const proxy = await startCuttingProxy(world.server);
  proxies.set(world, proxy);
  world.defer(() => proxy.close());
  await world.addCoordinatorAt(proxy);
  return proxy;
}
