import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { beforeEach, expect, test } from "vitest";
import { Archive } from "../src/archive/archive.js";
import { message, rowsOf, temporaryDirectory } from "./importing.js";

const ORIGIN = { storeId: "store-a", namespace: "main" };
const NUMBERS = ["00000001", "00000002", "00000003", "00000004"] as const;

let path: string;
beforeEach(async () => {
  path = join(await temporaryDirectory(), "archive.db");
});

test("the archive rejects a call number that is already stored, and changes neither row", () => {
  using archive = new Archive(path);
  archive.store([message("first")], NUMBERS, ORIGIN);
  const before = rowsOf(path);
  const second = [message("new", { byteOffset: 5 }), message("second", { byteOffset: 9 })];
  expect(() => archive.store(second, [NUMBERS[1], NUMBERS[0]], ORIGIN)).toThrow(
    expect.objectContaining({ code: "repeated_call_number", message: expect.stringContaining(NUMBERS[0]) }),
  );
  expect(rowsOf(path)).toEqual(before);
});

test("the archive distinguishes call numbers that differ only in case", () => {
  using archive = new Archive(path);
  archive.store([message("a")], ["0000000a"], ORIGIN);
  archive.store([message("A", { byteOffset: 1 })], ["0000000A"], ORIGIN);
  expect(archive.findByCallNumber("0000000A")?.callNumber).toBe("0000000A");
  expect(archive.count()).toBe(2);
});

/** Of `x`, three are equal to the byte; the last has another separator. */
const EQUAL = [
  message("x"),
  message("x", { byteOffset: 7, number: 2 }),
  message("y"),
  message("x", { source: "b.mbox" }),
  message("x", { byteOffset: 9, fromLine: Buffer.from("From a\n") }),
];

test("the archive lists the places of equal bytes as copies of the first one, once", () => {
  using archive = new Archive(path);
  const { stored, sameContent } = archive.store(EQUAL, NUMBERS, ORIGIN);
  expect(stored.map(({ callNumber, message: { byteOffset, raw } }) => [callNumber, byteOffset, `${raw}`])).toEqual([
    [NUMBERS[0], 0, "x"],
    [NUMBERS[1], 0, "y"],
    [NUMBERS[2], 9, "x"],
  ]);
  expect(sameContent).toBe(2);
  expect(archive.store(EQUAL, NUMBERS, ORIGIN)).toEqual({ stored: [], sameContent: 0 });
  expect(copies()).toEqual([
    { source: "b.mbox", number: 1, byte_offset: 0, call_number: NUMBERS[0] },
    { source: "letters.mbox", number: 2, byte_offset: 7, call_number: NUMBERS[0] },
  ]);
});

test("the archive gives equal bytes at other places numbers of their own when it is asked to, also those listed before", () => {
  for (const sameContent of ["skip", "number", "number"] as const) {
    using archive = new Archive(path, sameContent);
    archive.store(EQUAL, archive.count() === 0 ? NUMBERS : ["00000005", "00000006"], ORIGIN);
  }
  expect(rowsOf(path).map(({ source, byte_offset }) => [source, byte_offset])).toEqual([
    ["b.mbox", 0],
    ["letters.mbox", 0],
    ["letters.mbox", 0],
    ["letters.mbox", 7],
    ["letters.mbox", 9],
  ]);
});

test("an archive of version 1 is brought to the tables of today, and keeps its messages", () => {
  {
    using archive = new Archive(path);
    archive.store(EQUAL.slice(0, 1), NUMBERS, ORIGIN);
  }
  execute("drop table copies; pragma user_version = 1");
  using archive = new Archive(path);
  expect(archive.store(EQUAL.slice(0, 2), [], ORIGIN)).toEqual({ stored: [], sameContent: 1 });
  expect(copies()).toHaveLength(1);
});

test("the archive stores every byte, and every character of a header but NUL, at which SQLite's text ends", () => {
  using archive = new Archive(path);
  const raw = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  const subject = "nul \0 ü 𝄞 '; drop table messages; --";
  archive.store([message("", { raw, subject, fromLine: Buffer.from("From \xff\n", "latin1") })], NUMBERS, ORIGIN);
  const [row] = rowsOf(path);
  expect(Buffer.from(row?.raw ?? []).equals(raw)).toBe(true);
  expect(row?.subject).toBe(subject.replace("\0", "␀"));
  expect(Buffer.from(row?.from_line ?? []).toString("latin1")).toBe("From \xff\n");
});

test("the archive is pinned with its first message to a store and a namespace, and rejects the numbers of others", () => {
  using archive = new Archive(path);
  const failing = [message("first"), message("second", { byteOffset: 5 })];
  expect(() => archive.store(failing, [NUMBERS[0], NUMBERS[0]], ORIGIN)).toThrow();
  expect(archive.origin).toBeUndefined();
  archive.store([message("first")], NUMBERS, ORIGIN);
  expect(archive.origin).toEqual(ORIGIN);
  const second = [message("second", { byteOffset: 5 })];
  for (const [origin, code] of [
    [{ ...ORIGIN, storeId: "store-b" }, "store_mismatch"],
    [{ ...ORIGIN, namespace: "letters" }, "other_namespace"],
  ] as const) {
    expect(() => archive.store(second, NUMBERS.slice(1), origin)).toThrow(expect.objectContaining({ code }));
  }
  expect(archive.count()).toBe(1);
});

test("the archive uses WAL", () => {
  new Archive(path).close();
  using database = new DatabaseSync(path);
  expect(database.prepare("pragma journal_mode").get()).toEqual({ journal_mode: "wal" });
});

test.each([
  ["a text", "file is not a database", () => writeFileSync(path, "Dear Ada, this is a letter. ".repeat(40))],
  ["a database of another program", "another program", () => execute("create table letters (id integer)")],
])("the archive rejects %s and leaves it as it was", (_, cause, create) => {
  create();
  const before = readFileSync(path);
  expect(() => new Archive(path)).toThrow(
    expect.objectContaining({ code: "archive_unusable", message: expect.stringContaining(cause) }),
  );
  expect(readFileSync(path).equals(before)).toBe(true);
});

test("the archive rejects tables of another version, and a path in a missing directory", () => {
  new Archive(path).close();
  execute("pragma user_version = 3");
  expect(() => new Archive(path)).toThrow(expect.objectContaining({ message: expect.stringContaining("version 3") }));
  expect(() => new Archive(join(path, "no", "archive.db"))).toThrow(
    expect.objectContaining({ code: "archive_unusable" }),
  );
});

function copies(): unknown[] {
  using database = new DatabaseSync(path);
  return database.prepare("select * from copies").all();
}

function execute(sql: string): void {
  using database = new DatabaseSync(path);
  database.exec(sql);
}
