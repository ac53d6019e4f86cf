/** The examples of docs/storing-call-numbers.md on SQLite, and what it says of the statements that it warns of. */
import { toNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { DocumentExamples } from "./document-examples.js";
import { NO_CALL_NUMBERS, SAME_BUT_FOR_CASE, STORED } from "./numbers-of-tests.js";
import { sqliteForTest } from "./sqlite-database.js";

const examples = new DocumentExamples("sqlite");
const [FIRST, OTHER] = SAME_BUT_FOR_CASE;
const DUPLICATE = /UNIQUE constraint failed/;
const ALL = "SELECT call_number, message FROM messages ORDER BY call_number";

test("the table keeps both of two call numbers that differ in case alone, and finds each", () => {
  const run = sqliteForTest();
  run(examples.sql("table"));
  run(examples.sql("insert"));
  run(`INSERT INTO messages VALUES ('${FIRST}', 'first'), ('${OTHER}', 'other')`);
  expect(run(`SELECT message FROM messages WHERE call_number = '${OTHER}'`)).toEqual([["other"]]);
  expect(run(ALL)).toEqual(
    [
      [OTHER, "other"],
      [FIRST, "first"],
      [STORED, "the message"],
    ].toSorted(),
  );
  expect(run(`SELECT message FROM messages WHERE call_number LIKE '${OTHER}'`)).toHaveLength(2);
  expect(run(`SELECT message FROM messages WHERE call_number GLOB '${OTHER}'`)).toHaveLength(1);
});

test("the table takes nothing that is no call number", () => {
  const run = sqliteForTest();
  run(examples.sql("table"));
  const literals = [...NO_CALL_NUMBERS, "2VznWE2ii", "2VznWE2i "].map((text) => `'${text}'`);
  for (const literal of [...literals, `'${STORED}' || char(0) || 'x'`, `x'${hex(STORED)}'`, "NULL", "12345678.5"]) {
    const insert = () => run(`INSERT INTO messages VALUES (${literal}, 'm')`);
    expect(insert, literal).toThrow(/CHECK constraint failed|cannot store BLOB|NOT NULL constraint failed/);
  }
  run("INSERT INTO messages VALUES ('dxlGgaI3', 'the greatest'), ('00000000', 'the least')");
});

test("both ways of inserting are create-only: the first message stands", () => {
  const run = sqliteForTest();
  run(examples.sql("table"));
  run(examples.sql("insert"));
  expect(() => run(examples.sql("insert"))).toThrow(DUPLICATE);
  expect(run(examples.sql("create-only"))).toEqual(examples.rows("create-only"));
  expect(run(ALL)).toEqual([[STORED, "the message"]]);
  expect(run(examples.sql("create-only").replace(STORED, FIRST))).toEqual([["1"]]);
});

test("OR ABORT is an error also where the table was declared to replace, and the plain INSERT is not", () => {
  const run = sqliteForTest();
  run(examples.sql("table").replace("PRIMARY KEY", "PRIMARY KEY ON CONFLICT REPLACE"));
  run(examples.sql("insert"));
  expect(() => run(examples.sql("insert"))).toThrow(DUPLICATE);
  run(`INSERT INTO messages VALUES ('${STORED}', 'replaced')`);
  expect(run(ALL)).toEqual([[STORED, "replaced"]]);
});

test("the statements it warns of do write over a message or drop one", () => {
  const run = sqliteForTest();
  run(examples.sql("table"));
  run(examples.sql("insert"));
  const after = (sql: string) => {
    run(sql);
    return run(ALL)[0]?.[1];
  };
  expect(after(`INSERT OR IGNORE INTO messages VALUES ('${STORED}', 'dropped')`)).toBe("the message");
  const update = "ON CONFLICT DO UPDATE SET message = excluded.message";
  expect(after(`INSERT INTO messages VALUES ('${STORED}', 'updated') ${update}`)).toBe("updated");
  expect(after(`REPLACE INTO messages VALUES ('${STORED}', 'replaced')`)).toBe("replaced");
});

test("NOCASE destroys a message, as shown; the query finds the column and the statements mend it", () => {
  const run = sqliteForTest();
  run(examples.sql("table"));
  expect(run(examples.sql("trap"))).toEqual(examples.rows("trap"));
  const insert = `INSERT INTO messages_at_risk VALUES ('${FIRST}', 'the first message')`;
  expect(() => run(insert)).toThrow(DUPLICATE);
  expect(run(examples.sql("find"))).toEqual([["messages_at_risk", "call_number", "NOCASE"]]);

  run(examples.sql("mend"));
  expect(run(examples.sql("find"))).toEqual([]);
  run(insert);
  expect(run("SELECT call_number FROM messages_at_risk ORDER BY 1")).toEqual([[OTHER], [FIRST]]);
});

test("an unknown type makes numbers of call numbers, as shown, and STRICT refuses it", () => {
  const run = sqliteForTest();
  expect(run(examples.sql("affinity"))).toEqual(examples.rows("affinity"));
  expect(() => run("CREATE TABLE strict (call_number STRING PRIMARY KEY) STRICT")).toThrow(/unknown datatype/);
});

test("a rowid is invented where none is given, as shown; without rowid NULL is refused", () => {
  const run = sqliteForTest();
  expect(run(examples.sql("invented"))).toEqual(examples.rows("invented"));
  run(examples.sql("integer"));
  const insert = (number: string) => () => run(`INSERT INTO messages_by_number VALUES (${number}, 'another')`);
  expect(insert(`${toNumber(STORED)}`)).toThrow(DUPLICATE);
  expect(insert("NULL")).toThrow(/NOT NULL constraint failed/);
  for (const number of ["-1", "140737488355328"]) expect(insert(number)).toThrow(/CHECK constraint failed/);
});

test("every example of the document was run", () => {
  expect(examples.unused).toEqual([]);
});

function hex(text: string): string {
  return Buffer.from(text).toString("hex");
}
