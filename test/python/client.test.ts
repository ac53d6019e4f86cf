/** The Python client: its own tests, and what both languages must do alike. Guarantees: G9 (docs/guarantees.md). */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { callNumberIn, ERROR_RULES, STOPPING_CODES } from "@callnumber/protocol/api";
import { CallNumberError, decodeCallNumber, fromNumber, NUMBER_MAX, toNumber } from "@callnumber/protocol/codec";
import { describe, expect, inject, test } from "vitest";
import { seededBelow } from "../faults/seeded-random.js";
import { REPOSITORY } from "../processes/command.js";
import { drawn, sized } from "../size-of-run.js";
import { noPython, PYTHON_CLIENT, python } from "./python.js";

const read = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");
const printed = async (expression: string) =>
  JSON.parse((await python(["-c", `import json, callnumber.errors as e; print(json.dumps(${expression}))`])).stdout);

/** A call that does not wait, a client of one run, and a copy that stops: the Python client has none of them. */
const NOT_IN_PYTHON = new Set(["no_run_available", "sequence_exhausted", "process_cloned"]);

const OUTCOMES = `
import json, sys
from callnumber import call_number_in, decode, to_number
def outcome(call, text):
    try:
        return call(text)
    except ValueError as error:
        return [error.code, str(error), getattr(error, "candidates", None), error.position]
def parts(text):
    return decode(text)._asdict()
print(json.dumps([[outcome(call, text) for call in (parts, to_number, call_number_in)] for text in json.load(sys.stdin)]))
`;

function outcome(call: (text: string) => unknown, text: string): unknown {
  try {
    return call(text);
  } catch (error) {
    if (!(error instanceof CallNumberError)) throw error;
    const { code, message, position = null } = error;
    return [code, message, (error as { candidates?: unknown }).candidates ?? null, position];
  }
}

describe.skipIf(noPython)("the Python client", () => {
  const modules = readdirSync(join(PYTHON_CLIENT, "tests")).filter((name) => /^test_\w+\.py$/.test(name));

  test("the Python client has tests of its own", () => {
    expect(modules.sort()).toEqual(["test_client.py", "test_codec.py", "test_faults.py", "test_forks.py"]);
  });

  test.each(drawn(modules, 4, inject("seed")))("%s passes", async (name) => {
    const { status, stderr } = await python(["-m", "unittest", name.replace(/\.py$/, "")]);
    expect(stderr).toMatch(/^Ran [1-9]\d* tests? in .*\n\nOK\b/m);
    expect(status).toBe(0);
  });

  test("the Python client knows the codes of the API and of a client, and what each means for it", async () => {
    const ofClient = [...read("packages/protocol/src/error-codes.ts").matchAll(/^ {2}\| "([a-z_]+)"/gm)].map(
      ([, code]) => code as string,
    );
    const known = [...Object.keys(ERROR_RULES), ...ofClient].filter((code) => !NOT_IN_PYTHON.has(code));
    expect(await printed("sorted(e.CODES)")).toEqual(known.sort());
    const later = Object.entries(ERROR_RULES).filter(([, { retry }]) => retry === "later");
    const retried = ["coordinator_unreachable", ...later.map(([code]) => code)];
    expect(await printed("sorted(e.RETRIED_CODES)")).toEqual(retried.sort());
    expect(await printed("sorted(e.STOPPING_CODES)")).toEqual([...STOPPING_CODES].sort());
  });

  test("the Python client has the version of the other packages", () => {
    const { version } = JSON.parse(read("packages/client/package.json")) as { version: string };
    expect(read("clients/python/pyproject.toml")).toContain(`\nversion = "${version}"\n`);
    expect(read("clients/python/LICENSE")).toBe(read("LICENSE"));
  });

  test("its README names all that the package exports", async () => {
    const script = "import callnumber; print(*callnumber.__all__)";
    const names = (await python(["-c", script])).stdout.trim().split(" ");
    expect(names.length).toBeGreaterThan(10);
    const readme = read("clients/python/README.md");
    expect(names.filter((name) => !new RegExp(`\`[^\`\n]*\\b${name}\\b`).test(readme))).toEqual([]);
  });

  test("texts drawn by the seed are decoded, found and rejected as in TypeScript", async () => {
    const random = seededBelow(inject("seed"));
    const numbers = Array.from({ length: 20 }, () => fromNumber(random(2 ** 31) * 2 ** 16));
    const places = ["https://lists.example.org/", "message/", "/", "?from=", "#", " ", "%2F", "%252F", "%E9"];
    const others = [
      "archives",
      "9NKUO8",
      "zzzzzzzz",
      "2VznWE2_",
      "<",
      ".",
      "é",
      "\u001b",
      "\n",
      '"',
      "MESSAGE/",
      "http://",
    ];
    const pieces = [...numbers, ...places, ...places, ...others];
    const draw = () => Array.from({ length: 1 + random(6) }, () => pieces[random(pieces.length)]).join("");
    const texts = [...numbers, fromNumber(NUMBER_MAX), "", ...Array.from({ length: sized(3_000, 30_000) }, draw)];
    const { stdout, stderr } = await python(["-c", OUTCOMES], {}, JSON.stringify(texts));
    expect(stderr).toBe("");
    const inPython = JSON.parse(stdout) as readonly unknown[];
    const calls = [decodeCallNumber, toNumber, callNumberIn];
    const inTypeScript = texts.map((text) => calls.map((call) => outcome(call, text)));
    const different = texts
      .map((text, index) => [text, inPython[index], inTypeScript[index]] as const)
      .filter(([, one, other]) => JSON.stringify(one) !== JSON.stringify(other));
    expect(different).toEqual([]);
  });
});
