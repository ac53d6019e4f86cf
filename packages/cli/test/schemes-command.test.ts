/** `callnumber schemes` with `list`, `parse` and `odds` as a user runs it who chooses a numbering scheme, or found a number. */
import { SCHEMES } from "@callnumber/schemes";
import { describe, expect, test } from "vitest";
import { callnumber, type RunOptions, shell, startOnTerminal } from "../../../test/processes/command.js";

/** 1,000 a second from 10 nodes, for 10 years. */
const USUAL_LOAD = { perSecond: 1_000, nodes: 10, seconds: 315_569_520 };
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
  for (const name of ["list", "parse", "mint", "odds", "simulate"]) expect(bare.stderr).toContain(`\n  ${name} `);
  expect(await schemes("simulat")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Did you mean simulate?"),
  });
  expect((await schemes("parse --help")).stdout).toContain("callnumber schemes parse [options]");
});

test.each([
  ["list snowflake", 'no scheme "snowflake". The schemes are call-number,'],
  ["list --only qwertz", `no scheme "qwertz". The schemes are call-number, ${NAMES[1]}`],
  ["list --rate -5/s", "must be above zero and up to 1e15/s, such as 1000/s"],
  ["list --rate many", "must be above zero and up to 1e15/s, such as 1000/s"],
  ["list --for 10", "must be above zero and up to 1e9y, such as 10y"],
  ["list --nodes 0", "must be a whole number from 1"],
  ["list uuid tickets", "too many arguments"],
  ["odds", "--space <numbers>' not specified"],
  ["odds --space 62^5^2", "such as 62^5"],
  ["odds --space 2^99999999", "more than 2^1000"],
  ["odds --space -5", "such as 62^5"],
  ["odds --space 0", "at least 1"],
  ["odds --space 10 --chance 1", "above 0 and below 1"],
  ["odds --space 10 --drawn three", "such as 62^5"],
])("schemes %s is rejected with a message that helps", async (words, message) => {
  expect(await schemes(words)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(message) });
});

describe("callnumber schemes list", () => {
  test("compares every scheme in three tables, none wider than 80 columns, nothing cut short", async () => {
    const { code, stdout, stderr } = await schemes("list");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(tooWide(stdout)).toEqual([]);
    expect(stdout).not.toContain("…");
    expect(stdout).toContain("1,000 a second from 10 nodes, for 10 years");
    const lines = stdout.split("\n");
    for (const { name, facts } of SCHEMES) {
      const rows = lines.filter((line) => line.startsWith(`${name} `)).map((line) => line.split(/\s{2,}/));
      expect(rows).toHaveLength(3);
      const [number, load, reader] = rows as [string[], string[], string[]];
      expect(number).toEqual([name, facts.bits.toFixed(1), String(facts.characters), facts.order, facts.coordination]);
      const [, most, nodes, lasts, repeat] = load;
      expect(most === "no bound").toBe(facts.perSecond === Number.POSITIVE_INFINITY);
      expect(nodes === "no bound").toBe(facts.nodes === Number.POSITIVE_INFINITY);
      if (facts.endsMs !== undefined) expect(lasts).toBe(`until ${new Date(facts.endsMs).toISOString().slice(0, 10)}`);
      expect(repeat === "none").toBe(facts.repeats(USUAL_LOAD) === 0);
      expect(repeat === "certain").toBe(facts.repeats(USUAL_LOAD) === 1);
      const [, reveals, , fails] = reader;
      expect(reveals).toBe(facts.reveals.join(", "));
      expect(fails).toMatch(new RegExp(`^${facts.failures[0]}( \\+${facts.failures.length - 1})?$`));
    }
  });

  test("shows everything on a terminal of 80 columns, and fits a narrow one", async ({ skip }) => {
    if ((await shell("command -v script")).code !== 0) skip("no `script` here, which gives a command a terminal");
    const wide = await onTerminal(COLUMNS, "schemes", "list");
    expect(wide).not.toContain("…");
    const rowsOf = (text: string) => text.split("\n").filter((line) => /^[a-z0-9-]+ /.test(line));
    for (const name of NAMES) expect(rowsOf(wide).filter((line) => line.startsWith(`${name} `))).toHaveLength(3);
    expect(tooWide(rowsOf(await onTerminal(50, "schemes", "list")).join("\n"), 50)).toEqual([]);
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
        repeatChance: expect.any(Number),
        guessChance: expect.any(Number),
        neighborChance: expect.any(Number),
        sample: { text: expect.any(String) },
      });
      expect(Object.keys(scheme)).toEqual(expect.arrayContaining(["perSecondMost", "lastsSeconds"]));
    }
    expect(schemes[2]).toMatchObject({ bits: 47, characters: 8, perSecondMost: null, clockEndsMs: null });
  });

  test.each(SCHEMES)(
    "shows $name in full: its fields, a sample that parses, every encoding, every fact",
    async (scheme) => {
      const { code, stdout } = await schemes(`list ${scheme.name}`);
      expect(code).toBe(0);
      for (const field of scheme.fields) expect(stdout).toContain(`  ${field.name}`);
      const facts = [
        "size",
        "order",
        "asks for",
        "speed",
        "lasts",
        "a repeat",
        "a reader",
        "a guess",
        "another",
        "fails by",
      ];
      for (const label of facts) expect(stdout).toMatch(new RegExp(`^  ${label} +\\S`, "m"));
      if (scheme.facts.failures.includes("clock goes back"))
        expect(stdout.replace(/\s+/g, " ")).toContain("60 s back, it refuses until the clock is where it was");
      expect(stdout).not.toMatch(/undefined|NaN|Infinity|\[object/);
      expect(tooWide(stdout)).toEqual([]);
      const { sample } = (await listed(scheme.name)).schemes[0] as Listed;
      expect(scheme.parse(sample.text).matches).toBe(true);
      for (const [encoding, text] of Object.entries(sample.encodings)) {
        expect(stdout).toContain(text);
        expect(stdout).toContain(`  ${encoding} `);
      }
    },
  );

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

  test("shows the same sample every time: no archive gets it", async () => {
    expect(await schemes("list uuid")).toEqual(await schemes("list uuid"));
  });
});

describe("callnumber schemes parse", () => {
  test.each([
    ["2VznWE2i", "call-number", { version: 0, run: 99, sequence: 345 }, null],
    ["454947766275222906", "snowflake-2015", { node: 786, sequence: 3450 }, "2018-06-09T10:00:00.000Z"],
    ["5b1ba5200000000000000000", "objectid", { seconds: 1_528_538_400, counter: 0 }, "2018-06-09T10:00:00.000Z"],
    ["ed9210b3-4554-4f17-a8e0-7f9e538d9908", "uuid", { version: 4 }, null],
    ["7EHvsLzwyaxz7btxGzNOoq", "uuid", { version: 4 }, null],
    ["-7151718282733543423", "millis-41-10-13", { generator: 1, random: 1 }, "2012-09-01T04:00:00.000Z"],
    ["0x9cbffe1d00002001", "millis-41-10-13", { generator: 1, random: 1 }, "2012-09-01T04:00:00.000Z"],
    ["abcde", "random-base62-5", {}, null],
    ["20", "tickets", { count: "10", odd: 0 }, null],
  ])("finds that %s is most likely a number of %s", async (text, name, fields, time) => {
    const { code, stdout, stderr } = await parse("--json", text);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const timeMs = time === null ? null : Date.parse(time);
    expect((JSON.parse(stdout) as { schemes: object[] }).schemes[0]).toMatchObject({ scheme: name, fields, timeMs });
    const inFull = await parse(text);
    expect(inFull.code).toBe(0);
    expect(inFull.stdout).toMatch(new RegExp(`^\\S+  is (most likely )?a number of ${name}\n`));
    if (time !== null) expect(inFull.stdout).toMatch(new RegExp(`^  made at +${time}$`, "m"));
    expect(tooWide(inFull.stdout)).toEqual([]);
  });

  test("shows what else it could be, and names what is unlikely", async () => {
    const { stdout } = await parse("454947766275222906");
    expect(stdout).toMatch(/Could also be a number of\n {2}twitter-snowflake +made at 2014-04-12T11:42:54.657Z\n/);
    expect(stdout).toMatch(/Unlikely by their time or version: .*millis-41-10-13/);
  });

  test("takes the number out of a URL", async () => {
    const plain = await parse("2VznWE2i");
    expect(await parse("https://lists.example.org/message/2VznWE2i?x=1")).toEqual(plain);
    const tweet = await parse("https://twitter.com/jack/status/454947766275222906");
    expect(tweet).toEqual(await parse("454947766275222906"));
  });

  test("--scheme parses as one scheme only, and shows why the text is none of its numbers", async () => {
    const { stdout } = await parse("--scheme", "twitter-snowflake", "454947766275222906");
    expect(stdout).toMatch(/^454947766275222906 {2}is a number of twitter-snowflake\n/);
    expect(await parse("--scheme", "uuid", "2VznWE2i")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^"2VznWE2i" is no number of uuid:\n {2}uuid {2}\S/),
    });
  });

  test("shows each scheme's reason for a text that is no number, parses the others, and exits with 1", async () => {
    const { code, stdout, stderr } = await parse("2VznWE2", "2VznWE2i");
    expect(code).toBe(1);
    expect(stdout).toMatch(/^\n?2VznWE2i {2}is/);
    expect(stderr).toMatch(/^"2VznWE2" is no number of any scheme:\n/);
    for (const name of NAMES) expect(stderr).toMatch(new RegExp(`^  ${name} +\\S`, "m"));
    const asJson = await parse("2VznWE2", "--json");
    expect(asJson).toMatchObject({ code: 1, stderr: "" });
    const answer = JSON.parse(asJson.stdout) as { schemes: unknown[]; reasons: Record<string, string> };
    expect(answer.schemes).toEqual([]);
    expect(Object.keys(answer.reasons)).toEqual(NAMES);
  });

  test.each([" 2VznWE2i", "2VznWE2i ", "2VznWE2i\n"])(
    "rejects %j, and shows that it is a number without its white space",
    async (text) => {
      expect(await parse(text)).toMatchObject({
        code: 1,
        stdout: "",
        stderr: expect.stringContaining("Without the white space around it, it is one: 2VznWE2i\n"),
      });
    },
  );

  test("escapes what acts on a terminal, and cuts a long text", async () => {
    const { stderr } = await parse(`\u001b[31m\u202e${"0".repeat(100_000)}`);
    expect(stderr).toMatch(/^"\\u001b\[31m\\u\{202e\}0{30,40}…" is no number of any scheme:\n/);
    expect(stderr.length).toBeLessThan(5_000);
  });

  test("reads lines with -, prints five columns with tabs or JSON, and reports bad lines", async () => {
    const input = "2VznWE2i\r\nno number\nhttps://x.example/454947766275222906\n";
    expect(await schemes("parse -", { input })).toEqual({
      code: 1,
      stdout:
        "2VznWE2i\tcall-number\tversion=0 run=99 sequence=345\t\tchibrary-3-32-8-4\n" +
        "454947766275222906\tsnowflake-2015\tsign=0 time=108468000000 node=786 sequence=3450\t2018-06-09T10:00:00.000Z\t" +
        "twitter-snowflake mysql-13-6-1 mysql-11-9 tickets millis-41-10-13\n",
      stderr: 'line 2: "no number" is a number of no scheme\n',
    });
    const asJson = await schemes("parse - --json", { input });
    expect(asJson).toMatchObject({ code: 1, stderr: "" });
    const lines = asJson.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { schemes: unknown[] });
    expect(lines.map(({ schemes }) => schemes.length > 0)).toEqual([true, false, true]);
    const one = await schemes("parse - --scheme call-number", { input: "2VznWE2i\n2VznWE2\n" });
    expect(one).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^2VznWE2i\tcall-number\t/),
      stderr: expect.stringMatching(/^line 2: \S/),
    });
  });

  test("ends quietly when its reader leaves", async () => {
    const { code, stdout, stderr } = await shell(
      "set +o pipefail; yes 2VznWE2i | head -200000 | callnumber schemes parse - | head -1",
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^2VznWE2i\t/);
  });
});

describe("callnumber schemes odds", () => {
  test("prints the exact chance, the rule of thumb, and the draws for usual chances", async () => {
    const { code, stdout } = await schemes("odds --space 62^5 --drawn 30000");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^30,000 draws of 62\^5 = 916,132,832 numbers\n/);
    expect(stdout).toMatch(/ a repeat +38\.8 % +\(0\.388098608271\)\n/);
    expect(stdout).toMatch(/rule of thumb +38\.8 % +\(0\.388095327593\)/);
    expect(stdout).toMatch(/^ {2}50 % +35,638$/m);
  });

  test.each([
    ["--space 365 --drawn 23", { space: "365", drawn: "23" }],
    ["--space 2^122 --drawn 10^9", { space: String(2n ** 122n), drawn: "1000000000" }],
  ])("prints the figures of %s in full with --json", async (words, expected) => {
    const figures = { chance: expect.any(Number), approximation: expect.any(Number) };
    expect(JSON.parse((await schemes(`odds --json ${words}`)).stdout)).toMatchObject({ ...expected, ...figures });
  });

  test("prints certain for more draws than numbers, and only the draws without --drawn", async () => {
    expect((await schemes("odds --space 365 --drawn 366")).stdout).toMatch(/ a repeat +certain\n/);
    const { stdout } = await schemes("odds --space 365 --chance 50%");
    expect(stdout).toBe("365 numbers\n\nDraws until a repeat has a chance of\n  50 %  23\n");
  });
});
