/** deploy/sql/call-numbers.postgres.sql on a real PostgreSQL: every vector, whatever is not a call number, and a dump that is restored. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { encodeCallNumber, NUMBER_MAX, toNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { REPOSITORY } from "../processes/command.js";
import { type PostgresSqlServer, serverForFile, startPostgres } from "./sql-servers.js";

const read = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");
const FUNCTIONS = read("deploy/sql/call-numbers.postgres.sql");
const VECTORS = read("packages/protocol/test-vectors/v0.csv")
  .trim()
  .split("\n")
  .slice(1)
  .map((line) => line.split(",") as [version: string, run: string, sequence: string, callNumber: string]);
const { schemes } = JSON.parse(read("packages/schemes/test-vectors/schemes.json")) as {
  schemes: { chibrary_3_30_14_final: { notCallNumbers: readonly string[] } };
};

const server = serverForFile(async (): Promise<PostgresSqlServer | string> => {
  const started = await startPostgres();
  if (typeof started !== "string") await started.run(FUNCTIONS);
  return started;
});
const run = (sql: string) => server().run(sql);
/** One row for each list of expressions. */
const valuesOf = (rows: readonly (readonly string[])[]) =>
  run(rows.map((row) => `SELECT ${row.join(", ")};`).join("\n"));
const quoted = (text: string) => `convert_from('\\x${Buffer.from(text).toString("hex")}'::bytea, 'UTF8')`;

test("the functions decode and encode every vector", async () => {
  expect(VECTORS.length).toBeGreaterThan(2_000);
  const rows = await valuesOf(
    VECTORS.map(([version, number, sequence, callNumber]) => [
      `(callnumber_decode('${callNumber}')).*`,
      `callnumber_encode(${version}, ${number}, ${sequence})`,
      `callnumber_to_number('${callNumber}')`,
      `callnumber_from_number(callnumber_to_number('${callNumber}'))`,
      `'${callNumber}'::callnumber`,
    ]),
  );
  expect(rows).toEqual(
    VECTORS.map(([version, number, sequence, callNumber]) => {
      return [version, number, sequence, callNumber, `${toNumber(callNumber)}`, callNumber, callNumber];
    }),
  );
});

test("the functions decode and encode both ends of each field, and return NULL beyond them and for NULL", async () => {
  const ends = [0, 7].flatMap((version) =>
    [0, 2 ** 30 - 1].flatMap((number) => [0, 2 ** 14 - 1].map((sequence) => ({ version, run: number, sequence }))),
  );
  const written = ends.map((end) => [`callnumber_encode(${end.version}, ${end.run}, ${end.sequence})`]);
  expect(await valuesOf(written)).toEqual(ends.map((parts) => [encodeCallNumber(parts)]));
  const beyond = [
    "-1, 0, 0",
    "8, 0, 0",
    "0, -1, 0",
    "0, 1073741824, 0",
    "0, 0, -1",
    "0, 0, 16384",
    "NULL, 1, 1",
    "1, NULL, 1",
    "1, 1, NULL",
  ];
  const numbers = ["-1", `${NUMBER_MAX + 1}`, "9223372036854775807", "NULL"];
  const calls = [
    ...beyond.map((parts) => `callnumber_encode(${parts})`),
    ...numbers.map((one) => `callnumber_from_number(${one})`),
    "callnumber_to_number(NULL)",
    "(callnumber_decode(NULL)).run",
    "NULL::callnumber",
  ];
  expect(await valuesOf([calls])).toEqual([calls.map(() => "NULL")]);
  expect(await valuesOf([["callnumber_from_number(0)", `callnumber_from_number(${NUMBER_MAX})`]])).toEqual([
    ["00000000", "dxlGgaI3"],
  ]);
});

test("the functions return NULL for what is not a call number, and the type rejects it by the name of its check", async () => {
  // A text of this server holds no NUL.
  const known = schemes.chibrary_3_30_14_final.notCallNumbers.filter((text) => !text.includes("\0"));
  const texts = [...known, "2VznWE2i ", "2VznWE2i\n", "2VznWE2i".padEnd(70_000), "２VznWE2i"];
  expect(texts.length).toBeGreaterThan(15);
  const rows = await valuesOf(
    texts.map((text) => [`callnumber_to_number(${quoted(text)})`, `(callnumber_decode(${quoted(text)})).run`]),
  );
  expect(rows).toEqual(texts.map(() => ["NULL", "NULL"]));
  for (const text of texts.slice(0, 5)) {
    await expect(run(`SELECT ${quoted(text)}::callnumber`)).rejects.toThrow(/23514.*written_like_a_call_number/);
  }
});

test("a column of the type distinguishes case and takes no second one, and a table with it can be dumped and restored", async () => {
  await run("CREATE DATABASE archive; CREATE DATABASE restored");
  await server().run(FUNCTIONS, "archive");
  await server().run("CREATE TABLE messages (call_number callnumber PRIMARY KEY, message text NOT NULL)", "archive");
  await server().run("INSERT INTO messages VALUES ('2VznWE2i', 'one'), ('2vZNwe2I', 'other')", "archive");
  await expect(server().run("INSERT INTO messages VALUES ('2VznWE2i', 'again')", "archive")).rejects.toThrow(/23505/);
  await server().run(await server().program("pg_dump", ["--dbname=archive"]), "restored");
  expect(await server().run("SELECT call_number FROM messages ORDER BY 1", "restored")).toEqual([
    ["2VznWE2i"],
    ["2vZNwe2I"],
  ]);
});

test("the file can be run again", async () => {
  await run(FUNCTIONS);
  expect(await run("SELECT callnumber_encode(0, 99, 345)")).toEqual([["2VznWE2i"]]);
});
