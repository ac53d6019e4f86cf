/** The examples of docs/how-to/store-call-numbers.md on a real PostgreSQL, and what its warnings claim. */
import { execFile } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { folderForTest, REPOSITORY } from "../processes/command.js";
import { ALL_MESSAGES, SAME_BUT_FOR_CASE, STORED, testArchive } from "./archive-examples.js";
import { startPostgres } from "./sql-servers.js";

const [FIRST, OTHER] = SAME_BUT_FOR_CASE;
const DUPLICATE = /23505/;
const FUNCTIONS = readFileSync(join(REPOSITORY, "deploy/sql/call-numbers.postgres.sql"), "utf8");

const { examples, run } = testArchive({
  name: "postgres",
  start: startPostgres,
  alsoMalformed: ["'2VznWE2i '", "'2VznWE2i\n'"],
  malformed: /23514.*written_like_a_call_number/,
  duplicate: DUPLICATE,
});

test("ON CONFLICT DO NOTHING is create-only, and returns what it inserted", async () => {
  await run(examples.sql("table"));
  await run(examples.sql("insert"));
  expect(await run(examples.sql("create-only"))).toEqual([]);
  expect(await run(ALL_MESSAGES)).toEqual([[STORED, "the message"]]);
  expect(await run(examples.sql("create-only").replace(STORED, FIRST))).toEqual([[FIRST]]);
});

test("the second place returns the first number of a message, and takes no number for two messages", async () => {
  const [create, ...statements] = examples.sql("second-place").split(/(?<=;)\n/);
  await run(String(create));
  const place = statements.join("\n");
  expect(await run(place)).toEqual([[STORED]]);
  expect(await run(place.replace(STORED, FIRST))).toEqual([[STORED]]);
  await expect(run(place.replaceAll("the message", "another message"))).rejects.toThrow(DUPLICATE);
});

test("a message that is stored already is found by its key, and a repeated number fails all the same", async () => {
  expect(await run(examples.sql("key"))).toEqual([[STORED]]);
  const again = examples.sql("key").replace(/^[\s\S]*?(?=INSERT)/, "");
  expect(await run(again.replace(STORED, FIRST))).toEqual([]);
  await expect(run(again.replaceAll("the message", "another message"))).rejects.toThrow(DUPLICATE);
});

test("ON CONFLICT DO UPDATE and MERGE overwrite a message", async () => {
  await run(examples.sql("table"));
  await run(examples.sql("insert"));
  const update = "ON CONFLICT (call_number) DO UPDATE SET message = excluded.message";
  await run(`INSERT INTO messages VALUES ('${STORED}', 'updated') ${update}`);
  expect(await run(ALL_MESSAGES)).toEqual([[STORED, "updated"]]);
  await run(`MERGE INTO messages AS m USING (VALUES ('${STORED}', 'merged')) AS n (call_number, message)
    ON m.call_number = n.call_number WHEN MATCHED THEN UPDATE SET message = n.message`);
  expect(await run(ALL_MESSAGES)).toEqual([[STORED, "merged"]]);
});

test("a nondeterministic collation destroys a message, as shown; the query finds it and the statement fixes it", async () => {
  await run(examples.sql("table"));
  expect(await run(examples.sql("trap"))).toEqual(examples.rows("trap"));
  const insert = `INSERT INTO messages_at_risk VALUES ('${FIRST}', 'the first message')`;
  await expect(run(insert)).rejects.toThrow(DUPLICATE);
  expect(await run(examples.sql("find"))).toEqual([["messages_at_risk", "call_number", "text", "without_case"]]);

  await run(examples.sql("repair"));
  expect(await run(examples.sql("find"))).toEqual([]);
  await run(insert);
  expect(await run("SELECT call_number FROM messages_at_risk ORDER BY 1")).toEqual([[OTHER], [FIRST]]);
});

test("char(8) pads, and its spaces at the end do not count", async () => {
  await run("CREATE TABLE padded (call_number char(8) PRIMARY KEY); INSERT INTO padded VALUES ('2VznWE')");
  await expect(run("INSERT INTO padded VALUES ('2VznWE  ')")).rejects.toThrow(DUPLICATE);
});

test("call numbers stored as numbers are kept in 47 bits, once each", async () => {
  await run(examples.sql("bigint"));
  const insert = (number: string) => run(`INSERT INTO messages_by_number VALUES (${number}, 'another')`);
  await expect(insert("8860652339216")).rejects.toThrow(DUPLICATE);
  for (const number of ["-1", "140737488355328"]) await expect(insert(number)).rejects.toThrow(/23514/);
  await expect(insert("NULL")).rejects.toThrow(/23502/);
});

test("the functions and the type are used as shown", async () => {
  await run(FUNCTIONS);
  expect(await run(examples.sql("functions"))).toEqual(examples.rows("functions"));
});

test("the driver pg returns a stored number as a string, and fromNumber takes it, as shown", async () => {
  await run(examples.sql("bigint").replace(/^INSERT .*$/m, ""));
  const folder = await folderForTest();
  symlinkSync(join(REPOSITORY, "node_modules"), join(folder, "node_modules"), "junction");
  writeFileSync(join(folder, "by-number.mjs"), examples.js("driver"));
  const [[socketFolder = ""] = []] = await run("SHOW unix_socket_directories");
  const env = { ...process.env, PGHOST: socketFolder, PGUSER: "postgres", PGDATABASE: "archive" };
  const { stdout } = await promisify(execFile)(process.execPath, ["by-number.mjs"], { cwd: folder, env });
  expect(stdout).toBe(examples.printed("driver"));
});
