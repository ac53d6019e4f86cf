/**
 * How many bytes call numbers take in a database: as text and as numbers, in the orders in which they can come. The rows are inserted by
 * the server itself, from one table that has them all: text and number get the same rows in the same order.
 */
import { encodeCallNumber, SEQUENCE_COUNT, toNumber } from "@callnumber/protocol/codec";
import { afterAll, test } from "vitest";
import { type SqlServer, startMariadb, startPostgres, startSqlite } from "../test/storing/sql-servers.js";
import { describeMachine, formatFigure, size } from "./harness.js";
import { publish } from "./report.js";

const ROW_COUNT = size(1_000_000, 2_000);
const ROWS_PER_INSERT = 10_000;
/** Importers that work at the same time, each with a run of its own. */
const IMPORTER_COUNT = 4;

/** The order of the rows: its name, and the column that the server sorts by. */
const ORDERS = [
  ["as importers make them", "made"],
  ["sorted", "as_number"],
] as const;

interface Database {
  readonly name: string;
  /** Runs statements, one after the other; each ends with `;` at the end of a line. */
  readonly run: (sql: string) => Promise<string[][]>;
  readonly textType: string;
  readonly numberType: string;
  readonly places: Readonly<Record<string, Place>>;
}

interface Place {
  readonly create: (type: string) => string;
  /** The last statement returns the bytes. */
  readonly bytes: string;
}

const rows: string[][] = [];
const skipped: string[] = [];

afterAll(() => {
  publish("storing", {
    heading: "Bytes that a call number takes in an index",
    sentences: [
      `${describeMachine()} ${ROW_COUNT.toLocaleString("en-US")} call numbers of ${IMPORTER_COUNT} importers, of version 0 from run 1 on; whole pages, as the server counts them. A primary key of MariaDB and of SQLite is the table itself, here without other columns.`,
      ...skipped,
    ],
    table: { columns: ["where", "order of insertion", "text, bytes", "number, bytes", "text : number"], rows },
  });
});

test.each([
  ["MariaDB", mariadb, () => startMariadb({ options: ["--innodb-buffer-pool-size=512M"] })],
  ["PostgreSQL", postgres, () => startPostgres({ options: ["shared_buffers=256MB", "max_wal_size=4GB"] })],
  ["SQLite", sqlite, startSqlite],
] as const)("%s", async (_, databaseOf, start) => {
  const server = await start();
  if (typeof server === "string") skipped.push(`Not measured here: ${server}.`);
  else await measure(databaseOf(server));
});

async function measure({ name, run, textType, numberType, places }: Database): Promise<void> {
  await run(`CREATE TABLE numbers (made INTEGER PRIMARY KEY, as_text ${textType}, as_number ${numberType});\n`);
  for (const statement of insertsOfNumbers()) await run(statement);
  for (const [place, { create, bytes }] of Object.entries(places)) {
    for (const [order, column] of ORDERS) {
      const sizes: number[] = [];
      for (const [type, value] of [
        [textType, "as_text"],
        [numberType, "as_number"],
      ] as const) {
        await run(
          `${create(type)};\nINSERT INTO measured (call_number) SELECT ${value} FROM numbers ORDER BY ${column};\n`,
        );
        const result = await run(`${bytes};\n`);
        await run("DROP TABLE measured;\n");
        sizes.push(Number(result.at(-1)?.[0]) / ROW_COUNT);
      }
      const [text = Number.NaN, number = Number.NaN] = sizes;
      rows.push([`${name}, ${place}`, order, formatFigure(text), formatFigure(number), formatFigure(text / number)]);
    }
  }
}

/** Importers in turns, each through a run of its own and then through the next free one. */
function* insertsOfNumbers(): Generator<string> {
  let values: string[] = [];
  for (let made = 0; made < ROW_COUNT; made++) {
    const round = Math.floor(made / (SEQUENCE_COUNT * IMPORTER_COUNT));
    const run = 1 + round * IMPORTER_COUNT + (made % IMPORTER_COUNT);
    const sequence = Math.floor(made / IMPORTER_COUNT) % SEQUENCE_COUNT;
    const callNumber = encodeCallNumber({ version: 0, run, sequence });
    values.push(`(${made}, '${callNumber}', ${toNumber(callNumber)})`);
    if (values.length === ROWS_PER_INSERT || made === ROW_COUNT - 1) {
      yield `INSERT INTO numbers VALUES ${values.join(",")};\n`;
      values = [];
    }
  }
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
      "primary key": {
        create: (type) => `CREATE TABLE measured (call_number ${type} NOT NULL PRIMARY KEY)`,
        bytes: `ANALYZE TABLE measured;\n${bytesOf("PRIMARY")}`,
      },
      "secondary index": {
        create: (type) =>
          `CREATE TABLE measured (id BIGINT AUTO_INCREMENT PRIMARY KEY, call_number ${type} NOT NULL, UNIQUE KEY secondary (call_number))`,
        bytes: `ANALYZE TABLE measured;\n${bytesOf("secondary")}`,
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

function sqlite(server: SqlServer): Database {
  return {
    name: `SQLite ${server.version}`,
    run: (sql) => server.run(sql),
    textType: "TEXT",
    numberType: "INTEGER",
    places: {
      "primary key": {
        create: (type) => `CREATE TABLE measured (call_number ${type} NOT NULL PRIMARY KEY) WITHOUT ROWID`,
        bytes: "SELECT sum(pgsize) FROM dbstat WHERE name = 'measured'",
      },
      "secondary index": {
        create: (type) => `CREATE TABLE measured (id INTEGER PRIMARY KEY, call_number ${type} NOT NULL UNIQUE)`,
        bytes: "SELECT sum(pgsize) FROM dbstat WHERE name = 'sqlite_autoindex_measured_1'",
      },
    },
  };
}
