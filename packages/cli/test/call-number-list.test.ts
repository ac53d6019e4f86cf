/** `recover --numbers` reads a list of call numbers, and guesses nothing. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { type CallNumberList, floorOf, readCallNumberList } from "../src/commands/recover.js";

const RUN_99 = "2VznWE2i";
const RUN_8452 = "03KOE60u";

async function listed(text: string): Promise<CallNumberList> {
  const path = join(await folderForTest(), "numbers.txt");
  writeFileSync(path, text);
  return readCallNumberList(path);
}

test("the greatest run of a list is the floor, wherever it is", async () => {
  const { callNumberCount, greatest } = await listed(`${RUN_99}\n${RUN_8452}\n${RUN_99}\n`);
  expect([callNumberCount, greatest]).toEqual([3, { ledgerId: 8452, callNumber: RUN_8452, line: 2 }]);
  const [early, late] = [
    { version: 0, run: 2 ** 30 - 1, sequence: 0 },
    { version: 1, run: 0, sequence: 0 },
  ].map(encodeCallNumber);
  const ofVersions = await listed(`${late}\n${early}\n`);
  expect(ofVersions.greatest.ledgerId).toBe(2 ** 30);
  expect(floorOf(ofVersions)).toMatchObject({
    from: expect.stringMatching(`^call number ${late} \\(line 1 of /.*\\)$`),
    ledgerId: 2 ** 30,
  });
});

test("blank lines and white space around a call number are ignored, and the last line needs no end", async () => {
  const { callNumberCount, greatest } = await listed(`\uFEFF${RUN_99}\r\n\r\n \t\n  ${RUN_8452}\t`);
  expect([callNumberCount, greatest.line]).toEqual([2, 4]);
});

test("call numbers are read across the chunks of a long list", async () => {
  const filler = `${RUN_99}\n`.repeat(50_000);
  const { callNumberCount, greatest } = await listed(`${filler}${RUN_8452}\n${filler}`);
  expect([callNumberCount, greatest.line]).toEqual([100_001, 50_001]);
});

test.each([
  ["a word", "oops", '"oops" has 4 characters'],
  ["a text above the greatest call number", "zzzzzzzz", '"zzzzzzzz"'],
  ["two call numbers", `${RUN_99} ${RUN_8452}`, "has 17 characters"],
  ["a URL", `https://lists.example.org/${RUN_99}`, "https://lists"],
  ["a database", "SQLite format 3\0", "SQLite format 3"],
])("a list with %s in a line is rejected with the line and its text", async (_, line, why) => {
  const list = listed(`${RUN_99}\n\n${line}\n${RUN_8452}\n`);
  await expect(list).rejects.toMatchObject({ code: "numbers_invalid" });
  await expect(list).rejects.toThrow(/^line 3 of \S+ is not a call number: /);
  await expect(list).rejects.toThrow(why);
});

test.each(["", "\n \r\n"])("a list without a call number (%j) is rejected", async (text) => {
  const list = listed(text);
  await expect(list).rejects.toMatchObject({ code: "numbers_invalid" });
  await expect(list).rejects.toThrow("has no call number");
});

test("a list that can't be read is rejected", async () => {
  for (const [path, why] of [
    ["/nonexistent/list", /ENOENT/],
    ["/", /EISDIR/],
  ] as const) {
    const list = readCallNumberList(path);
    await expect(list).rejects.toMatchObject({ code: "numbers_invalid" });
    await expect(list).rejects.toThrow(why);
  }
});

test("a line that has no end is rejected before it fills the memory", async () => {
  await expect(listed("x".repeat(2_000_000))).rejects.toThrow(/^line 1 of .* has no end$/);
});
