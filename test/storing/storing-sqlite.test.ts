/** The examples of docs/how-to/store-call-numbers.md on SQLite, and what its warnings claim. */
import { callNumbersOfRun, SEQUENCE_COUNT, toNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { ALL_MESSAGES, SAME_BUT_FOR_CASE, STORED, testArchive } from "./archive-examples.js";
import { startSqlite } from "./sql-servers.js";

const [FIRST, OTHER] = SAME_BUT_FOR_CASE;
const DUPLICATE = /UNIQUE constraint failed/;

const { examples, run } = testArchive({
  name: "sqlite",
  start: startSqlite,
  alsoMalformed: ["'2VznWE2i '", `'${STORED}' || char(0) || 'x'`, `x'${hex(STORED)}'`, "NULL", "12345678.5"],
  malformed: /CHECK constraint failed|cannot store BLOB|NOT NULL constraint failed/,
  duplicate: DUPLICATE,
});

test("LIKE ignores case, and GLOB does not", async () => {
  await run(examples.sql("table"));
  await run(`INSERT INTO messages VALUES ('${FIRST}', 'first'), ('${OTHER}', 'other')`);
  expect(await run(`SELECT message FROM messages WHERE call_number LIKE '${OTHER}'`)).toHaveLength(2);
  expect(await run(`SELECT message FROM messages WHERE call_number GLOB '${OTHER}'`)).toHaveLength(1);
});

test("ON CONFLICT DO NOTHING is create-only, and returns what it inserted", async () => {
  await run(examples.sql("table"));
  await run(examples.sql("insert"));
  expect(await run(examples.sql("create-only"))).toEqual(examples.rows("create-only"));
  expect(await run(ALL_MESSAGES)).toEqual([[STORED, "the message"]]);
  expect(await run(examples.sql("create-only").replace(STORED, FIRST))).toEqual([["1"]]);
});

test("OR ABORT fails also where the table was declared to replace, and the plain INSERT does not", async () => {
  await run(examples.sql("table").replace("PRIMARY KEY", "PRIMARY KEY ON CONFLICT REPLACE"));
  await run(examples.sql("insert"));
  await expect(run(examples.sql("insert"))).rejects.toThrow(DUPLICATE);
  await run(`INSERT INTO messages VALUES ('${STORED}', 'replaced')`);
  expect(await run(ALL_MESSAGES)).toEqual([[STORED, "replaced"]]);
});

test("INSERT OR IGNORE drops a message, DO UPDATE and REPLACE overwrite one", async () => {
  await run(examples.sql("table"));
  await run(examples.sql("insert"));
  const after = async (sql: string) => {
    await run(sql);
    return (await run(ALL_MESSAGES))[0]?.[1];
  };
  expect(await after(`INSERT OR IGNORE INTO messages VALUES ('${STORED}', 'dropped')`)).toBe("the message");
  const update = "ON CONFLICT DO UPDATE SET message = excluded.message";
  expect(await after(`INSERT INTO messages VALUES ('${STORED}', 'updated') ${update}`)).toBe("updated");
  expect(await after(`REPLACE INTO messages VALUES ('${STORED}', 'replaced')`)).toBe("replaced");
});

test("NOCASE destroys a message, as shown; the query finds the column and the statements fix it", async () => {
  await run(examples.sql("table"));
  expect(await run(examples.sql("trap"))).toEqual(examples.rows("trap"));
  const insert = `INSERT INTO messages_at_risk VALUES ('${FIRST}', 'the first message')`;
  await expect(run(insert)).rejects.toThrow(DUPLICATE);
  expect(await run(examples.sql("find"))).toEqual([["messages_at_risk", "call_number", "NOCASE"]]);

  await run(examples.sql("repair"));
  expect(await run(examples.sql("find"))).toEqual([]);
  await run(insert);
  expect(await run("SELECT call_number FROM messages_at_risk ORDER BY 1")).toEqual([[OTHER], [FIRST]]);
});

test("an unknown type makes numbers of call numbers, as shown, and STRICT rejects it", async () => {
  expect(await run(examples.sql("affinity"))).toEqual(examples.rows("affinity"));
  const strict = "CREATE TABLE strict (call_number STRING PRIMARY KEY) STRICT";
  await expect(run(strict)).rejects.toThrow(/unknown datatype/);
});

test("a rowid is invented where none is given, as shown; without rowid NULL is rejected", async () => {
  expect(await run(examples.sql("invented"))).toEqual(examples.rows("invented"));
  await run(examples.sql("integer"));
  for (const [number, error] of [
    [`${toNumber(STORED)}`, DUPLICATE],
    ["NULL", /NOT NULL constraint failed/],
    ["-1", /CHECK constraint failed/],
    ["140737488355328", /CHECK constraint failed/],
  ] as const)
    await expect(run(`INSERT INTO messages_by_number VALUES (${number}, 'another')`)).rejects.toThrow(error);
});

test("the first half million call numbers have 280 pairs that differ in case alone, the first after 114,723", () => {
  const spellings = new Map<string, string>();
  const pairs: string[] = [];
  let callNumberAt = callNumbersOfRun(0, 1);
  for (let count = 1; count <= 500_000; count++) {
    const [run, sequence] = [1 + Math.floor((count - 1) / SEQUENCE_COUNT), (count - 1) % SEQUENCE_COUNT];
    if (sequence === 0) callNumberAt = callNumbersOfRun(0, run);
    const callNumber = callNumberAt(sequence);
    const other = spellings.get(callNumber.toLowerCase());
    if (other === undefined) spellings.set(callNumber.toLowerCase(), callNumber);
    else pairs.push(`${count}: ${other} ${callNumber}`);
  }
  expect(pairs[0]).toBe(`114723: ${SAME_BUT_FOR_CASE.join(" ")}`);
  expect(pairs).toHaveLength(280);
});

function hex(text: string): string {
  return Buffer.from(text).toString("hex");
}
