/** `callnumber schemes` with `list`, `parse` and `odds` as a user runs it who chooses a numbering scheme, or found a number. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { SCHEMES } from "@callnumber/schemes";
import { describe, expect, test } from "vitest";
import { callnumber, REPOSITORY, type RunOptions, shell, startOnTerminal } from "../../../test/processes/command.js";

const NAMES = SCHEMES.map(({ name }) => name);
/** As wide as most terminals are. */
const COLUMNS = 80;
const CONTROL_SEQUENCE = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "g");

const schemes = (words: string, options: RunOptions = {}) => callnumber(["schemes", ...words.split(" ")], options);
const parse = (...texts: readonly string[]) => callnumber(["schemes", "parse", ...texts]);

interface Listed {
  readonly name: string;
  readonly repeatChance: number;
  readonly guessChance: number;
  readonly neighborChance: number;
  readonly sample: { readonly text: string; readonly encodings: Readonly<Record<string, string>> };
}

async function listed(words: string): Promise<{ readonly load: object; readonly schemes: readonly Listed[] }> {
  return JSON.parse((await schemes(`list --json ${words}`.trim())).stdout) as Awaited<ReturnType<typeof listed>>;
}

function tooWide(text: string, columns = COLUMNS): readonly string[] {
  return text.split("\n").filter((line) => line.length > columns);
}

async function onTerminal(columns: number, ...parameters: readonly string[]): Promise<string> {
  const running = startOnTerminal(columns, ...parameters);
  await running.ended();
  return running.output().stdout.replace(CONTROL_SEQUENCE, "").replaceAll("\r\n", "\n");
}

test("schemes without a known sub-command lists them and exits with 2", async () => {
  const bare = await callnumber(["schemes"]);
  expect(bare).toMatchObject({ code: 2, stdout: "" });
  for (const name of ["list", "parse", "generate", "odds", "plan", "simulate"])
    expect(bare.stderr).toContain(`\n  ${name} `);
  expect(await schemes("simulat")).toMatchObject({ code: 2, stderr: expect.stringContaining("mean simulate?") });
});

test("schemes list, parse, odds, plan and simulate print what their page shows, in 80 columns", async () => {
  const page = readFileSync(join(REPOSITORY, "docs/explanation/choosing-a-scheme.md"), "utf8");
  const blocks = page.matchAll(/<!-- output -->\n+```console\n\$ callnumber schemes (.*)\n([^`]*)```/g);
  const shown = [...blocks].map(([, words = "", stdout = ""]) => ({ words, stdout }));
  expect(shown.map(({ words }) => words.split(" ")[0])).toEqual(["list", "parse", "odds", "plan", "simulate"]);
  for (const { words, stdout } of shown) {
    expect(await schemes(words)).toEqual({ code: 0, stdout, stderr: "" });
    expect(tooWide(stdout)).toEqual([]);
  }
});

test.each([
  ["list snowflake", `no scheme "snowflake". The schemes are call-number, ${NAMES[1]}`],
  ["list --only qwertz", 'no scheme "qwertz"'],
  ["list --rate -5/s", "must be above zero and up to 1e15/s, such as 1000/s"],
  ["list --for 10", "must be above zero and up to 1e9y, such as 10y"],
  ["list --nodes 0", "must be a whole number from 1"],
  ["list uuid tickets", "list takes one argument, not 2"],
  ["odds --drawn 0", "must be at least 1"],
  ["odds --space -5", "such as 62^5"],
  ["odds --space 10 --chance 1", "above 0 and below 1"],
  ["odds --space 10 --drawn three", "such as 62^5"],
  ["plan", "plan needs --messages"],
  ["plan --messages 1e9 --years 0", "must be a whole number from 1"],
  ["plan --messages 1e9 --characters 11", "must be a whole number from 4 to 10"],
])("schemes %s is rejected with a message that helps", async (words, message) => {
  expect(await schemes(words)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(message) });
});

describe("callnumber schemes list", () => {
  test("shows one scheme in full", async () => {
    expect((await schemes("list random-base62-5")).stdout).toMatchInlineSnapshot(`
      "random-base62-5
      Five random characters of base62

        random  5 characters  drawn from 0 to 916,132,831

      A sample, field by field, and as it is written
        QNMDu
        random

        base62  QNMDu

      At 1,000 a second from 10 nodes, for 10 years
        size      29.77 bits: 916 million numbers, in 5 characters
        order     numbers are in the order in which they were drawn
        asks for  nothing: every process generates alone
        speed     no bound
        lasts     at 1,000 a second its numbers are used up after 10.6 days
        a repeat  certain among 3.16e11 numbers
        a reader  learns nothing
        a guess   by a person who knows the scheme, but no number; that it was made:
                  certain
        another   named by a person who knows the scheme and one number; that it was
                  made: certain
        fails by  two draws alike: certain among 3.16e11 numbers
                  its end, after 10.6 days
      "
    `);
  });

  test("fits a narrow terminal", async ({ skip }) => {
    if ((await shell("command -v script")).code !== 0) skip("no `script` here, which gives a command a terminal");
    const rows = (await onTerminal(50, "schemes", "list")).split("\n").filter((line) => /^[a-z0-9-]+ /.test(line));
    for (const name of NAMES) expect(rows.filter((line) => line.startsWith(`${name} `))).toHaveLength(3);
    expect(tooWide(rows.join("\n"), 50)).toEqual([]);
    expect(tooWide(await onTerminal(50, "schemes", "list", "twitter-snowflake"), 50)).toEqual([]);
  });

  test("computes the figures of the load in its options", async () => {
    const { load, schemes } = await listed("--rate 30000/day --nodes 2 --for 1d --only random-base62-5");
    expect(load).toEqual({ perSecond: 30_000 / 86_400, nodes: 2, seconds: 86_400 });
    expect(schemes).toHaveLength(1);
    expect(schemes[0]?.repeatChance).toBeCloseTo(0.388_098_608_271, 11);
  });

  test("--only takes names in any way they are written, each once; --json has every figure of each", async () => {
    const { schemes } = await listed("--only uuid,tickets UUID call-number");
    expect(schemes.map(({ name }) => name)).toEqual(["uuid", "tickets", "call-number"]);
    for (const scheme of schemes) {
      expect(scheme).toMatchObject({
        bits: expect.any(Number),
        characters: expect.any(Number),
        order: expect.any(String),
        coordination: expect.any(String),
        reveals: expect.any(Array),
        lastsSeconds: expect.any(Number),
        repeatChance: expect.any(Number),
        guessChance: expect.any(Number),
        neighborChance: expect.any(Number),
        failures: expect.any(Array),
        sample: { text: expect.any(String) },
      });
    }
    expect(schemes[2]).toMatchObject({ bits: 47, characters: 8, perSecondMost: null, clockEndsMs: null });
  });

  test.each(["--rate 1e15/s --nodes 1000000000 --for 1e9y", "--rate 0.001/y --nodes 1 --for 1s"])(
    "shows figures for the load %s",
    async (load) => {
      expect((await schemes(`list ${load}`)).stdout).not.toMatch(/undefined|NaN|Infinity|-\d+ %/);
      const all = (await listed(load)).schemes;
      expect(all).toHaveLength(NAMES.length);
      for (const chance of all.flatMap((each) => [each.repeatChance, each.guessChance, each.neighborChance])) {
        expect(chance).toBeGreaterThanOrEqual(0);
        expect(chance).toBeLessThanOrEqual(1);
      }
    },
  );
});

describe("callnumber schemes parse", () => {
  test("--scheme parses as one scheme only, and shows why the text is none of its numbers", async () => {
    const { stdout } = await parse("--scheme", "twitter-snowflake", "454947766275222906");
    expect(stdout).toMatch(/^454947766275222906 {2}is a number of twitter-snowflake\n/);
    expect(await parse("--scheme", "uuid", "2VznWE2i")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^"2VznWE2i" is not a number of uuid: it is none of: 32 hex digits.*\n$/),
    });
  });

  test("shows in one line why a text is not a number, parses the others, and exits with 1; --json has the reason of each scheme", async () => {
    const { code, stdout, stderr } = await parse("2VznWE2", "2VznWE2i");
    expect(code).toBe(1);
    expect(stdout).toMatch(/^\n?2VznWE2i {2}is/);
    expect(stderr).toBe('"2VznWE2" is not a number of any scheme: no scheme writes 7 characters such as these\n');
    const asJson = await parse("2VznWE2", "--json");
    expect(asJson).toMatchObject({ code: 1, stderr: "" });
    const answer = JSON.parse(asJson.stdout) as { schemes: unknown[]; reasons: Record<string, string> };
    expect(answer.schemes).toEqual([]);
    expect(Object.keys(answer.reasons)).toEqual(NAMES);
  });

  test("escapes what acts on a terminal, and cuts a long text", async () => {
    const { stderr } = await parse(`\u001b[31m\u202e${"0".repeat(100_000)}`);
    expect(stderr).toMatch(/^"\\u001b\[31m\\u\{202e\}0{30,40}…" is not a number of any scheme: .*\n$/);
    expect(stderr.length).toBeLessThan(200);
  });

  test("reads lines with -, prints five columns with tabs or JSON, and reports bad lines", async () => {
    const input = "2VznWE2i\r\nno number\nhttps://x.example/454947766275222906\n";
    expect(await schemes("parse -", { input })).toEqual({
      code: 1,
      stdout:
        "2VznWE2i\tcall-number\tversion=0 run=99 sequence=345\t\tchibrary-3-32-8-4\n" +
        "454947766275222906\tsnowflake-2015\tsign=0 time=108468000000 node=786 sequence=3450\t2018-06-09T10:00:00.000Z\t" +
        "twitter-snowflake mysql-13-6-1\n",
      stderr: 'line 2: "no number" is not a number of any scheme: no scheme writes the character " "\n',
    });
    const asJson = await schemes("parse - --json", { input });
    expect(asJson).toMatchObject({ code: 1, stderr: "" });
    const lines = asJson.stdout.trim().split("\n");
    const isNumber = lines.map((line) => (JSON.parse(line) as { schemes: unknown[] }).schemes.length > 0);
    expect(isNumber).toEqual([true, false, true]);
    const { stderr } = await schemes("parse - --scheme call-number", { input: "2VznWE2i\n2VznWE2\n" });
    expect(stderr).toMatch(/^line 2: "2VznWE2" is not a number of call-number: it is none of/);
  });
});

describe("callnumber schemes odds", () => {
  test("prints the figures in full with --json", async () => {
    const { stdout } = await schemes("odds --json --space 365 --drawn 23 --chance 1%");
    expect(JSON.parse(stdout)).toEqual({
      space: "365",
      drawn: "23",
      chance: expect.closeTo(0.507_297_234_324, 11),
      approximation: expect.closeTo(0.500_001_752_183, 11),
      pairsExpected: expect.closeTo(253 / 365, 12),
      draws: [{ chance: 0.01, drawn: 4 }],
    });
  });

  test("prints certain for more draws than numbers, and only the draws without --drawn", async () => {
    expect((await schemes("odds --space 365 --drawn 366")).stdout).toMatch(/ a repeat +certain\n/);
    const { stdout } = await schemes("odds --space 365 --chance 50%");
    expect(stdout).toBe("365 numbers\n\nDraws until a repeat has a chance of\n  50 %  23\n");
  });
});
