/** `callnumber encode` and `decode`: each other's inverse, also line by line through a pipe, wherever it cuts them. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { expect, test } from "vitest";
import { callnumber, folderForTest, REPOSITORY, shell } from "../../../test/processes/command.js";
import { run } from "../src/run.js";
import { jsonLines, jsonOf } from "./commands-for-test.js";

const asJson = { callNumber: "2VznWE2i", version: 0, run: 99, sequence: 345 };

test("encode and decode are each other's inverse", async () => {
  expect(await callnumber(["encode", "0", "99", "345"])).toEqual({ code: 0, stdout: "2VznWE2i\n", stderr: "" });
  expect(await callnumber(["decode", "2VznWE2i", "dxlGgaI3"])).toEqual({
    code: 0,
    stdout: "0,99,345\n7,1073741823,16383\n",
    stderr: "",
  });
  expect(await jsonOf("decode", "2VznWE2i")).toEqual(asJson);
  expect(await jsonOf("encode", "0", "99", "345")).toEqual(asJson);
});

test("decode finds the call number in a link, and takes none of several", async () => {
  const links = ["<https://lists.example.org/message/2VznWE2i>.", "see 03KOE60u"];
  expect(await callnumber(["decode", ...links])).toMatchObject({ code: 0, stdout: "0,99,345\n0,8452,11827\n" });
  const unclear = await callnumber(["decode", "2VznWE2i or 03KOE60u", "9NKUO8"]);
  expect(unclear).toMatchObject({ code: 1, stdout: "" });
  expect(unclear.stderr).toMatch(/2 call numbers: 2VznWE2i, 03KOE60u.*\n.*Did you mean 009NKUO8\?\n$/);
});

test("encode and decode accept all reference vectors on standard input, with any line ending", async () => {
  const rows = readFileSync(join(REPOSITORY, "packages/protocol/test-vectors/v0.csv"), "utf8").trim().split("\n");
  const vectors = rows.slice(1).map((row) => /^(.*),(.*)$/.exec(row) as RegExpExecArray);
  const [fields, numbers] = [1, 2].map((index) => vectors.map((vector) => vector[index] as string)) as [
    string[],
    string[],
  ];
  const encoded = await callnumber(["encode", "-"], { input: fields.join("\r\n") });
  expect(encoded).toEqual({ code: 0, stdout: `${numbers.join("\n")}\n`, stderr: "" });
  const decoded = await callnumber(["decode", "-"], { input: `${numbers.join("\n")}\n` });
  expect(decoded).toEqual({ code: 0, stdout: `${fields.join("\n")}\n`, stderr: "" });
});

test("a bad line is reported with its number, the rest is answered, and the exit code is 1", async () => {
  const decoded = await callnumber(["decode", "-"], { input: "2VznWE2i\nzzzzzzzz\n\n03KOE60u\n" });
  expect(decoded).toMatchObject({ code: 1, stdout: "0,99,345\n0,8452,11827\n" });
  expect(decoded.stderr).toMatch(/^line 2: .*dxlGgaI3\nline 3: .*0 characters.*\n$/);
  const input = "0,99,345\n0,99\n0,99,16384\n8,0,0\n0,1,2x\n 0,008452 , 11827";
  const encoded = await callnumber(["encode", "-"], { input });
  expect(encoded).toMatchObject({ code: 1, stdout: "2VznWE2i\n03KOE60u\n" });
  expect(encoded.stderr.match(/^line \d+:/gm)).toEqual(["line 2:", "line 3:", "line 4:", "line 5:"]);
});

test("lines are read correctly when the pipe cuts them anywhere, also within a character", async () => {
  const output = { stdout: "", stderr: "" };
  const collect = (name: "stdout" | "stderr") =>
    new PassThrough().on("data", (bytes) => {
      output[name] += bytes;
    });
  const bytes = [...Buffer.from("2VznWE2i\r\n2VznWE2ü\r\n03KOE60u\n2Vzn")].map((byte) => Buffer.of(byte));
  const streams = { stdin: Readable.from(bytes, { objectMode: false }), env: {} };
  const code = await run(["decode", "-"], { ...streams, stdout: collect("stdout"), stderr: collect("stderr") });
  expect([code, output.stdout]).toEqual([1, "0,99,345\n0,8452,11827\n"]);
  expect(output.stderr).toMatch(/^line 2: .*"2VznWE2ü".*\nline 4: .*4 characters.*\n$/);
});

test("a line is answered before the next one has come", async () => {
  const stdin = new PassThrough();
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const ended = run(["decode", "-"], { stdin, stdout, stderr, env: {} });
  stdin.write("2VznWE2i\n03KO");
  await expect.poll(() => stdout.read()?.toString()).toBe("0,99,345\n");
  stdin.end("E60u");
  expect(await ended).toBe(0);
  expect(stdout.read()?.toString()).toBe("0,8452,11827\n");
});

test("a line without end fails after the lines before it are answered", async () => {
  const { code, stdout, stderr } = await callnumber(["decode", "-"], { input: `2VznWE2i\n${"0".repeat(1_100_000)}` });
  expect({ code, stdout }).toEqual({ code: 2, stdout: "0,99,345\n" });
  expect(stderr).toContain("line 2 of standard input has no end");
});

test("a slow reader gets every answer", async () => {
  const numbers = join(await folderForTest(), "numbers.txt");
  writeFileSync(numbers, "2VznWE2i\n".repeat(100_000));
  const { code, stdout } = await shell(`callnumber decode - < ${numbers} | { sleep 1; sort | uniq -c; }`);
  expect({ code, stdout: stdout.trim() }).toEqual({ code: 0, stdout: "100000 0,99,345" });
});

test("with --json each failure of decode and encode is a line of JSON, and the others are answered", async () => {
  const typed = await callnumber(["decode", "bad", "2VznWE2i", "--json"]);
  expect([typed.code, jsonLines(typed.stdout)]).toEqual([1, [asJson]]);
  expect(jsonLines(typed.stderr)).toEqual([{ code: "wrong_length", message: expect.stringContaining('"bad" has 3') }]);
  const lines = await callnumber(["decode", "-", "--json"], { input: "2VznWE2i\nbad\n2VznWE2\u{202e}\n" });
  expect([lines.code, jsonLines(lines.stdout)]).toEqual([1, [asJson]]);
  expect(jsonLines(lines.stderr)).toMatchObject([
    { code: "wrong_length", line: 2 },
    { code: "wrong_character", line: 3 },
  ]);
  expect(lines.stderr).not.toContain("\u{202e}");
  const encoded = await callnumber(["encode", "-", "--json"], { input: "0,99\n0,99,345\n" });
  expect([encoded.code, jsonLines(encoded.stdout)]).toEqual([1, [asJson]]);
  expect(jsonLines(encoded.stderr)).toMatchObject([{ code: "misuse", line: 1 }]);
});
