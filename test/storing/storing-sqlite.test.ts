/** The examples of docs/storing-call-numbers.md on SQLite, and what it says of the statements that it warns of. */
import { callNumbersOfRun, SEQUENCE_COUNT, toNumber } from "@callnumber/protocol/codec";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  ALL_MESSAGES as ALL,
  DocumentExamples,
  NO_CALL_NUMBERS,
  type Rows,
  SAME_BUT_FOR_CASE,
  STORED,
  testThatCaseCounts,
} from "./archive-examples.js";

const examples = new DocumentExamples("sqlite");
const [FIRST, OTHER] = SAME_BUT_FOR_CASE;
const DUPLICATE = /UNIQUE constraint failed/;

let database: InstanceType<typeof DatabaseSync>;

beforeEach(() => {
  database = new DatabaseSync(":memory:");
});

afterEach(() => database.close());

/** Statements end with `;` at the end of a line. Values come back as text. */
function run(statements: string): Rows {
  return statements
    .split(/;\s*$/m)
    .filter((statement) => statement.trim() !== "")
    .flatMap((statement) => {
      const rows = database.prepare(statement).all() as Record<string, unknown>[];
      return rows.map((row) => Object.values(row).map((value) => (value === null ? "NULL" : String(value))));
    });
}

testThatCaseCounts(examples, (sql) => run(sql));

test("LIKE ignores case, and GLOB does not", () => {
  run(examples.sql("table"));
  run(`INSERT INTO messages VALUES ('${FIRST}', 'first'), ('${OTHER}', 'other')`);
  expect(run(`SELECT message FROM messages WHERE call_number LIKE '${OTHER}'`)).toHaveLength(2);
  expect(run(`SELECT message FROM messages WHERE call_number GLOB '${OTHER}'`)).toHaveLength(1);
});

test("the table takes nothing that is no call number", () => {
  run(examples.sql("table"));
  const literals = [...NO_CALL_NUMBERS, "2VznWE2ii", "2VznWE2i "].map((text) => `'${text}'`);
  for (const literal of [...literals, `'${STORED}' || char(0) || 'x'`, `x'${hex(STORED)}'`, "NULL", "12345678.5"]) {
    const insert = () => run(`INSERT INTO messages VALUES (${literal}, 'm')`);
    expect(insert, literal).toThrow(/CHECK constraint failed|cannot store BLOB|NOT NULL constraint failed/);
  }
  run("INSERT INTO messages VALUES ('dxlGgaI3', 'the greatest'), ('00000000', 'the least')");
});

test("both ways of inserting are create-only: the first message stands", () => {
  run(examples.sql("table"));
  run(examples.sql("insert"));
  expect(() => run(examples.sql("insert"))).toThrow(DUPLICATE);
  expect(run(examples.sql("create-only"))).toEqual(examples.rows("create-only"));
  expect(run(ALL)).toEqual([[STORED, "the message"]]);
  expect(run(examples.sql("create-only").replace(STORED, FIRST))).toEqual([["1"]]);
});

test("OR ABORT is an error also where the table was declared to replace, and the plain INSERT is not", () => {
  run(examples.sql("table").replace("PRIMARY KEY", "PRIMARY KEY ON CONFLICT REPLACE"));
  run(examples.sql("insert"));
  expect(() => run(examples.sql("insert"))).toThrow(DUPLICATE);
  run(`INSERT INTO messages VALUES ('${STORED}', 'replaced')`);
  expect(run(ALL)).toEqual([[STORED, "replaced"]]);
});

test("the statements it warns of do write over a message or drop one", () => {
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
  expect(run(examples.sql("affinity"))).toEqual(examples.rows("affinity"));
  expect(() => run("CREATE TABLE strict (call_number STRING PRIMARY KEY) STRICT")).toThrow(/unknown datatype/);
});

test("a rowid is invented where none is given, as shown; without rowid NULL is refused", () => {
  expect(run(examples.sql("invented"))).toEqual(examples.rows("invented"));
  run(examples.sql("integer"));
  const insert = (number: string) => () => run(`INSERT INTO messages_by_number VALUES (${number}, 'another')`);
  expect(insert(`${toNumber(STORED)}`)).toThrow(DUPLICATE);
  expect(insert("NULL")).toThrow(/NOT NULL constraint failed/);
  for (const number of ["-1", "140737488355328"]) expect(insert(number)).toThrow(/CHECK constraint failed/);
});

test("in every archive call numbers differ in case alone: 280 pairs in the first half million, the first after 114,723", () => {
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

test("every example of the document was run", () => {
  expect(examples.unused).toEqual([]);
});

function hex(text: string): string {
  return Buffer.from(text).toString("hex");
}
