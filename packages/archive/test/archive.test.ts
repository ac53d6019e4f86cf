import { existsSync, linkSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { beforeEach, expect, test } from "vitest";
import { Archive } from "../src/archive/archive.js";
import type { NewMessage } from "../src/archive/insert-message.js";
import { errorDetails } from "../src/errors.js";
import { SAME_RULES } from "../src/message/sameness.js";
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
  message("x", { source: "/mail/b.mbox" }),
  message("x", { byteOffset: 9, fromLine: Buffer.from("From a\n") }),
];

test("the archive lists the places of the same message as copies of the first one, once", () => {
  using archive = new Archive(path);
  const { stored, copies: counted } = archive.store(EQUAL, NUMBERS, ORIGIN);
  expect(stored.map(({ callNumber, message: { byteOffset, raw } }) => [callNumber, byteOffset, `${raw}`])).toEqual([
    [NUMBERS[0], 0, "x"],
    [NUMBERS[1], 0, "y"],
  ]);
  expect(counted).toMatchObject({ "separator-and-bytes": 2, bytes: 1 });
  expect(archive.store(EQUAL, NUMBERS, ORIGIN)).toMatchObject({ stored: [], usedCount: 0, copies: { bytes: 0 } });
  expect(copies()).toEqual([
    ["/mail/b.mbox", 1, 0, NUMBERS[0], "separator-and-bytes"],
    ["/mail/letters.mbox", 2, 7, NUMBERS[0], "separator-and-bytes"],
    ["/mail/letters.mbox", 1, 9, NUMBERS[0], "bytes"],
  ]);
});

test("the archive gives the same message at other places numbers of their own when it is asked to, also those listed before", () => {
  for (const sameContent of ["skip", "number", "number"] as const) {
    using archive = new Archive(path, { sameContent });
    archive.store(EQUAL, archive.count() === 0 ? NUMBERS : ["00000005", "00000006", "00000007"], ORIGIN);
  }
  expect(rowsOf(path).map(({ source, byte_offset }) => [source, byte_offset])).toEqual([
    ["/mail/b.mbox", 0],
    ["/mail/letters.mbox", 0],
    ["/mail/letters.mbox", 0],
    ["/mail/letters.mbox", 7],
    ["/mail/letters.mbox", 9],
  ]);
});

const LETTER = "Message-ID: <a@b>\nSubject: s\n\ntext\n";

test.each([
  ["message-id-and-bytes", LETTER.replace("Subject", "Status: RO\nSubject")],
  ["message-id-and-body", LETTER.replace("Subject", "Received: x\nSubject")],
] as const)("the archive takes a message for the same by the rule %s only down to the weakest one", (why, other) => {
  const second = message(other, { byteOffset: 9 });
  for (const [index, weakestRule] of SAME_RULES.entries()) {
    using archive = new Archive(`${path}${index}`, { weakestRule });
    archive.store([message(LETTER)], NUMBERS, ORIGIN);
    const isSame = index >= SAME_RULES.indexOf(why);
    expect(archive.findSame(second)).toEqual(isSame ? { callNumber: NUMBERS[0], list: null, why } : undefined);
    const { stored, copies: counted, relations } = archive.store([second], NUMBERS.slice(1), ORIGIN);
    expect([stored.length, counted[why], relations.redelivered]).toEqual(isSame ? [0, 1, 0] : [1, 0, 1]);
  }
});

test("the archive prefers the copy of the same list, with the same separator", () => {
  using archive = new Archive(path, { weakestRule: "separator-and-bytes" });
  const of = (list: string, line: string, byteOffset: number) =>
    message("x", { list, isListGiven: true, fromLine: Buffer.from(line), byteOffset });
  archive.store([of("one", "From a\n", 0), of("one", "From b\n", 1), of("two", "From b\n", 2)], NUMBERS, ORIGIN);
  expect(archive.count()).toBe(3);
  expect(archive.findSame(of("two", "From b\n", 9))?.callNumber).toBe(NUMBERS[2]);
  expect(archive.findSame(of("one", "From b\n", 9))?.callNumber).toBe(NUMBERS[1]);
  expect(archive.findSame(of("three", "From b\n", 9))).toBeUndefined();
});

test("the archive believes what was looked up before only while no other process has changed it", () => {
  using archive = new Archive(path);
  const lookUp = { version: archive.version, same: new Map() };
  {
    using other = new Archive(path);
    other.store([message(LETTER)], NUMBERS, ORIGIN);
  }
  expect(archive.store([message(LETTER)], NUMBERS.slice(1), ORIGIN, lookUp).stored).toEqual([]);
  const again = { version: archive.version, same: new Map() };
  const twice = [message("x", { byteOffset: 1 }), message("x", { byteOffset: 2 })];
  expect(archive.store(twice, NUMBERS.slice(1), ORIGIN, again)).toMatchObject({
    usedCount: 1,
    copies: { "separator-and-bytes": 1 },
  });
});

test("the archive stores nothing when what comes before the commit fails", () => {
  using archive = new Archive(path);
  const fail = () => {
    throw new Error("full");
  };
  expect(() => archive.store([message("x")], NUMBERS, ORIGIN, undefined, fail)).toThrow("full");
  expect([archive.count(), archive.origin]).toEqual([0, undefined]);
});

const reply = (id: string, header: string, byteOffset: number) =>
  message(`Message-ID: <${id}>\n${header}\n\n${id}\n`, { byteOffset });

test("the archive puts a message into the thread of what it answers, in whatever order they come", () => {
  const thread = [
    reply("a", "Subject: a", 0),
    reply("b", "In-Reply-To: <a>", 1),
    reply("c", "References: <a> <b>", 2),
    reply("d", "In-Reply-To: <c>", 3),
  ];
  const orders = [thread, thread.toReversed(), [2, 0, 3, 1].map((index) => thread[index] as NewMessage)];
  for (const [index, order] of orders.entries()) {
    using archive = new Archive(`${path}${index}`);
    for (const [at, one] of order.entries()) archive.store([one], [`0000000${at}`], ORIGIN);
    expect(rowsOf(`${path}${index}`).map((row) => row.thread)).toEqual(["<a>", "<a>", "<a>", "<a>"]);
  }
});

test.each([1, 2])("an archive of version %d is brought to the tables of today, and keeps its messages", (version) => {
  const text = "Message-ID: <a@b>\nList-Id: <x.example>\nTo: Ada\n\nx\n";
  execute(readFileSync(new URL(`archive-version-${version}.sql`, import.meta.url), "utf8"));
  using archive = new Archive(path);
  expect(archive.origin).toEqual(ORIGIN);
  expect(rowsOf(path)).toMatchObject([
    { call_number: NUMBERS[0], source: "/mail/letters.mbox", list: "x.example", to_header: "Ada", thread: "<a@b>" },
  ]);
  const copy = message(text, { source: "/mail/b.mbox" });
  // In version 1, copies were not listed.
  expect(archive.find(copy)?.callNumber).toBe(version === 1 ? undefined : NUMBERS[0]);
  expect(archive.findSame(copy)).toMatchObject({ callNumber: NUMBERS[0], why: "separator-and-bytes" });
});

test("an archive of version 3 gets the place of each known number in its file", () => {
  new Archive(path).close();
  execute("alter table known_numbers drop column line; pragma user_version = 3");
  using archive = new Archive(path);
  expect(archive.known.find(message("x"), "bytes")).toBeUndefined();
});

test("the archive names a source as it did, through whatever link its directory is reached", () => {
  const source = join(dirname(path), "a.mbox");
  const link = join(dirname(path), "link");
  symlinkSync(dirname(path), link);
  using archive = new Archive(join(link, "mail.db"));
  archive.store([message("x", { source })], NUMBERS, ORIGIN);
  expect(rowsOf(join(link, "mail.db"))).toMatchObject([{ source: "a.mbox" }]);
});

test("the archive names a source inside of its directory from there, so that both can be moved", () => {
  const source = join(dirname(path), "lists", "a.mbox");
  using archive = new Archive(path);
  archive.store([message("x", { source })], NUMBERS, ORIGIN);
  expect(rowsOf(path)).toMatchObject([{ source: "lists/a.mbox" }]);
  expect(archive.find(message("x", { source }))?.callNumber).toBe(NUMBERS[0]);
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

test.each([
  ["removed", () => rmSync(path)],
  ["moved", () => renameSync(path, `${path}.old`)],
  ["stripped of its -wal", () => rmSync(`${path}-wal`)],
  [
    "replaced by its copy",
    () => {
      writeFileSync(`${path}.copy`, readFileSync(path));
      renameSync(`${path}.copy`, path);
    },
  ],
])("an archive whose file was %s stores nothing more, and no number of it is noted elsewhere", (_, change) => {
  using archive = new Archive(path);
  archive.store([message("first")], NUMBERS, ORIGIN);
  change();
  const noted: unknown[] = [];
  const second = [message("second", { byteOffset: 9 })];
  expect(() => archive.store(second, NUMBERS.slice(1), ORIGIN, undefined, (stored) => void noted.push(stored))).toThrow(
    expect.objectContaining({ code: "archive_replaced", message: expect.stringContaining(path) }),
  );
  expect([noted, archive.count()]).toEqual([[], 1]);
});

test("an archive that is opened again is neither made again nor taken from its copy", () => {
  const first = new Archive(path);
  first.close();
  Archive.reopen(path, first.file).close();
  rmSync(path);
  expect(() => Archive.reopen(path, first.file)).toThrow(expect.objectContaining({ code: "archive_replaced" }));
  expect(existsSync(path)).toBe(false);
  writeFileSync(path, "a copy");
  expect(() => Archive.reopen(path, first.file)).toThrow(expect.objectContaining({ code: "archive_replaced" }));
});

test("an archive with two names is rejected, because SQLite would keep two logs of it", () => {
  new Archive(path).close();
  linkSync(path, `${path}.second`);
  expect(() => new Archive(path)).toThrow(expect.objectContaining({ code: "archive_unusable" }));
  rmSync(`${path}.second`);
  new Archive(path).close();
});

test("an archive in whose place a copy was put leaves that as it is when it is closed, and is whole itself", () => {
  const archive = new Archive(path);
  archive.store([message("first")], NUMBERS, ORIGIN);
  execute(`vacuum into '${path}.copy'`);
  const copy = readFileSync(`${path}.copy`);
  archive.store([message("second", { byteOffset: 9 })], NUMBERS.slice(1), ORIGIN);
  linkSync(path, `${path}.moved`);
  renameSync(`${path}.copy`, path);
  archive.close();
  expect([readFileSync(path).equals(copy), statSync(`${path}-wal`).size]).toEqual([true, 0]);
  using again = new Archive(path);
  using moved = new Archive(`${path}.moved`);
  expect([again.count(), moved.count()]).toEqual([1, 2]);
});

test("a damaged archive is named as such", () => {
  {
    using archive = new Archive(path);
    archive.store([message("first")], NUMBERS, ORIGIN);
  }
  execute(`vacuum into '${path}.whole'`);
  const damaged = `${path}.damaged`;
  writeFileSync(damaged, readFileSync(`${path}.whole`).fill(0x55, 4096, 3 * 4096));
  let code: string | undefined;
  try {
    using archive = new Archive(damaged);
    archive.store([message("second", { byteOffset: 9 })], NUMBERS.slice(1), ORIGIN);
  } catch (error) {
    ({ code } = errorDetails(error));
  }
  expect(code).toBe("archive_damaged");
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
  execute("pragma user_version = 5");
  expect(() => new Archive(path)).toThrow(expect.objectContaining({ message: expect.stringContaining("version 5") }));
  expect(() => new Archive(join(path, "no", "archive.db"))).toThrow(
    expect.objectContaining({ code: "archive_unusable" }),
  );
});

function copies(): unknown[] {
  using database = new DatabaseSync(path);
  const rows = database.prepare("select source, number, byte_offset, call_number, why from copies").all();
  return rows.map((row) => Object.values(row as object));
}

function execute(sql: string): void {
  using database = new DatabaseSync(path);
  database.exec(sql);
}
