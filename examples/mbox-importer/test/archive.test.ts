import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { beforeEach, describe, expect, it } from "vitest";
import { Archive } from "../src/archive/archive.js";
import { rowsOf, temporaryFolder } from "./importing.js";
import { message } from "./new-message.js";

const ORIGIN = { storeId: "store-a", namespace: "main" };
const NUMBERS = ["00000001", "00000002", "00000003", "00000004"] as const;

let path: string;
beforeEach(async () => {
  path = join(await temporaryFolder(), "archive.db");
});

describe("storing", () => {
  it("is create-only: a call number that stands already is an error, and neither row is touched", () => {
    using archive = new Archive(path);
    archive.store([message("first")], NUMBERS, ORIGIN);
    const before = rowsOf(path);
    const second = [message("new", { byteOffset: 5 }), message("second", { byteOffset: 9 })];
    expect(() => archive.store(second, [NUMBERS[1], NUMBERS[0]], ORIGIN)).toThrow(
      expect.objectContaining({ code: "repeated_call_number", message: expect.stringContaining(NUMBERS[0]) }),
    );
    expect(rowsOf(path)).toEqual(before);
  });

  it("tells call numbers apart that differ only in case", () => {
    using archive = new Archive(path);
    archive.store([message("a")], ["0000000a"], ORIGIN);
    archive.store([message("A", { byteOffset: 1 })], ["0000000A"], ORIGIN);
    expect(archive.findByCallNumber("0000000A")?.callNumber).toBe("0000000A");
    expect(rowsOf(path).length).toBe(2);
  });

  it("leaves a message out that stands already, and gives its number to the next one", () => {
    using archive = new Archive(path);
    using other = new Archive(path);
    other.store([message("first")], [NUMBERS[3]], ORIGIN);
    const used = archive.store([message("first"), message("second", { byteOffset: 5 })], NUMBERS.slice(0, 2), ORIGIN);
    expect(used).toEqual([NUMBERS[0]]);
    expect(archive.find(message("second", { byteOffset: 5 }))?.callNumber).toBe(NUMBERS[0]);
    expect(archive.find(message("first"))?.callNumber).toBe(NUMBERS[3]);
  });

  it("keeps equal bytes at two places as two messages, and other bytes at one place too", () => {
    using archive = new Archive(path);
    const messages = [message("x"), message("x", { byteOffset: 7 }), message("y"), message("x", { source: "b.mbox" })];
    expect(archive.store(messages, NUMBERS, ORIGIN)).toEqual(NUMBERS);
  });

  it("keeps every byte, also NUL, and every character of a header but NUL, which SQLite's text ends at", () => {
    using archive = new Archive(path);
    const raw = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const subject = "nul \0 ü 𝄞 '; drop table messages; --";
    archive.store([message("", { raw, subject, fromLine: Buffer.from("From \xff\n", "latin1") })], NUMBERS, ORIGIN);
    const [row] = rowsOf(path);
    expect(Buffer.from(row?.raw ?? []).equals(raw)).toBe(true);
    expect(row?.subject).toBe(subject.replace("\0", "␀"));
    expect(Buffer.from(row?.from_line ?? []).toString("latin1")).toBe("From \xff\n");
  });
});

describe("the origin of its numbers", () => {
  it("is pinned with the first message, and no message of another store or namespace gets in", () => {
    using archive = new Archive(path);
    expect(archive.origin).toBeUndefined();
    archive.store([message("first")], NUMBERS, ORIGIN);
    expect(archive.origin).toEqual(ORIGIN);
    const second = [message("second", { byteOffset: 5 })];
    const numbers = NUMBERS.slice(1);
    expect(() => archive.store(second, numbers, { ...ORIGIN, storeId: "store-b" })).toThrow(
      expect.objectContaining({ code: "other_store", remedy: expect.stringContaining("--coordinator") }),
    );
    expect(() => archive.store(second, numbers, { ...ORIGIN, namespace: "letters" })).toThrow(
      expect.objectContaining({ code: "other_namespace" }),
    );
    expect(rowsOf(path).length).toBe(1);
  });

  it("is not pinned by a transaction that stored nothing", () => {
    using archive = new Archive(path);
    const twice = [message("first"), message("second", { byteOffset: 5 })];
    expect(() => archive.store(twice, [NUMBERS[0], NUMBERS[0]], ORIGIN)).toThrow();
    expect(archive.origin).toBeUndefined();
  });
});

describe("opening", () => {
  it("gives durable commits: WAL, and every commit on the disk", () => {
    using archive = new Archive(path);
    archive.store([message("first")], NUMBERS, ORIGIN);
    using database = new DatabaseSync(path);
    expect(database.prepare("pragma journal_mode").get()).toEqual({ journal_mode: "wal" });
  });

  it("refuses a file that is something else, and leaves it as it was", () => {
    writeFileSync(path, "Dear Ada, this is a letter and no database. ".repeat(40));
    const before = readFileSync(path);
    expect(() => new Archive(path)).toThrow(expect.objectContaining({ code: "archive_unusable" }));
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it("refuses a database of somebody else, and leaves it as it was", () => {
    {
      using database = new DatabaseSync(path);
      database.exec("create table letters (id integer)");
    }
    const before = readFileSync(path);
    expect(() => new Archive(path)).toThrow(
      expect.objectContaining({ message: expect.stringContaining("something else") }),
    );
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it("refuses tables of another version, and a folder that is not there", () => {
    new Archive(path).close();
    {
      using database = new DatabaseSync(path);
      database.exec("pragma user_version = 2");
    }
    expect(() => new Archive(path)).toThrow(expect.objectContaining({ message: expect.stringContaining("version 2") }));
    expect(() => new Archive(join(path, "no", "archive.db"))).toThrow(
      expect.objectContaining({ code: "archive_unusable" }),
    );
  });
});

it("counts what stands more than once", () => {
  using archive = new Archive(path);
  const messages = [
    message("x", { messageId: "<1>" }),
    message("x", { messageId: "<1>", byteOffset: 1 }),
    message("y", { messageId: "<1>", byteOffset: 2 }),
    message("z", { byteOffset: 3 }),
  ];
  archive.store(messages, NUMBERS, ORIGIN);
  expect(archive.counts()).toEqual({
    messages: 4,
    withoutMessageId: 1,
    repeatedMessageIds: { ids: 1, messages: 3 },
    repeatedContents: { contents: 1, messages: 2 },
  });
});
