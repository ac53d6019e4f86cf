/**
 * What call numbers take in a database: as text and as numbers, in the orders in which they can come, on every server that there is.
 * Only sizes are measured, as they don't depend on who else works on this machine. The rows are put in by the server itself, from one
 * table that has them all: each contender gets the same numbers in the same order.
 */
import { callNumbersOfRun, SEQUENCE_COUNT, toNumber } from "@callnumber/protocol/codec";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterAll, onTestFinished, test } from "vitest";
import { startMariadb } from "../test/mariadb/test-mariadb.js";
import { startPostgres } from "../test/postgres/test-postgres.js";
import type { SqlServer } from "../test/processes/sql-server.js";
import { machineInWords } from "./machine.js";
import { figure } from "./quantiles.js";
import { publish } from "./report.js";

const ROW_COUNT = Number(process.env["CALLNUMBER_BENCH_ROWS"] ?? 1_000_000);
const ROWS_AT_ONCE = 10_000;
/** As many importers as each have a run of their own at the same time. */
const IMPORTER_COUNT = 4;

/** How the rows come: the name for people, and what the server sorts by. */
const ORDERS = [
  ["as importers make them", "made"],
  ["at random", "shuffled"],
  ["sorted", "number"],
] as const;

interface Database {
  readonly name: string;
  /** Runs statements, one after the other; each ends with `;` at the end of a line. */
  readonly run: (sql: string) => Promise<string[][]>;
  readonly textType: string;
  readonly numberType: string;
  /** By what people call it: the table, as a function of the column's type, and how many bytes of it count. */
  readonly places: Readonly<Record<string, Place>>;
}

interface Place {
  readonly create: (type: string) => string;
  /** Answers one row with the bytes; statements before it may answer none. */
  readonly bytes: string;
}

const rows: string[][] = [];
const left: string[] = [];

afterAll(() => {
  publish({
    bench: "storing",
    sections: [
      {
        heading: "Bytes that a call number takes in an index",
        sentences: [
          `${machineInWords()} ${ROW_COUNT.toLocaleString("en-US")} call numbers of ${IMPORTER_COUNT} importers, of version 0 from run 1 on; whole pages, as the server counts them. A key of the table is the table itself, here without other columns.`,
          ...left,
        ],
        table: { columns: ["where", "they come", "text, bytes", "number, bytes", "text : number"], rows },
      },
    ],
  });
});

test("MariaDB", async (context) => {
  const server = await startMariadb({ serverOptions: ["--innodb-buffer-pool-size=512M"] });
  if (typeof server === "string") return leaveOut(server, context.skip);
  await measure(mariadb(server));
});

test("PostgreSQL", async (context) => {
  const server = await startPostgres({ settings: ["shared_buffers=256MB", "max_wal_size=4GB"] });
  if (typeof server === "string") return leaveOut(server, context.skip);
  await measure(postgres(server));
});

test("SQLite", async () => {
  const database = new DatabaseSync(":memory:");
  onTestFinished(() => database.close());
  await measure(sqlite(database));
});

function leaveOut(reason: string, skip: (reason: string) => void): void {
  left.push(`Not measured here: ${reason}.`);
  skip(reason);
}

async function measure({ name, run, textType, numberType, places }: Database): Promise<void> {
  await run(
    `CREATE TABLE numbers (made INTEGER PRIMARY KEY, shuffled DOUBLE PRECISION, spelling ${textType}, number ${numberType});\n`,
  );
  for (const statement of insertsOfNumbers()) await run(statement);
  for (const [place, { create, bytes }] of Object.entries(places)) {
    for (const [order, column] of ORDERS) {
      const sizes: number[] = [];
      for (const [type, value] of [
        [textType, "spelling"],
        [numberType, "number"],
      ] as const) {
        await run(
          `${create(type)};\nINSERT INTO measured (call_number) SELECT ${value} FROM numbers ORDER BY ${column};\n`,
        );
        const answer = await run(`${bytes};\n`);
        await run("DROP TABLE measured;\n");
        sizes.push(Number(answer.at(-1)?.[0]) / ROW_COUNT);
      }
      const [text = Number.NaN, number = Number.NaN] = sizes;
      rows.push([`${name}, ${place}`, order, figure(text), figure(number), figure(text / number)]);
    }
  }
}

/** Importers in turns, each through a run of its own and then through the next that is free. */
function* insertsOfNumbers(): Generator<string> {
  let values: string[] = [];
  for (let made = 0; made < ROW_COUNT; made++) {
    const round = Math.floor(made / (SEQUENCE_COUNT * IMPORTER_COUNT));
    const run = 1 + round * IMPORTER_COUNT + (made % IMPORTER_COUNT);
    const sequence = Math.floor(made / IMPORTER_COUNT) % SEQUENCE_COUNT;
    const callNumber = ofRun(run)(sequence);
    values.push(`(${made}, ${placeAtRandom(made)}, '${callNumber}', ${toNumber(callNumber)})`);
    if (values.length === ROWS_AT_ONCE || made === ROW_COUNT - 1) {
      yield `INSERT INTO numbers VALUES ${values.join(",")};\n`;
      values = [];
    }
  }
}

/** Not Math.random: every server gets the same order. Mixes the bits as MurmurHash3 ends. */
function placeAtRandom(made: number): number {
  const mixed = Math.imul(made ^ (made >>> 16), 0x85eb_ca6b);
  const again = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35);
  return (again ^ (again >>> 16)) >>> 0;
}

const ofRuns = new Map<number, ReturnType<typeof callNumbersOfRun>>();
function ofRun(run: number): ReturnType<typeof callNumbersOfRun> {
  const known = ofRuns.get(run) ?? callNumbersOfRun(0, run);
  ofRuns.set(run, known);
  return known;
}

function mariadb(server: SqlServer): Database {
  const bytesOf = (index: string) => `FLUSH TABLES;
    SELECT stat_value * @@innodb_page_size FROM mysql.innodb_index_stats
     WHERE table_name = 'measured' AND index_name = '${index}' AND stat_name = 'size'`;
  return {
    name: `MariaDB ${server.version.split("-")[0]}`,
    run: (sql) => server.run(`CREATE DATABASE IF NOT EXISTS bench;\nUSE bench;\n${sql}`),
    textType: "CHAR(8) CHARACTER SET ascii COLLATE ascii_bin",
    numberType: "BIGINT UNSIGNED",
    places: {
      "key of the table": {
        create: (type) => `CREATE TABLE measured (call_number ${type} NOT NULL PRIMARY KEY)`,
        bytes: `ANALYZE TABLE measured;\n${bytesOf("PRIMARY")}`,
      },
      "index beside it": {
        create: (type) =>
          `CREATE TABLE measured (id BIGINT AUTO_INCREMENT PRIMARY KEY, call_number ${type} NOT NULL, UNIQUE KEY beside (call_number))`,
        bytes: `ANALYZE TABLE measured;\n${bytesOf("beside")}`,
      },
    },
  };
}

function postgres(server: SqlServer): Database {
  return {
    name: `PostgreSQL ${server.version}`,
    run: (sql) => server.run(sql),
    textType: 'text COLLATE "C"',
    numberType: "bigint",
    places: {
      index: {
        create: (type) => `CREATE TABLE measured (call_number ${type} NOT NULL PRIMARY KEY)`,
        bytes: "SELECT pg_relation_size('measured_pkey')",
      },
    },
  };
}

function sqlite(database: InstanceType<typeof DatabaseSync>): Database {
  const version = database.prepare("SELECT sqlite_version() AS version").get() as { version: string };
  return {
    name: `SQLite ${version.version}`,
    run: async (sql) =>
      sql
        .split(/;\s*$/m)
        .filter((statement) => statement.trim() !== "")
        .flatMap((statement) =>
          database
            .prepare(statement)
            .all()
            .map((row) => Object.values(row as object).map(String)),
        ),
    textType: "TEXT",
    numberType: "INTEGER",
    places: {
      "key of the table": {
        create: (type) => `CREATE TABLE measured (call_number ${type} NOT NULL PRIMARY KEY) WITHOUT ROWID`,
        bytes: "SELECT sum(pgsize) FROM dbstat WHERE name = 'measured'",
      },
      "index beside it": {
        create: (type) => `CREATE TABLE measured (id INTEGER PRIMARY KEY, call_number ${type} NOT NULL UNIQUE)`,
        bytes: "SELECT sum(pgsize) FROM dbstat WHERE name = 'sqlite_autoindex_measured_1'",
      },
    },
  };
}
