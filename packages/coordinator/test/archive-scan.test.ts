/** What is found in an archive: the greatest run, whatever the archive looks like, and everything that is no call number. */
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeCallNumber, encodeCallNumber, fromNumber, NUMBER_MAX, toNumber } from "@callnumber/protocol/codec";
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { DatabaseSync } from "@photostructure/sqlite";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ArchiveError } from "../src/archive/archive-error.js";
import type { ScanResult } from "../src/archive/archive-scan.js";
import { scanArchive } from "../src/archive/scan-archive.js";
import { temporaryFolder } from "./embedded-place.js";

const RUN_99 = "2VznWE2i";
const RUN_8452 = "03KOE60u";
const GREATEST = "dxlGgaI3";

/** The text, cut into chunks of so many bytes. */
async function* chunksOf(text: string | Buffer, bytes: number): AsyncGenerator<Buffer> {
  const all = Buffer.from(text as string);
  for (let start = 0; start < all.length; start += bytes) yield Buffer.from(all.subarray(start, start + bytes));
}

function scanOf(
  text: string | Buffer,
  { column, bytes = 1_000 }: { column?: string; bytes?: number } = {},
): Promise<ScanResult> {
  return scanArchive({ source: chunksOf(text, bytes), column, never: [] });
}

function ledgerIdIn(callNumber: string): number {
  const { version, run } = decodeCallNumber(callNumber);
  return ledgerIdOf(version, run);
}

const callNumber = fc.nat(NUMBER_MAX).map((number) => fromNumber(number) as string);
const chunkBytes = fc.integer({ min: 1, max: 64 });

describe("an archive as lines", () => {
  test("yields the greatest run, not the greatest text, and where it stands", async () => {
    expect(RUN_99 > RUN_8452).toBe(true);
    expect(await scanOf(`${RUN_99}\n${RUN_8452}\n00000000\n`)).toEqual({
      callNumberCount: 3,
      blankCount: 0,
      malformedCount: 0,
      malformed: [],
      greatest: { ledgerId: 8452, callNumber: RUN_8452, line: 2 },
    });
  });

  test("counts a later version as the greater, and names the first line of the greatest run", async () => {
    const [low, high] = [
      encodeCallNumber({ version: 1, run: 7, sequence: 5 }),
      encodeCallNumber({ version: 0, run: 900, sequence: 0 }),
    ];
    const again = encodeCallNumber({ version: 1, run: 7, sequence: 6 });
    expect((await scanOf([high, low, again, high].join("\n"))).greatest).toEqual({
      ledgerId: 2 ** 30 + 7,
      callNumber: low,
      line: 2,
    });
  });

  test("finds the greatest of any numbers, however the lines end and the bytes are cut", async () => {
    const line = fc.tuple(callNumber, fc.constantFrom("\n", "\r\n", "  \n", "\n\n", "\n \t\n"));
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { minLength: 1, maxLength: 60 }),
        chunkBytes,
        fc.boolean(),
        async (lines, bytes, isEnded) => {
          const text = lines.map(([number, end]) => number + end).join("");
          const { callNumberCount, malformedCount, blankCount, greatest } = await scanOf(
            isEnded ? text : text.trimEnd(),
            { bytes },
          );
          const ids = lines.map(([number]) => ledgerIdIn(number));
          expect([callNumberCount, malformedCount]).toEqual([lines.length, 0]);
          expect(greatest?.ledgerId).toBe(Math.max(...ids));
          expect(text.split("\n")[(greatest?.line as number) - 1]?.trim()).toBe(greatest?.callNumber);
          const blanks = text
            .trimEnd()
            .split("\n")
            .filter((one) => one.trim() === "").length;
          if (!isEnded) expect(blankCount).toBe(blanks);
        },
      ),
      { numRuns: 300 },
    );
  });

  test.each([
    ["white space around it", `\t ${RUN_99} \r\n`],
    ["a path that ends with it", `/message/${RUN_99}\n`],
    ["a URL that ends with it", `https://lists.example.org/message/${RUN_99}`],
    ["the mark of UTF-8 in front", `\ufeff${RUN_99}\n`],
  ])("takes a call number with %s", async (_, text) => {
    for (const bytes of [1, 2, 1_000]) {
      expect(await scanOf(text, { bytes })).toMatchObject({
        callNumberCount: 1,
        malformedCount: 0,
        greatest: { callNumber: RUN_99, ledgerId: 99, line: 1 },
      });
    }
  });

  test.each([
    ["one character less", "2VznWE2", '"2VznWE2" has 7 characters'],
    ["a field behind it", `${RUN_99},1`, "10 characters"],
    ["two call numbers", `${RUN_99} ${RUN_99}`, "17 characters"],
    ["what stands for nothing", "zzzzzzzz", "greatest call number"],
    ["a wrong character", "2Vzn-E2i", "character 5"],
    ["a letter that is no ASCII", "2VznWE\u00fci", "character 7"],
    ["a sentence that ends with a path", `see the page /message/${RUN_99}`, "a call number has 8"],
    ["a slash behind it", `https://x/message/${RUN_99}/`, '"" has 0 characters'],
    ["a question behind it", `https://x/message/${RUN_99}?page=2`, "15 characters"],
    ["a question that ends with it", `https://x/?m=${RUN_99}`, "11 characters"],
    ["a backslash before it", `x\\${RUN_99}`, "10 characters"],
    ["a URL that ends with something else", "https://x/message/zzzzzzzz", "at the end of"],
    ["a line without an end", "x".repeat(70_000), "longer than 65536 bytes"],
    ["a URL as long as a book", `${"x".repeat(70_000)}/${RUN_99}`, "longer than 65536 bytes"],
  ])("tells of %s by its line, and reads on", async (_, text, why) => {
    for (const bytes of [100, 1_048_576]) {
      const result = await scanOf(`${RUN_8452}\n\n${text}\n${RUN_99}\n`, { bytes });
      expect(result).toMatchObject({
        callNumberCount: 2,
        blankCount: 1,
        malformedCount: 1,
        greatest: { ledgerId: 8452 },
      });
      expect(result.malformed).toEqual([{ line: 3, why: expect.stringContaining(why) }]);
    }
  });

  test("shows the first few that are malformed, counts all, and lets nothing through that a terminal would obey", async () => {
    const { malformedCount, malformed } = await scanOf("\u001b[31mred\u202e\n".repeat(1_000));
    expect(malformedCount).toBe(1_000);
    expect(malformed.map(({ line }) => line)).toEqual([1, 2, 3, 4, 5]);
    // oxlint-disable-next-line no-control-regex
    expect(malformed.map(({ why }) => why).join("")).not.toMatch(/[\u001b\u202e]/);
  });

  test.each(["", "\n\n", "\ufeff"])("finds nothing in %j", async (text) => {
    expect(await scanOf(text)).toMatchObject({ callNumberCount: 0, malformedCount: 0, greatest: undefined });
  });

  test.each([
    ["UTF-16", Buffer.from(`\ufeff${RUN_99}`, "utf16le"), "iconv"],
    ["compressed", Buffer.from("1f8b080000000000", "hex"), "gzip -dc"],
    ["SQLite on standard input", Buffer.from("SQLite format 3\0....."), "give its path"],
  ])("refuses what is %s, and says what to do", async (_, bytes, remedy) => {
    for (const cut of [1, 1_000]) {
      const refused = scanArchive({ source: chunksOf(bytes, cut), column: undefined, never: [] });
      await expect(refused).rejects.toThrow(ArchiveError);
      await expect(refused).rejects.toThrow(remedy);
    }
  });
});

describe("an archive as CSV", () => {
  test("finds the column by its name or, without a row of names, by its number", async () => {
    const rows = `${RUN_99},ann\n${RUN_8452},bob\n`;
    const found = { callNumberCount: 2, malformedCount: 0 };
    expect(await scanOf(`number,name\n${rows}`, { column: "number" })).toMatchObject({
      ...found,
      greatest: { ledgerId: 8452, line: 3 },
    });
    expect(await scanOf(`\ufeff"number",name\r\n${rows}`, { column: "number" })).toMatchObject(found);
    expect(await scanOf(rows, { column: "1" })).toMatchObject({ ...found, greatest: { ledgerId: 8452, line: 2 } });
    expect(await scanOf(`ann,${RUN_99}`, { column: "2" })).toMatchObject({ callNumberCount: 1 });
  });

  test("reads no row of names where a number is given: a first row of numbers would be lost", async () => {
    expect(await scanOf(`number\n${RUN_99}\n`, { column: "1" })).toMatchObject({
      malformed: [{ line: 1, why: expect.stringContaining('"number"') }],
    });
  });

  test("reads what RFC 4180 writes, wherever the bytes are cut: commas, quotes and line ends within quotes", async () => {
    const text = fc
      .array(fc.constantFrom('"', ",", "\n", "\r\n", "a", "ü", " ", RUN_99), { maxLength: 8 })
      .map((parts) => parts.join(""));
    const quoted = (field: string) => `"${field.replaceAll('"', '""')}"`;
    const row = fc.tuple(text, fc.tuple(callNumber, fc.boolean()), text);
    await fc.assert(
      fc.asyncProperty(
        fc.array(row, { minLength: 1, maxLength: 30 }),
        chunkBytes,
        fc.constantFrom("\n", "\r\n"),
        async (rows, bytes, end) => {
          const lines = rows.map(([before, [number, isQuoted], behind]) =>
            [quoted(before), isQuoted ? quoted(number) : number, quoted(behind)].join(","),
          );
          const csv = `${['"subject, ""quoted"""', "call number", "body"].join(",")}${end}${lines.join(end)}`;
          const { callNumberCount, malformedCount, greatest } = await scanOf(csv, { column: "call number", bytes });
          expect([callNumberCount, malformedCount]).toEqual([rows.length, 0]);
          const ids = rows.map(([, [number]]) => ledgerIdIn(number));
          expect(greatest?.ledgerId).toBe(Math.max(...ids));
          const before = csv.slice(0, csv.indexOf(lines[ids.indexOf(Math.max(...ids))] as string));
          expect(greatest?.line).toBeLessThanOrEqual(before.split("\n").length);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("counts lines of the file, so that an editor finds the row", async () => {
    const csv = `id,body,number\n1,"one\ntwo\nthree",${RUN_99}\n2,"x",oops\n3,y,${RUN_8452}\n`;
    expect(await scanOf(csv, { column: "number" })).toMatchObject({
      callNumberCount: 2,
      malformed: [{ line: 5, why: expect.stringContaining("oops") }],
      greatest: { ledgerId: 8452, line: 6 },
    });
  });

  test.each([
    ["too few fields", "1,x", "has 2 fields only"],
    ["one field", "1", "has 1 field only"],
    ["text behind the quotes", `1,x,"${RUN_99}"0`, "quote where none may be"],
    ["a quote within a bare field", `1,x,${RUN_99}"`, "quote where none may be"],
    ["a space before the quotes", `1,x, "${RUN_99}"`, "quote where none may be"],
    ["two call numbers", `1,x,${RUN_99} ${RUN_8452}`, "17 characters"],
    ["a field as long as a message", `1,x,"${"y,\n".repeat(5_000)}"`, "has 15000 bytes"],
  ])("tells of a row with %s, and reads on", async (_, row, why) => {
    const result = await scanOf(`id,body,number\n${row}\n2,y,${RUN_99}\n`, { column: "number" });
    expect(result).toMatchObject({ callNumberCount: 1, malformedCount: 1, greatest: { ledgerId: 99 } });
    expect(result.malformed).toEqual([{ line: 2, why: expect.stringContaining(why) }]);
  });

  test("passes over empty rows and empty fields", async () => {
    const csv = `id,number\r\n\r\n1,\r\n2,""\r\n3,${RUN_99}\r\n\r\n`;
    expect(await scanOf(csv, { column: "number" })).toMatchObject({
      callNumberCount: 1,
      blankCount: 4,
      malformedCount: 0,
    });
  });

  test.each([
    ["id,number\n1,x\n", "nummer", 'no column is called "nummer"; the first row has "id", "number"'],
    ["", "number", "the first row has nothing"],
    ["number,number\n", "number", "more than one column is called"],
    [`id,number\n1,"${RUN_99}\n2,${RUN_8452}\n`, "number", "begins in line 2 never ends"],
  ])("refuses %j for column %s", async (csv, column, why) => {
    await expect(scanOf(csv, { column })).rejects.toThrow(why);
  });

  test("keeps no more names of a first row than a table can have", async () => {
    const scanning = scanOf(`${",".repeat(40_000)}\n`, { column: "number" });
    await expect(scanning).rejects.toThrow("its first row has more than 32767 fields: it is no row of names");
  });
});

describe("an archive in SQLite", () => {
  async function databaseWith(statements: string): Promise<string> {
    const path = join(await temporaryFolder(tmpdir()), "archive.sqlite");
    const database = new DatabaseSync(path);
    database.exec(statements);
    database.close();
    return path;
  }
  const scanFile = (source: string, column: string | undefined, never: string[] = []) =>
    scanArchive({ source, column, never });

  test("yields the greatest run of a column, kept as text or as a number", async () => {
    const path = await databaseWith(
      `CREATE TABLE messages (call_number TEXT, compact INTEGER); CREATE INDEX by_number ON messages (call_number);
       INSERT INTO messages VALUES ('${RUN_99}', ${toNumber(RUN_99)}), ('${RUN_8452}', ${toNumber(RUN_8452)}), (NULL, NULL);
       CREATE VIEW shown AS SELECT 'https://x/message/' || call_number AS url FROM messages WHERE call_number IS NOT NULL;`,
    );
    for (const column of ["messages.call_number", "messages.compact", "MESSAGES.Call_Number"]) {
      expect(await scanFile(path, column)).toEqual({
        callNumberCount: 2,
        blankCount: 1,
        malformedCount: 0,
        malformed: [],
        greatest: { ledgerId: 8452, callNumber: RUN_8452, line: null },
      });
    }
    expect(await scanFile(path, "shown.url")).toMatchObject({ callNumberCount: 2, greatest: { ledgerId: 8452 } });
  });

  test("tells of values that are no call numbers", async () => {
    const path = await databaseWith(
      `CREATE TABLE "my ""messages""" ("the number"); INSERT INTO "my ""messages""" VALUES
       ('${RUN_99}'), ('oops'), (-1), (${NUMBER_MAX + 1}), (1.5), (x'00'), ('${"x".repeat(5_000)}'), ('2VznWE2${"\u0169"}'), (${toNumber(GREATEST)});`,
    );
    const { malformedCount, callNumberCount, greatest } = await scanFile(path, 'my "messages".the number');
    expect([callNumberCount, malformedCount]).toEqual([2, 7]);
    expect(greatest?.callNumber).toBe(GREATEST);
  });

  test.each([
    [undefined, "--scan-column TABLE.COLUMN"],
    ["call_number", "--scan-column TABLE.COLUMN"],
    ["letters.call_number", 'no table "letters", but "messages"'],
    ["messages.abcdefgh", 'no column "abcdefgh", but "call_number"'],
  ])("refuses the column %s, and says what there is", async (column, why) => {
    const path = await databaseWith(`CREATE TABLE messages (call_number); INSERT INTO messages VALUES ('${RUN_99}')`);
    await expect(scanFile(path, column)).rejects.toThrow(why);
  });

  test("refuses numbers that no double can hold, and files that are damaged", async () => {
    const path = await databaseWith(`CREATE TABLE messages (n); INSERT INTO messages VALUES (9223372036854775807)`);
    await expect(scanFile(path, "messages.n")).rejects.toThrow(ArchiveError);
    const damaged = join(await temporaryFolder(tmpdir()), "damaged.sqlite");
    await writeFile(damaged, `SQLite format 3\0${"x".repeat(5_000)}`);
    await expect(scanFile(damaged, "messages.n")).rejects.toThrow(ArchiveError);
  });

  test("never opens a file of the store, by whatever name", async () => {
    const path = await databaseWith("CREATE TABLE messages (n)");
    await expect(scanFile(path, "messages.n", [`${path}-none`, path])).rejects.toThrow("of the store itself");
  });

  test("says of a file that is not there that it is not there", async () => {
    await expect(scanFile("/nonexistent/archive", undefined)).rejects.toThrow(/ENOENT/);
    await expect(scanFile(tmpdir(), undefined)).rejects.toThrow(/EISDIR/);
  });
});
