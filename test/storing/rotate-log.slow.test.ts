/** deploy/sql/rotate-log.mariadb.sql on a real MariaDB whose scheduler runs the event, with the privileges that its head lists. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { REPOSITORY } from "../processes/command.js";
import { type SqlServer, serverForFile, startMariadb } from "./sql-servers.js";

const ROTATION = readFileSync(join(REPOSITORY, "deploy/sql/rotate-log.mariadb.sql"), "utf8");
/** The statements that the head of the file shows for the definer. */
const DEFINER = [...ROTATION.matchAll(/^-- {3}((?:CREATE USER|GRANT|ALTER DEFINER) .*)$/gm)].map(([, sql]) => sql);
const DATABASE = "archive";
const LOG = `CREATE TABLE import_log (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, writer INT NOT NULL, number INT NOT NULL, KEY (writer))`;
const ROW = "INSERT INTO import_log (writer, number) VALUES (0, 0)";
const EVERY_SECOND =
  "ALTER DEFINER = log_rotation@localhost EVENT rotate_import_log ON SCHEDULE EVERY 1 SECOND STARTS '2026-01-01'";
const ROTATED = /^import_log_\d{4}_\d\d_\d\d_\d{6}$/;
/** Each poll starts the client program. */
const PACE = { interval: 100 };

// A row that was acknowledged must be there after a kill: the harness alone would lose the last second.
const start = () => startMariadb({ options: ["--event-scheduler=ON", "--innodb-flush-log-at-trx-commit=1"] });
const server = serverForFile(start);
const run = (sql: string) => server().run(sql, DATABASE);

beforeEach(async () => {
  await server().run(`CREATE DATABASE ${DATABASE}`);
  onTestFinished(async () => {
    await server().run(`DROP DATABASE ${DATABASE}; DROP USER IF EXISTS log_rotation@localhost`);
  });
});

/** Installs the file, with another number to keep and other edits, and gives the event to the definer of its head. */
async function install({ at = server() as SqlServer, log = LOG, keep = 0, edit = (sql: string) => sql } = {}) {
  expect(DEFINER).toHaveLength(3);
  await at.run(log, DATABASE);
  const sql = ROTATION.replace("('import_log', 30)", `('import_log', ${keep})`);
  await at.run([edit(sql), ...DEFINER].join(";\n").replaceAll(";;", ";"), DATABASE);
}

/** The tables of rotations, the oldest first. */
async function rotatedTables(at: SqlServer = server()): Promise<string[]> {
  return (await at.run("SHOW TABLES", DATABASE)).flat().filter((name) => ROTATED.test(name));
}

async function rotationsReach(count: number, at: SqlServer = server()) {
  await expect.poll(async () => (await rotatedTables(at)).length, PACE).toBeGreaterThanOrEqual(count);
}

/** Every row of all tables, the oldest table first: id, writer, number. Fails unless the ids of each table are above those of the one before. */
async function allRows(at: SqlServer = server()): Promise<string[][]> {
  const rows: string[][] = [];
  const tables = await rotatedTables(at);
  let lastId = 0;
  for (const table of [...tables, "import_log"]) {
    const found = await at.run(`SELECT id, writer, number FROM ${table} ORDER BY id`, DATABASE);
    if (found.length > 0) expect(Number(found[0]?.[0]), `the first id of ${table}`).toBeGreaterThan(lastId);
    lastId = Number(found.at(-1)?.[0] ?? lastId);
    rows.push(...found);
  }
  // A rotation in the meantime took rows out of sight. Without a writer the log is empty then, and is not rotated again.
  return String(await rotatedTables(at)) === String(tables) ? rows : await allRows(at);
}

const failure = async () => (await run("SELECT failure FROM log_rotations"))[0]?.[0] ?? "";

/** Inserts row after row, each connection many, until `isOver`. Resolves to the rows that the server acknowledged: id, writer, number. */
async function write(writer: number, isOver: () => boolean, rowsPerTransaction: number): Promise<string[][]> {
  const acknowledged: string[][] = [];
  for (let number = 0; !isOver(); ) {
    const statements: string[] = [];
    while (statements.length < 600) {
      const inserts = Array.from(
        { length: rowsPerTransaction },
        () => `INSERT INTO import_log (writer, number) VALUES (${writer}, ${number++}) RETURNING id, writer, number;`,
      );
      statements.push("BEGIN;", ...inserts, "COMMIT;");
    }
    acknowledged.push(...(await run(statements.join("\n"))));
  }
  return acknowledged;
}

test("the event rotates while writers insert: each row is in one table, and no id is issued twice", async () => {
  await install();
  await run(EVERY_SECOND);
  let isOver = false;
  const writers = [1, 2, 3].map((writer) => write(writer, () => isOver, [1, 5, 50][writer - 1] as number));
  await rotationsReach(5).finally(() => (isOver = true));
  const acknowledged = (await Promise.all(writers)).flat();

  const rows = await allRows();
  expect(new Set(rows.map(([id]) => id)).size).toBe(rows.length);
  expect(rows.map(String).toSorted()).toEqual(acknowledged.map(String).toSorted());
  const definition = async (table: string) =>
    String(await run(`SHOW CREATE TABLE ${table}`))
      .replace(/AUTO_INCREMENT=\d+ /, "")
      .replaceAll(table, "import_log");
  expect(await definition("import_log")).toBe(await definition((await rotatedTables())[0] ?? ""));
  expect(await failure()).toMatch(/^NULL$|^Lock wait timeout/);
});

test("the event continues after the server is killed, and issues no id twice", async () => {
  await install();
  await run(EVERY_SECOND);
  for (let kill = 1; kill <= 3; kill++) {
    const before = (await rotatedTables()).length;
    let isOver = false;
    const writers = [1, 2].map((writer) => write(writer, () => isOver, 1).catch(() => (isOver = true)));
    await rotationsReach(before + 1);
    await server().restart();
    isOver = true;
    await Promise.all(writers);
    // The kill may have undone a rotation that was seen: it was not committed.
    const after = (await rotatedTables()).length;
    await run(ROW);
    await rotationsReach(after + 1);
    await allRows();
  }
});

test("a dump with events and routines rotates on another server", async (context) => {
  await install();
  await run(`${ROW}; CALL rotate_log('import_log', 0); ${ROW}`);
  const dump = await server().dump(DATABASE);
  if (typeof dump !== "string") return context.skip(dump.missing);
  const other = (await start()) as SqlServer;
  await other.run(`CREATE DATABASE ${DATABASE}; ${DEFINER.slice(0, 2).join(";")}`);
  await other.run(dump, DATABASE);
  await other.run(EVERY_SECOND, DATABASE);
  await rotationsReach(2, other);
  await other.run(ROW, DATABASE);
  expect((await allRows(other)).map(([id]) => id)).toEqual(["1", "1000000002", "2000000003"]);
});

test("the event drops the oldest rotated tables, and no other table", async () => {
  const others = ["import_log_2020_01_01", "import_log_2020_01_01_000000_copy", "Import_log_2020_01_01_000000"];
  const rotated = ["import_log_2020_01_02_000000", "import_log_2020_01_03_000000", "import_log_2020_01_04_000000"];
  await install({ keep: 2 });
  await run([...others, ...rotated].map((name) => `CREATE TABLE ${name} (id INT);`).join("\n"));
  await run(`${ROW}; ${EVERY_SECOND}`);
  await expect.poll(() => rotatedTables(), PACE).toEqual([rotated[2], expect.not.stringContaining("_2020_")]);
  const tables = (await run("SHOW TABLES")).flat();
  for (const other of others) expect(tables).toContain(other);
});

test("an empty log is not rotated", async () => {
  await install();
  await run("CALL rotate_log('import_log', 0)");
  expect(await rotatedTables()).toEqual([]);
});

test("ids continue above rows that were deleted and rows that were rolled back", async () => {
  await install();
  await run(`${ROW}; ${ROW}; ${ROW}; DELETE FROM import_log WHERE id > 1; BEGIN; ${ROW}; ROLLBACK`);
  await run(`CALL rotate_log('import_log', 0); ${ROW}`);
  expect((await allRows()).map(([id]) => id)).toEqual(["1", "1000000005"]);
});

const ROTATION_WAITS = "SELECT 1 FROM information_schema.processlist WHERE state = 'Waiting for table metadata lock'";
const ROTATION_FAILED = "SELECT 1 FROM log_rotations WHERE failed_at IS NOT NULL";
const rotate = () => run("CALL rotate_log('import_log', 0)");
const waitLonger = (sql: string) => sql.replaceAll("WAIT 2", "WAIT 300");

/** Opens a transaction with a row; when the query has a result, it runs the statements and commits. Resolves once it is open. */
async function openTransaction(query: string, statements: string) {
  await run(`${ROW};
    DELIMITER //
    CREATE PROCEDURE wait_for_it() REPEAT DO SLEEP(0.01); UNTIL EXISTS (${query}) END REPEAT//`);
  const session = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
  const committed = run(`${session}; BEGIN; ${ROW}; CALL wait_for_it(); ${statements}; COMMIT`);
  const open = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_rows_modified > 0";
  await expect.poll(() => run(open), PACE).toEqual([["1"]]);
  return { committed };
}

test("a rotation waits for an open transaction, and a second one at the same time does nothing", async () => {
  await install({ edit: waitLonger });
  const { committed } = await openTransaction(ROTATION_WAITS, `CALL rotate_log('import_log', 0); ${ROW}`);
  await Promise.all([rotate(), committed]);
  await run(ROW);
  expect((await allRows()).map(([id]) => id)).toEqual(["1", "2", "3", "1000000003"]);
  expect(await rotatedTables()).toHaveLength(1);
});

test("a rotation fails when a transaction stays open, and the next one continues above its ids", async () => {
  await install();
  const { committed } = await openTransaction(ROTATION_FAILED, ROW);
  await expect(rotate()).rejects.toThrow(/Lock wait timeout/);
  await committed;
  await rotate();
  await run(ROW);
  expect((await allRows()).map(([id]) => id)).toEqual(["1", "2", "3", "1000000004"]);
});

test("an id that a writer sets far ahead during a rotation is reported, and the next ids are above it", async () => {
  await install({ edit: waitLonger });
  const { committed } = await openTransaction(ROTATION_WAITS, "INSERT INTO import_log VALUES (5000000000, 0, 0)");
  const message = 'Ids of log "import_log" may repeat: ';
  await expect(rotate()).rejects.toThrow(message);
  await committed;
  expect(await failure()).toContain(message);
  await run(ROW);
  expect((await allRows()).map(([id]) => id)).toEqual(["1", "2", "5000000000", "6000000001"]);
});

const withId = (column: string, rest = "") => LOG.replace(/id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT/, column) + rest;
const PARENT = "CREATE TABLE parents (writer INT PRIMARY KEY) SELECT 0 AS writer";

test.each([
  ["no such table", "", "this database has no such table"],
  ["a view", "CREATE VIEW import_log AS SELECT 1 AS id", "it is a VIEW"],
  ["another engine", `${LOG} ENGINE = Aria; ${ROW}`, "its engine is Aria"],
  [
    "partitions",
    `${LOG.replace(", KEY (writer)", "")} PARTITION BY HASH (id) PARTITIONS 2; ${ROW}`,
    "it is partitioned",
  ],
  ["no counter", `${withId("id BIGINT NOT NULL DEFAULT 1")}; ${ROW}`, "it has no AUTO_INCREMENT"],
  ["an INT as its id", `${withId("id INT AUTO_INCREMENT")}; ${ROW}`, "its id is no BIGINT"],
  [
    "ids near the maximum",
    `${LOG} AUTO_INCREMENT = 9223372034854775808; ${ROW}`,
    "its next id 9223372034854775809 is near",
  ],
  [
    "a trigger",
    `${LOG}; ${ROW}; CREATE TRIGGER t BEFORE INSERT ON import_log FOR EACH ROW SET @t = 1`,
    "it has a trigger",
  ],
  [
    "a foreign key",
    `${PARENT}; ${LOG}; ALTER TABLE import_log ADD FOREIGN KEY (writer) REFERENCES parents (writer); ${ROW}`,
    "it has a foreign key",
  ],
  [
    "a reference to it",
    `${LOG}; ${ROW}; CREATE TABLE c (id BIGINT UNSIGNED, FOREIGN KEY (id) REFERENCES import_log (id))`,
    "or one references it",
  ],
  ["another import_log_next", `${LOG}; ${ROW}; CREATE TABLE import_log_next SELECT 1`, '"import_log_next" has rows'],
  [
    "a later rotation",
    `${LOG}; ${ROW}; CREATE TABLE import_log_2999_01_01_000000 (id INT)`,
    '"import_log_2999_01_01_000000" exists',
  ],
])("the event reports a log that cannot be rotated, and leaves it as it is: %s", async (_, log, cause) => {
  await install({ log });
  const tables = await run("SHOW TABLES");
  await run(EVERY_SECOND);
  await expect.poll(failure, PACE).toContain(`Log "import_log" was not rotated: `);
  expect(await failure()).toContain(cause);
  expect(await run("SHOW TABLES")).toEqual(tables);
});
