/** The examples of docs/how-to/store-call-numbers.md on a real MariaDB, and what its warnings claim. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../processes/command.js";
import { ALL_MESSAGES, SAME_BUT_FOR_CASE, STORED, testArchive } from "./archive-examples.js";
import { startMariadb } from "./sql-servers.js";

const [FIRST, OTHER] = SAME_BUT_FOR_CASE;
const DUPLICATE = /ERROR 1062 /;
const RISKY = `CREATE TABLE messages_at_risk (call_number CHAR(8) NOT NULL PRIMARY KEY, message TEXT NOT NULL)
  CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
  INSERT INTO messages_at_risk VALUES ('${FIRST}', 'the first message');`;

const { examples, run } = testArchive({
  name: "mariadb",
  start: startMariadb,
  settings: "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
  // As hexadecimal: nothing on the way to the server can interpret a character of it.
  literal: (text) => `CONVERT(X'${Buffer.from(text).toString("hex")}' USING utf8mb4)`,
  malformed: /CONSTRAINT `written_like|Data too long|Incorrect string/,
  duplicate: DUPLICATE,
});

test("INSERT IGNORE drops a message, ON DUPLICATE KEY UPDATE and REPLACE overwrite one", async () => {
  await run(examples.sql("table"));
  await run(examples.sql("insert"));
  const after = async (sql: string) => (await run(`${sql}; ${ALL_MESSAGES}`)).at(-1)?.[1];
  expect(await after(`INSERT IGNORE INTO messages VALUES ('${STORED}', 'dropped')`)).toBe("the message");
  const update = "ON DUPLICATE KEY UPDATE message = 'updated'";
  expect(await after(`INSERT INTO messages VALUES ('${STORED}', 'x') ${update}`)).toBe("updated");
  expect(await after(`REPLACE INTO messages VALUES ('${STORED}', 'replaced')`)).toBe("replaced");
});

test("error 1062 comes from the number and from the key of the message, and the look-up of the hash says which", async () => {
  await run(examples.sql("key"));
  const insert = examples.sql("key").replace(/^[\s\S]*?(?=INSERT)/, "");
  const isStored = (message: string) =>
    run(`SELECT count(*) FROM numbered_messages WHERE content_hash = UNHEX(SHA2('${message}', 256))`);
  await expect(run(insert.replace(STORED, FIRST))).rejects.toThrow(DUPLICATE);
  expect(await isStored("the message")).toEqual([["1"]]);
  await expect(run(insert.replaceAll("the message", "another message"))).rejects.toThrow(DUPLICATE);
  expect(await isStored("another message")).toEqual([["0"]]);
});

test("a collation without case destroys a message, as shown, and each statement in its own way", async () => {
  expect(await run(examples.sql("trap"))).toEqual(examples.rows("trap"));
  await run("DROP TABLE messages_at_risk");
  await run(RISKY);
  const other = `INTO messages_at_risk VALUES ('${OTHER}', 'another message')`;
  await expect(run(`INSERT ${other}`)).rejects.toThrow(DUPLICATE);
  const all = "SELECT call_number, message FROM messages_at_risk";
  expect(await run(`INSERT IGNORE ${other}; ${all}`)).toEqual([[FIRST, "the first message"]]);
  expect(await run(`${all} WHERE call_number = '${OTHER}'`)).toEqual([[FIRST, "the first message"]]);
  const update = "ON DUPLICATE KEY UPDATE message = VALUES(message)";
  expect(await run(`INSERT ${other} ${update}; ${all}`)).toEqual([[FIRST, "another message"]]);
});

test("the query finds every column at risk and no other, and the statement fixes one", async () => {
  await run(examples.sql("table"));
  await run(RISKY);
  await run(`CREATE TABLE others (callNumber VARCHAR(20) COLLATE utf8mb4_unicode_ci, code CHAR(8) COLLATE utf8mb4_nopad_bin,
    reference CHAR(8), subject VARCHAR(200), bytes BINARY(8), cased VARCHAR(8) CHARACTER SET latin1 COLLATE latin1_general_cs)`);
  await run("CREATE VIEW seen AS SELECT * FROM others");
  const found = async () => (await run(examples.sql("find"))).map(([, table, column]) => `${table}.${column}`);
  expect(await found()).toEqual(["messages_at_risk.call_number", "others.callNumber", "others.reference"]);

  await run(examples.sql("repair"));
  expect(await found()).toEqual(["others.callNumber", "others.reference"]);
  await run(`INSERT INTO messages_at_risk VALUES ('${OTHER}', 'another message')`);
  expect(await run("SELECT message FROM messages_at_risk ORDER BY 1")).toEqual([
    ["another message"],
    ["the first message"],
  ]);
});

test("the statement fails for a column of a foreign key", async () => {
  await run(RISKY);
  await run(`CREATE TABLE threads (call_number CHAR(8) NOT NULL, FOREIGN KEY (call_number) REFERENCES messages_at_risk (call_number))
    CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci`);
  await expect(run(examples.sql("repair"))).rejects.toThrow(/ERROR 1833 /);
  const repairOther = examples.sql("repair").replace("messages_at_risk", "threads");
  await expect(run(repairOther)).rejects.toThrow(/ERROR 1832 /);
});

test("a lax mode cuts a text to another number, and INSERT IGNORE does in every mode", async () => {
  await run(examples.sql("table"));
  const tooLong = `INTO messages VALUES ('${STORED}X', 'm'); ${ALL_MESSAGES}`;
  await expect(run(`INSERT ${tooLong}`)).rejects.toThrow(/Data too long/);
  expect(await run(`SET sql_mode = ''; INSERT ${tooLong}`)).toEqual([[STORED, "m"]]);
  expect(await run(`TRUNCATE messages; INSERT IGNORE ${tooLong}`)).toEqual([[STORED, "m"]]);
});

test("spaces at the end are cut and do not count", async () => {
  await run(examples.sql("table"));
  await run(`INSERT INTO messages VALUES ('${STORED}  ', 'm')`);
  expect(await run(ALL_MESSAGES)).toEqual([[STORED, "m"]]);
  expect(await run(`${ALL_MESSAGES.split(" ORDER")[0]} WHERE call_number = '${STORED}   '`)).toEqual([[STORED, "m"]]);
});

test("a number without quotes finds what begins like it", async () => {
  await run(examples.sql("table"));
  await run(examples.sql("insert"));
  expect(await run(examples.sql("unquoted"))).toEqual(examples.rows("unquoted"));
});

test("the functions return what the document shows, and keep call numbers as numbers", async () => {
  await run(readFileSync(join(REPOSITORY, "deploy/sql/call-numbers.mariadb.sql"), "utf8"));
  await run(examples.sql("table"));
  await run(examples.sql("insert"));
  expect(await run(examples.sql("functions"))).toEqual(examples.rows("functions"));
  expect(await run(examples.sql("bigint"))).toEqual(examples.rows("bigint"));
  const insert = (number: string) => run(`INSERT INTO messages_by_number VALUES (${number}, 'another')`);
  await expect(insert("call_number_to_number('2VznWE2i')")).rejects.toThrow(DUPLICATE);
  await expect(insert("call_number_to_number('2VznWE2-')")).rejects.toThrow(/cannot be null/);
  await expect(insert("140737488355328")).rejects.toThrow(/within_47_bits/);
  const two = "INSERT INTO messages_by_number VALUES (1, 'm'), (call_number_to_number('2VznWE2-'), 'misspelled')";
  await expect(run(two)).rejects.toThrow(/cannot be null/);
  const misspelled = "SELECT call_number FROM messages_by_number WHERE message = 'misspelled'";
  expect(await run(`SET sql_mode = ''; ${two}; ${misspelled}`)).toEqual([["0"]]);
  const check = "CREATE TABLE checked (call_number CHAR(8) CHECK (call_number_is_valid(call_number)))";
  await expect(run(check)).rejects.toThrow(/ERROR 1901 /);
});

test("a rotated log continues with the id that the document shows", async () => {
  await run(readFileSync(join(REPOSITORY, "deploy/sql/rotate-log.mariadb.sql"), "utf8"));
  expect(await run(examples.sql("rotate"))).toEqual(examples.rows("rotate"));
});
