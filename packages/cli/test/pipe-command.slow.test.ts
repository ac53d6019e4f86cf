/** `callnumber decode -` and `encode -`: every line is answered by itself, wherever the pipe cuts it and whatever stands beside it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type CallNumberParts,
  decodeCallNumber,
  encodeCallNumber,
  fromNumber,
  NUMBER_MAX,
  RUN_MAX,
} from "@callnumber/protocol/codec";
import { expect, inject, test } from "vitest";
import { seededRandom } from "../../../test/faults/seeded-random.js";
import { callnumber, type Finished, folderForTest, REPOSITORY, shell } from "../../../test/processes/command.js";

const COMMAND = join(REPOSITORY, "packages", "cli", "bin", "callnumber.js");
/** What a pipe hands over at once is 64 KiB: this is cut some dozens of times, at every place of a line. */
const LINE_COUNT = 300_000;

interface Line {
  readonly text: string;
  /** Undefined for a bad line. */
  readonly answer: string | undefined;
  readonly answerAsJson: string | undefined;
}

test.each(["decode", "encode"] as const)("%s answers each of many lines by itself, the bad ones too", async (verb) => {
  const random = seededRandom(inject("seed"));
  const lines = Array.from({ length: LINE_COUNT }, () => LINES[verb](random));
  const input = lines.map(({ text }) => `${text}${random() < 0.2 ? "\r\n" : "\n"}`).join("");
  const badCount = lines.filter(({ answer }) => answer === undefined).length;
  expect(badCount).toBeGreaterThan(1_000);

  const plain = await callnumber([verb, "-"], { input });
  expect(plain.code).toBe(1);
  mustBeSame(plain.stdout, lines.flatMap(({ answer }) => answer ?? []).join("\n"));
  const said = plain.stderr.trimEnd().split("\n");
  expect(said.map((text) => Number(/^line (\d+): ./.exec(text)?.[1]))).toEqual(
    lines.flatMap(({ answer }, index) => (answer === undefined ? [index + 1] : [])),
  );

  const asJson = await callnumber([verb, "-", "--json"], { input });
  mustBeSame(asJson.stdout, lines.flatMap(({ answerAsJson }) => answerAsJson ?? []).join("\n"));
  expect(asJson.stderr).toBe(plain.stderr);
});

test("what is wrong with a line is said in its own characters, although the pipe cut one of them", async () => {
  const { code, stdout, stderr } = await inPieces(
    ["decode", "-"],
    [..."2VznWE2i\n2VznWE2ü\r\n2Vzn"].flatMap((character) =>
      [...Buffer.from(character)].map((byte) => Buffer.of(byte)),
    ),
  );
  expect({ code, stdout }).toEqual({ code: 1, stdout: "0,99,345\n" });
  expect(stderr).toBe(
    `line 2: ${messageOf(() => decodeCallNumber("2VznWE2ü"))}\nline 3: ${messageOf(() => decodeCallNumber("2Vzn"))}\n`,
  );
});

test("a good line has its answer before the next line has come", async () => {
  const child = spawn(process.execPath, [COMMAND, "decode", "-"]);
  child.stdin.write("2VznWE2i\n03KO");
  expect(String((await once(child.stdout, "data"))[0])).toBe("0,99,345\n");
  child.stdin.end("E60u");
  expect(String((await once(child.stdout, "data"))[0])).toBe("0,8452,11827\n");
  expect(await once(child, "close")).toEqual([0, null]);
});

test("a line without end is refused; those before it are answered", async () => {
  const { code, stdout, stderr } = await callnumber(["decode", "-"], { input: `2VznWE2i\n${"0".repeat(1_100_000)}` });
  expect({ code, stdout }).toEqual({ code: 2, stdout: "0,99,345\n" });
  expect(stderr).toContain("line 2 of standard input has no end");
});

test("a reader that is slow gets every answer", async () => {
  const path = join(await folderForTest(), "numbers.txt");
  writeFileSync(path, "2VznWE2i\n".repeat(LINE_COUNT));
  const { code, stdout } = await shell(`callnumber decode - < ${path} | { sleep 1; sort | uniq -c; }`);
  expect({ code, stdout: stdout.trim() }).toEqual({ code: 0, stdout: `${LINE_COUNT} 0,99,345` });
});

const LINES = { decode: lineToDecode, encode: lineToEncode } as const;
const NO_CALL_NUMBERS = ["", "zzzzzzzz", "2VznWE2", "2VznWE2i ", "2VznWE2é", "数".repeat(8), "x".repeat(200)];
const NO_PARTS = [
  "",
  "0,1",
  "0,1,2,3",
  "8,1,1",
  `0,${RUN_MAX + 1},1`,
  "0,1,16384",
  "0,,1",
  "-1,1,1",
  "0,1,1x",
  "0,12345678901,1",
];

function lineToDecode(random: () => number): Line {
  if (random() < 0.02) return bad(oneOf(NO_CALL_NUMBERS, random));
  const text = fromNumber(Math.floor(random() * (NUMBER_MAX + 1)));
  const { version, run, sequence } = decodeCallNumber(text);
  return { text, answer: `${version},${run},${sequence}`, answerAsJson: inJson({ version, run, sequence }) };
}

function lineToEncode(random: () => number): Line {
  if (random() < 0.02) return bad(oneOf(NO_PARTS, random));
  // Of every length, from one digit on.
  const run = Math.floor(2 ** (30 * random()));
  const parts = { version: Math.floor(8 * random()), run, sequence: Math.floor(16_384 * random()) };
  const texts = [parts.version, parts.run, parts.sequence];
  // What people write and programs don't: spaces, and more zeros than a number has.
  const text = texts.join(random() < 0.1 ? " , " : random() < 0.1 ? ",00000" : ",");
  return { text, answer: encodeCallNumber(parts), answerAsJson: inJson(parts) };
}

function bad(text: string): Line {
  return { text, answer: undefined, answerAsJson: undefined };
}

function inJson(parts: CallNumberParts): string {
  return JSON.stringify({ callNumber: encodeCallNumber(parts), ...parts });
}

/** A comparison of megabytes that fails with the first line that differs. */
function mustBeSame(found: string, expected: string): void {
  const expectedLines = expected.split("\n");
  const foundLines = found.trimEnd().split("\n");
  const index = expectedLines.findIndex((line, place) => line !== foundLines[place]);
  if (index >= 0) expect(`${index + 1}: ${foundLines[index]}`).toBe(`${index + 1}: ${expectedLines[index]}`);
  expect(foundLines).toHaveLength(expectedLines.length);
}

/** Each piece in a write of its own, with time for the reader in between. */
async function inPieces(parameters: readonly string[], pieces: readonly Buffer[]): Promise<Finished> {
  const child = spawn(process.execPath, [COMMAND, ...parameters]);
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      output[name] += text;
    });
  }
  const ended = once(child, "close");
  for (const piece of pieces) {
    child.stdin.write(piece);
    await sleep(20);
  }
  child.stdin.end();
  const [code] = (await ended) as [number | null];
  return { code, ...output };
}

function messageOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("nothing was thrown");
}

function oneOf<T>(values: readonly T[], random: () => number): T {
  return values[Math.floor(random() * values.length)] as T;
}
