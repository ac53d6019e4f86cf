/** deploy/sql/call-numbers.mariadb.sql on a real MariaDB: every vector, whatever is not a call number, and whatever the connection is like. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { encodeCallNumber, NUMBER_MAX, toNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { REPOSITORY } from "../processes/command.js";
import { type SqlServer, serverForFile, startMariadb } from "./sql-servers.js";

const read = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");
const FUNCTIONS = read("deploy/sql/call-numbers.mariadb.sql");
const VECTORS = read("packages/protocol/test-vectors/v0.csv")
  .trim()
  .split("\n")
  .slice(1)
  .map((line) => line.split(","));
const { schemes: SCHEMES } = JSON.parse(read("packages/schemes/test-vectors/schemes.json")) as { schemes: Schemes };
const BIGINT_UNSIGNED_MAX = 2n ** 64n - 1n;
const DATABASE = "archive";
/** Of sessions: the one that every session should have, and the one that makes everything fit somehow. */
const MODES = ["STRICT_ALL_TABLES", ""];

const server = serverForFile(startWithFunctions);
const run = (sql: string) => server().run(sql, DATABASE);

async function startWithFunctions(): Promise<SqlServer | string> {
  const started = await startMariadb();
  if (typeof started === "string") return started;
  await started.run(`CREATE DATABASE ${DATABASE} DEFAULT CHARACTER SET utf8mb4`);
  await started.run(FUNCTIONS, DATABASE);
  return started;
}

test("the functions decode and encode every vector", async () => {
  expect(VECTORS.length).toBeGreaterThan(2_000);
  const rows = await valuesOf(
    VECTORS.map(([version, run, sequence, callNumber]) => [
      `call_number_version(${quoted(callNumber)})`,
      `call_number_run(${quoted(callNumber)})`,
      `call_number_sequence(${quoted(callNumber)})`,
      `call_number_encode(${version}, ${run}, ${sequence})`,
      `call_number_to_number(${quoted(callNumber)})`,
      `call_number_from_number(call_number_to_number(${quoted(callNumber)}))`,
      `call_number_is_valid(${quoted(callNumber)})`,
    ]),
  );
  expect(rows).toEqual(
    VECTORS.map(([version, run, sequence, callNumber = ""]) => {
      const number = `${toNumber(callNumber)}`;
      return [version, run, sequence, callNumber, number, callNumber, "1"];
    }),
  );
});

test("the functions decode and encode both ends of each field, and return NULL beyond them", async () => {
  const ends = [0, 7].flatMap((version) =>
    [0, 2 ** 30 - 1].flatMap((run) => [0, 2 ** 14 - 1].map((sequence) => ({ version, run, sequence }))),
  );
  const written = ends.map(({ version, run, sequence }) => [`call_number_encode(${version}, ${run}, ${sequence})`]);
  expect(await valuesOf(written)).toEqual(ends.map((parts) => [encodeCallNumber(parts)]));

  const beyond = [
    "-1, 0, 0",
    "8, 0, 0",
    "0, -1, 0",
    "0, 1073741824, 0",
    "0, 0, -1",
    "0, 0, 16384",
    "0, 1.5, 0",
    "0, 'many', 0",
    "0, '', 0",
    "0, '9 ', 0",
    "0, '9\n', 0",
  ];
  const values = beyond.map((parts) => `call_number_encode(${parts})`);
  const numbers = ["-1", `${NUMBER_MAX + 1}`, "1.5", "18446744073709551616", "1e40", "'many'"].map(
    (one) => `call_number_from_number(${one})`,
  );
  for (const mode of MODES) {
    const rows = await valuesOf([[...values, ...numbers]], mode);
    expect(rows, mode).toEqual([[...values, ...numbers].map(() => "NULL")]);
  }
  expect(await valuesOf([["call_number_from_number(0)"], [`call_number_from_number(${NUMBER_MAX})`]])).toEqual([
    ["00000000"],
    ["dxlGgaI3"],
  ]);
});

test("the functions return NULL for what is not a call number, and call_number_is_valid returns 0", async () => {
  const texts = [
    ...SCHEMES.chibrary_3_30_14_final.notCallNumbers,
    "2VznWE2i ",
    "2VznWE2i2VznWE2i",
    "2VznWE2i".padEnd(70_000),
    "2VznWE\0i",
  ];
  expect(texts.length).toBeGreaterThan(15);
  const columns = ["version", "run", "sequence", "to_number", "is_valid"];
  const calls = texts.map((text) => columns.map((name) => `call_number_${name}(${quoted(text)})`));
  for (const mode of MODES) {
    expect(await valuesOf(calls, mode), mode).toEqual(texts.map(() => ["NULL", "NULL", "NULL", "NULL", "0"]));
  }
});

test("the functions return NULL for NULL", async () => {
  const calls = [
    "version(NULL)",
    "run(NULL)",
    "sequence(NULL)",
    "to_number(NULL)",
    "is_valid(NULL)",
    "from_number(NULL)",
    "encode(NULL, 1, 1)",
    "encode(1, NULL, 1)",
    "encode(1, 1, NULL)",
  ].map((call) => `call_number_${call}`);
  expect(await valuesOf([calls])).toEqual([calls.map(() => "NULL")]);
});

const connections = ["latin1_swedish_ci", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_bin"];
test.each(connections)(
  "the functions distinguish case on a connection of %s, in parameters and results",
  async (collation) => {
    const [charset = ""] = collation.split("_");
    const sql = `SET NAMES ${charset} COLLATE ${collation}; SELECT
    call_number_to_number('2VznWE2i'), call_number_to_number('2vZNwe2I'), call_number_run('2VznWE2i'),
    call_number_encode(0, 99, 345) = BINARY '2VznWE2i', call_number_encode(0, 99, 345) = BINARY '2vznwe2i'`;
    expect(await run(sql)).toEqual([[`${toNumber("2VznWE2i")}`, `${toNumber("2vZNwe2I")}`, "99", "1", "0"]]);
  },
);

test("the functions keep their SQL mode, whatever that of the session", async () => {
  const modes = [...MODES, "ANSI_QUOTES,PIPES_AS_CONCAT", "NO_UNSIGNED_SUBTRACTION", "ORACLE"];
  for (const mode of modes) {
    const rows = await run(
      `SET sql_mode = '${mode}'; SELECT call_number_encode(0, 99, 345), call_number_run('2VznWE2i'), call_number_run('2VznWE2ii')`,
    );
    expect(rows, mode).toEqual([["2VznWE2i", "99", "NULL"]]);
  }
});

test("the functions decode columns of every kind, and a whole table of them in one statement", async () => {
  await run(
    `CREATE TABLE kinds (a CHAR(8) CHARACTER SET ascii COLLATE ascii_bin, b VARCHAR(20) CHARACTER SET utf16, c BINARY(8), d TEXT CHARACTER SET latin1);
     INSERT INTO kinds VALUES ('2VznWE2i', '2VznWE2i', '2VznWE2i', '2VznWE2i'), ('03KOE60u', '03KOE60u', '03KOE60u', '03KOE60ü')`,
  );
  const columns = ["a", "b", "c", "d"].map((name) => `call_number_run(${name})`);
  expect(await run(`SELECT ${columns} FROM kinds ORDER BY 1`)).toEqual([
    ["99", "99", "99", "99"],
    ["8452", "8452", "8452", "NULL"],
  ]);
});

test("the file can be installed again, and leaves the mode of the session as it was", async () => {
  const sql = `SET sql_mode = 'ANSI_QUOTES'; ${FUNCTIONS} SELECT @@sql_mode`;
  expect(await run(sql)).toEqual([["ANSI_QUOTES"]]);
  const made = await run(
    `SELECT routine_name, is_deterministic, sql_data_access, security_type, sql_mode FROM information_schema.routines
      WHERE routine_schema = '${DATABASE}'`,
  );
  expect(made.length).toBeGreaterThan(18);
  for (const [name, isDeterministic, access, security, mode] of made) {
    expect([name, isDeterministic], name).toEqual([name, name?.endsWith("_now") ? "NO" : "YES"]);
    expect([access, security, mode], name).toEqual(["NO SQL", "INVOKER", "STRICT_ALL_TABLES"]);
  }
});

test("the scheme of 13 + 6 + 1 digits returns every vector, as number, padded and as published", async () => {
  const rows = await valuesOf(
    SCHEMES.mysql_bigint_13_6_1.vectors.map(({ in: { timeMs, random, server: digit } }) =>
      ["", "_padded", "_as_written"].map((form) => `mysql_bigint_13_6_1${form}(${timeMs}, ${random}, ${digit})`),
    ),
  );
  expect(rows).toEqual(
    SCHEMES.mysql_bigint_13_6_1.vectors.map(({ id, padded20, javaString }) => [ifItFits(id), padded20, javaString]),
  );
});

test("the scheme of 11 + 9 digits returns every vector, as number, padded and as published", async () => {
  const rows = await valuesOf(
    SCHEMES.mysql_sql_11_9.vectors.map(({ in: { seconds, uuidFirst8 } }) =>
      ["", "_padded", "_as_written"].map((form) => `mysql_sql_11_9${form}(${seconds}, '${uuidFirst8}')`),
    ),
  );
  expect(rows).toEqual(
    SCHEMES.mysql_sql_11_9.vectors.map(({ id, fixed20, asWritten }) => [ifItFits(id), fixed20, asWritten]),
  );
});

test("the schemes return NULL for what does not fit", async () => {
  const calls = [
    "mysql_bigint_13_6_1(-1, 0, 0)",
    "mysql_bigint_13_6_1(10000000000000, 0, 0)",
    "mysql_bigint_13_6_1_padded(10000000000000, 0, 0)",
    "mysql_bigint_13_6_1(0, 1000000, 0)",
    "mysql_bigint_13_6_1(0, 0, 10)",
    "mysql_bigint_13_6_1(0, 0.5, 1)",
    "mysql_bigint_13_6_1(1844674407370, 955161, 6)",
    "mysql_bigint_13_6_1(NULL, 0, 0)",
    "mysql_sql_11_9(-1, '00000000')",
    "mysql_sql_11_9(18446744073, '2A4AE600')",
    "mysql_sql_11_9_padded(100000000000, '00000000')",
    "mysql_sql_11_9_padded(0, '0000000g')",
    "mysql_sql_11_9_padded(0, '0000000')",
    "mysql_sql_11_9_padded(0, '000000000')",
    "mysql_sql_11_9(0, NULL)",
  ];
  for (const mode of MODES) expect(await valuesOf([calls], mode), mode).toEqual([calls.map(() => "NULL")]);
  expect(await valuesOf([["mysql_bigint_13_6_1(1844674407370, 955161, 5)"]])).toEqual([[`${BIGINT_UNSIGNED_MAX}`]]);
});

test("the schemes number this moment, in UTC whatever the time zone of the session", async () => {
  const fields = "mysql_bigint_13_6_1_now(7), mysql_sql_11_9_now()";
  const askedAtMs = Date.now();
  const rows = await run(
    ["+00:00", "-05:00", "+09:00"].map((zone) => `SET time_zone = '${zone}'; SELECT ${fields};`).join(" "),
  );
  const answeredAtMs = Date.now();
  expect(rows).toHaveLength(3);
  for (const [bigint = "", sql = ""] of rows) {
    expect(bigint.at(-1)).toBe("7");
    const madeAtMs = Number(BigInt(bigint) / 10n ** 7n) + Date.UTC(2011, 0, 1);
    expect(madeAtMs).toBeGreaterThanOrEqual(askedAtMs);
    expect(madeAtMs).toBeLessThanOrEqual(answeredAtMs);
    const madeAtSecond = Number(BigInt(sql) / 10n ** 9n) + Date.UTC(2011, 0, 1, 5) / 1_000;
    expect(madeAtSecond).toBeGreaterThanOrEqual(Math.floor(askedAtMs / 1_000));
    expect(madeAtSecond).toBeLessThanOrEqual(answeredAtMs / 1_000);
  }
});

test("the schemes repeat numbers among 10,000 rows of one statement, as the file claims", async () => {
  const count = 10_000;
  const sql = (call: string) =>
    `SELECT COUNT(*) - COUNT(DISTINCT id) FROM (SELECT ${call} AS id FROM seq_1_to_${count}) AS made`;
  const [[repeats]] = (await run(sql("mysql_bigint_13_6_1_now(1)"))) as [[string]];
  // 50 in the mean, give or take 7.
  expect(Number(repeats)).toBeGreaterThan(10);
  expect(Number(repeats)).toBeLessThan(150);
  expect(await run(sql("mysql_sql_11_9_now()"))).toEqual([["0"]]);
});

/** Numbers that the server makes in one statement. */
async function numbersOf(at: SqlServer, call: string, count: number): Promise<readonly string[]> {
  const rows = await at.run(`SELECT ${call} FROM seq_1_to_${count}`, DATABASE);
  return rows.map(([text = ""]) => text);
}

test("the digits of UUID() increase with the clock: one server repeats none in a second, where random digits would", async () => {
  const count = 200_000;
  const made = await numbersOf(server(), "CONV(LEFT(UUID(), 8), 16, 10)", count);
  // Of so many draws of 2^32 four or five would be alike, and half of them would be less than the one before.
  expect(new Set(made).size).toBe(count);
  const falls = made.filter((text, index) => index > 0 && Number(text) < Number(made[index - 1])).length;
  // At most where 2^32 is passed.
  expect(falls).toBeLessThanOrEqual(1);
});

test("the digits of UUID() are equal on two servers at the same time far more often than random digits would be", async () => {
  const servers = [server(), (await startWithFunctions()) as SqlServer];
  const count = 20_000;
  /** The pairs of 20,000 draws each by 10^9 values are 0.4: as many as this would be seen once in 10^11 rounds. */
  const moreThanDrawn = 10;
  let alike = 0;
  // Both must be at work in the same second, and at the same time, which a busy machine may not do at once.
  for (let round = 0; round < 30 && alike < moreThanDrawn; round++) {
    const made = await Promise.all(servers.map((one) => numbersOf(one, "mysql_sql_11_9_now()", count)));
    for (const numbers of made) expect(new Set(numbers).size).toBe(count);
    const known = new Set(made[0]);
    alike = made[1]?.filter((text) => known.has(text)).length ?? 0;
  }
  expect(alike).toBeGreaterThanOrEqual(moreThanDrawn);
});

interface Schemes {
  readonly chibrary_3_30_14_final: { readonly notCallNumbers: readonly string[] };
  readonly mysql_bigint_13_6_1: {
    readonly vectors: readonly {
      readonly in: { readonly timeMs: string; readonly random: number; readonly server: number };
      readonly id: string;
      readonly padded20: string;
      readonly javaString: string;
    }[];
  };
  readonly mysql_sql_11_9: {
    readonly vectors: readonly {
      readonly in: { readonly seconds: number; readonly uuidFirst8: string };
      readonly id: string;
      readonly fixed20: string;
      readonly asWritten: string;
    }[];
  };
}

/** What the server answers for rows of expressions, as text, in one statement and in their order. */
async function valuesOf(rows: readonly (readonly string[])[], mode = "STRICT_ALL_TABLES"): Promise<string[][]> {
  const statements = rows.map((row) => `SELECT ${row.join(", ")};`);
  return await run([`SET sql_mode = '${mode}';`, ...statements].join("\n"));
}

/** As hexadecimal: nothing on the way to the server can take a character of it for anything else. */
function quoted(text: string | undefined): string {
  return `CONVERT(X'${Buffer.from(text ?? "").toString("hex")}' USING utf8mb4)`;
}

function ifItFits(id: string): string {
  return BigInt(id) <= BIGINT_UNSIGNED_MAX ? id : "NULL";
}
