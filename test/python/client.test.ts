/**
 * The Python client: its own tests, and what both languages must do alike. Skipped where there is no Python of 3.9 or later.
 * Guarantees: G9 (docs/guarantees.md).
 */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { callNumberIn, ERROR_RULES } from "@callnumber/protocol/api";
import { CallNumberError, decodeCallNumber, fromNumber, NUMBER_MAX, toNumber } from "@callnumber/protocol/codec";
import { describe, expect, inject, test } from "vitest";
import { seededBelow } from "../faults/seeded-random.js";
import { REPOSITORY, serve, serveProcess } from "../processes/command.js";
import { sized } from "../size-of-run.js";
import { callnumber, folderForTest } from "../processes/command.js";
import { python, PYTHON_CLIENT, withoutPython } from "./python.js";

const noPython = withoutPython();
if (noPython !== undefined) console.log(`the tests of the Python client are skipped: ${noPython}`);
const read = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");

describe.skipIf(noPython !== undefined)("the Python client", () => {
  const modules = readdirSync(join(PYTHON_CLIENT, "tests")).filter((name) => /^test_\w+\.py$/.test(name));

  test("its tests are found", () => {
    expect(modules).toEqual(expect.arrayContaining(["test_client.py", "test_codec.py", "test_faults.py", "test_forks.py"]));
  });

  test.concurrent.each(modules)("%s passes", async (name) => {
    const { status, stderr } = await python(["-m", "unittest", name.replace(/\.py$/, "")], {}, join(PYTHON_CLIENT, "tests"));
    expect(stderr).toMatch(/^Ran [1-9]\d* tests? in .*\n\nOK\b/m);
    expect(status).toBe(0);
  });

  test("it knows the error codes and retry rules of the API, and those that a client finds itself", async () => {
    const script = "import json, callnumber.errors as e; print(json.dumps([sorted(e.CODES), sorted(e.RETRIED_CODES)]))";
    const [codes, retried] = JSON.parse((await python(["-c", script])).stdout) as [string[], string[]];
    const ofClient = [...read("packages/protocol/src/error-codes.ts").matchAll(/^ {2}\| "([a-z_]+)"/gm)].map(([, code]) => code);
    // A call without waiting, a client of one run and a copy that stops are not in the Python client.
    const absent = ["no_run_available", "sequence_exhausted", "process_cloned"];
    const expected = [...Object.keys(ERROR_RULES), ...ofClient].filter((code) => !absent.includes(code as string));
    expect(codes).toEqual(expected.sort());
    const later = Object.entries(ERROR_RULES).filter(([, { retry }]) => retry === "later");
    expect(retried).toEqual(["coordinator_unreachable", ...later.map(([code]) => code)].sort());
    const stopping = /STOPPING_CODES[^[]*\[([^\]]*)\]/.exec(read("packages/client/src/lease-buffer.ts"))?.[1] ?? "";
    const script2 = "import json, callnumber.errors as e; print(json.dumps(sorted(e.STOPPING_CODES)))";
    expect(JSON.parse((await python(["-c", script2])).stdout)).toEqual([...stopping.matchAll(/\w+/g)].map(String).sort());
  });

  test("texts drawn by the seed are decoded, found and rejected as in TypeScript", async () => {
    const random = seededBelow(inject("seed"));
    const numbers = Array.from({ length: 20 }, () => fromNumber(random(2 ** 31) * 2 ** 16));
    const words = ["https://lists.example.org/", "message/", "/", "?from=", "#", " ", "%2F", "%252F", "%E9", "archives", "9NKUO8"];
    const others = ["zzzzzzzz", "Download", "2VznWE2_", "<", ">", ".", "é", "\u001b", "\n", '"', "see", "MESSAGE/", "http://"];
    const pieces = [...numbers, ...words, ...words, ...others];
    const draw = () => Array.from({ length: 1 + random(6) }, () => pieces[random(pieces.length)]).join("");
    const texts = [...numbers, fromNumber(NUMBER_MAX), "", ...Array.from({ length: sized(3_000, 30_000) }, draw)];
    const script = `
import json, sys
from callnumber import call_number_in, decode, to_number
def outcome(call, text):
    try:
        return call(text)
    except ValueError as error:
        return [error.code, str(error), getattr(error, "candidates", None), error.position]
def parts(text):
    return decode(text)._asdict()
print(json.dumps([[outcome(call, text) for call in (parts, to_number, call_number_in)] for text in json.load(sys.stdin)]))`;
    const outcome = (call: (text: string) => unknown, text: string): unknown => {
      try {
        return call(text);
      } catch (error) {
        if (!(error instanceof CallNumberError)) throw error;
        const { code, message, position = null } = error;
        return [code, message, (error as { candidates?: unknown }).candidates ?? null, position];
      }
    };
    const run = spawnPython(["-c", script], JSON.stringify(texts));
    const inPython = JSON.parse(run) as unknown[];
    const inTypeScript = texts.map((text) => [decodeCallNumber, toNumber, callNumberIn].map((call) => outcome(call, text)));
    const plain = (value: unknown) => JSON.stringify(value);
    const different = texts.filter((_, index) => plain(inPython[index]) !== plain(inTypeScript[index]));
    expect(different.map((text) => [text, inPython[texts.indexOf(text)], inTypeScript[texts.indexOf(text)]])).toEqual([]);
  });
});

function spawnPython(words: readonly string[], input: string): string {
  const { status, stdout, stderr } = spawnSync("python3", words, {
    input,
    encoding: "utf8",
    maxBuffer: 2 ** 28,
    env: { ...process.env, PYTHONPATH: join(PYTHON_CLIENT, "src"), PYTHONIOENCODING: "utf8" },
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}
