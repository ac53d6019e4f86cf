/** `callnumber schemes` with `list`, `parse` and `odds` as somebody types them who chooses a numbering scheme, or found a number. */
import { SCHEMES } from "@callnumber/schemes";
import { describe, expect, test } from "vitest";
import { callnumber, shell, startOnTerminal } from "../../../test/processes/command.js";

/** 1,000 a second from 10 nodes, for 10 years. */
const USUAL_LOAD = { perSecond: 1_000, nodes: 10, seconds: 315_569_520 };
const NAMES = SCHEMES.map(({ name }) => name);
/** As wide as most terminals are. */
const COLUMNS = 80;
const CONTROL_SEQUENCE = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "g");

interface Figures {
  readonly repeatChance: number;
  readonly guessChance: number;
  readonly neighborChance: number;
}

function figuresOf(json: string): readonly Figures[] {
  const { schemes } = JSON.parse(json) as { schemes: readonly Figures[] };
  expect(schemes).toHaveLength(NAMES.length);
  return schemes;
}

async function onTerminal(columns: number, ...parameters: readonly string[]): Promise<readonly string[]> {
  const running = startOnTerminal(columns, ...parameters);
  await running.ended();
  return running.output().stdout.replace(CONTROL_SEQUENCE, "").split(/\r?\n/);
}

test("schemes without a sub-command, or with one that is none, names them and exits with 2", async () => {
  const bare = await callnumber(["schemes"]);
  expect(bare).toMatchObject({ code: 2, stdout: "" });
  for (const name of ["list", "parse", "mint", "odds", "simulate"]) expect(bare.stderr).toContain(`\n  ${name} `);
  expect(await callnumber(["schemes", "simulat"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Did you mean simulate?"),
  });
  expect((await callnumber(["schemes", "parse", "--help"])).stdout).toContain("callnumber schemes parse [options]");
});

describe("callnumber schemes list", () => {
  test("compares every scheme in three tables, none wider than 80 columns, nothing cut short", async () => {
    const { code, stdout, stderr } = await callnumber(["schemes", "list"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const lines = stdout.split("\n");
    expect(lines.filter((line) => line.length > COLUMNS)).toEqual([]);
    expect(stdout).not.toContain("…");
    for (const name of NAMES) expect(lines.filter((line) => line.startsWith(`${name} `))).toHaveLength(3);
    expect(stdout).toContain("1,000 a second from 10 nodes, for 10 years");
  });

  test("has in each row what the facts of that scheme say", async () => {
    const lines = (await callnumber(["schemes", "list"])).stdout.split("\n");
    for (const { name, facts } of SCHEMES) {
      const [number = "", load = "", reader = ""] = lines.filter((line) => line.startsWith(`${name} `));
      const { bits, characters, order, coordination } = facts;
      expect(number.split(/\s{2,}/)).toEqual([name, bits.toFixed(1), String(characters), order, coordination]);
      const [, most, nodes, lasts, repeat] = load.split(/\s{2,}/);
      expect(most === "no bound").toBe(facts.perSecond === Number.POSITIVE_INFINITY);
      expect(nodes === "no bound").toBe(facts.nodes === Number.POSITIVE_INFINITY);
      if (facts.endsMs !== undefined) expect(lasts).toBe(`until ${new Date(facts.endsMs).toISOString().slice(0, 10)}`);
      expect(repeat === "none").toBe(facts.repeats(USUAL_LOAD) === 0);
      expect(repeat === "certain").toBe(facts.repeats(USUAL_LOAD) === 1);
      const [, reveals, , fails] = reader.split(/\s{2,}/);
      expect(reveals).toBe(facts.reveals.join(", "));
      expect(fails).toMatch(new RegExp(`^${facts.failures[0]}( \\+${facts.failures.length - 1})?$`));
    }
  });

  test("on a terminal of 80 columns has all of it, and on a narrow one stays within it", async ({ skip }) => {
    if ((await shell("command -v script")).code !== 0) skip("no `script` here, which gives a command a terminal");
    const wide = await onTerminal(COLUMNS, "schemes", "list");
    expect(wide.join("\n")).not.toContain("…");
    for (const name of NAMES) expect(wide.filter((line) => line.startsWith(`${name} `))).toHaveLength(3);
    const narrow = await onTerminal(50, "schemes", "list");
    expect(narrow.filter((line) => /^[a-z0-9-]+ /.test(line) && line.length > 50)).toEqual([]);
  });

  test("computes for the load that was said", async () => {
    const asked = [
      "schemes",
      "list",
      "--rate",
      "30000/day",
      "--nodes",
      "2",
      "--for",
      "1d",
      "--only",
      "random-base62-5",
      "--json",
    ];
    const { stdout } = await callnumber(asked);
    const { load, schemes } = JSON.parse(stdout) as { load: object; schemes: { repeatChance: number }[] };
    expect(load).toEqual({ perSecond: 30_000 / 86_400, nodes: 2, seconds: 86_400 });
    expect(schemes).toHaveLength(1);
    expect(schemes[0]?.repeatChance).toBeCloseTo(0.388_098_608_271, 11);
  });

  test("--only takes names in any way they are written, each once; --json has every figure of each", async () => {
    const { stdout } = await callnumber(["schemes", "list", "--json", "--only", "uuid,tickets", "UUID", "call-number"]);
    const { schemes } = JSON.parse(stdout) as { schemes: { name: string }[] };
    expect(schemes.map(({ name }) => name)).toEqual(["uuid", "tickets", "call-number"]);
    for (const scheme of schemes) {
      expect(Object.keys(scheme)).toEqual(
        expect.arrayContaining([
          "bits",
          "characters",
          "order",
          "coordination",
          "reveals",
          "perSecondMost",
          "lastsSeconds",
        ]),
      );
      expect(scheme).toMatchObject({
        repeatChance: expect.any(Number),
        guessChance: expect.any(Number),
        neighborChance: expect.any(Number),
        sample: { text: expect.any(String) },
      });
    }
    expect(schemes[2]).toMatchObject({ bits: 47, characters: 8, perSecondMost: null, clockEndsMs: null });
  });

  test.each(NAMES)(
    "%s is told in full: fields, a sample that is taken apart again, every encoding, every fact",
    async (name) => {
      const { code, stdout } = await callnumber(["schemes", "list", name]);
      expect(code).toBe(0);
      const scheme = SCHEMES.find((each) => each.name === name);
      for (const field of scheme?.fields ?? []) expect(stdout).toContain(`  ${field.name}`);
      for (const label of [
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
      ]) {
        expect(stdout).toMatch(new RegExp(`^  ${label} +\\S`, "m"));
      }
      expect(stdout).not.toMatch(/undefined|NaN|Infinity|\[object/);
      expect(stdout.split("\n").filter((line) => line.length > COLUMNS)).toEqual([]);
      const { sample } = (
        JSON.parse((await callnumber(["schemes", "list", name, "--json"])).stdout) as {
          schemes: { sample: { text: string; encodings: Record<string, string> } }[];
        }
      ).schemes[0] as { sample: { text: string; encodings: Record<string, string> } };
      expect(scheme?.parse(sample.text).matches).toBe(true);
      for (const [encoding, text] of Object.entries(sample.encodings)) {
        expect(stdout).toContain(text);
        expect(stdout).toContain(`  ${encoding} `);
      }
    },
  );

  test("every load gives figures, the least and the greatest", async () => {
    for (const load of [
      ["--rate", "1e15/s", "--nodes", "1000000000", "--for", "1e9y"],
      ["--rate", "0.001/y", "--nodes", "1", "--for", "1s"],
    ]) {
      expect((await callnumber(["schemes", "list", ...load])).stdout).not.toMatch(/undefined|NaN|Infinity|-\d+ %/);
      for (const { repeatChance, guessChance, neighborChance } of figuresOf(
        (await callnumber(["schemes", "list", "--json", ...load])).stdout,
      )) {
        expect(repeatChance).toBeGreaterThanOrEqual(0);
        expect(repeatChance).toBeLessThanOrEqual(1);
        expect(neighborChance).toBeGreaterThanOrEqual(0);
        expect(neighborChance).toBeLessThanOrEqual(1);
        expect(guessChance).toBeGreaterThanOrEqual(0);
        expect(guessChance).toBeLessThanOrEqual(1);
      }
    }
  });

  test("what a clock that goes back does is played", async () => {
    for (const [name, does] of [
      ["twitter-snowflake", "it refuses until the clock is where it was"],
      ["chibrary-3-32-8-4", "it refuses until the clock is where it was"],
    ] as const) {
      expect((await callnumber(["schemes", "list", name])).stdout.replace(/\s+/g, " ")).toContain(`60 s back, ${does}`);
    }
  });

  test("the sample is the same every time: nobody gets it as a number of his own", async () => {
    expect(await callnumber(["schemes", "list", "uuid"])).toEqual(await callnumber(["schemes", "list", "uuid"]));
  });

  test.each([
    [["schemes", "list", "snowflake"], 'no scheme "snowflake". The schemes are call-number,'],
    [["schemes", "list", "--only", "qwertz"], `no scheme "qwertz". The schemes are call-number, ${NAMES[1]}`],
    [["schemes", "list", "--rate", "-5/s"], "must be above zero and up to 1e15/s, such as 1000/s"],
    [["schemes", "list", "--rate", "many"], "must be above zero and up to 1e15/s, such as 1000/s"],
    [["schemes", "list", "--for", "10"], "must be above zero and up to 1e9y, such as 10y"],
    [["schemes", "list", "--nodes", "0"], "must be a whole number from 1"],
    [["schemes", "list", "uuid", "tickets"], "too many arguments"],
  ])("%j is refused with a word that helps", async (parameters, said) => {
    expect(await callnumber(parameters)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(said) });
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
  ])("%s is most likely a number of %s", async (text, name, fields, time) => {
    const { code, stdout, stderr } = await callnumber(["schemes", "parse", "--json", text]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const { schemes } = JSON.parse(stdout) as { schemes: object[] };
    expect(schemes[0]).toMatchObject({
      scheme: name,
      fields,
      timeMs: time === null ? null : Date.parse(time),
    });
    const told = await callnumber(["schemes", "parse", text]);
    expect(told.code).toBe(0);
    expect(told.stdout).toMatch(new RegExp(`^\\S+  is (most likely )?a number of ${name}\n`));
    if (time !== null) expect(told.stdout).toContain(`made at  ${time}`.replace("  ", " ").split(" ").at(-1));
    expect(told.stdout.split("\n").filter((line) => line.length > COLUMNS)).toEqual([]);
  });

  test("says what else it could be, and names what it can hardly be", async () => {
    const { stdout } = await callnumber(["schemes", "parse", "454947766275222906"]);
    expect(stdout).toMatch(/Could also be a number of\n {2}twitter-snowflake +made at 2014-04-12T11:42:54.657Z\n/);
    expect(stdout).toMatch(/Unlikely by their time or version: .*millis-41-10-13/);
  });

  test("takes the number out of an address", async () => {
    const plain = await callnumber(["schemes", "parse", "2VznWE2i"]);
    expect(await callnumber(["schemes", "parse", "https://lists.example.org/message/2VznWE2i?x=1"])).toEqual(plain);
    const tweet = await callnumber(["schemes", "parse", "https://twitter.com/jack/status/454947766275222906"]);
    expect(tweet).toEqual(await callnumber(["schemes", "parse", "454947766275222906"]));
  });

  test("--scheme asks one scheme only, and says why it is none of its numbers", async () => {
    const { stdout } = await callnumber(["schemes", "parse", "--scheme", "twitter-snowflake", "454947766275222906"]);
    expect(stdout).toMatch(/^454947766275222906 {2}is a number of twitter-snowflake\n/);
    expect(await callnumber(["schemes", "parse", "--scheme", "uuid", "2VznWE2i"])).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^"2VznWE2i" is no number of uuid:\n {2}uuid {2}\S/),
    });
  });

  test("what is no number is answered with each scheme's reason, the others go on, and the exit code is 1", async () => {
    const { code, stdout, stderr } = await callnumber(["schemes", "parse", "2VznWE2", "2VznWE2i"]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^\n?2VznWE2i {2}is/);
    expect(stderr).toMatch(/^"2VznWE2" is no number of any scheme:\n/);
    for (const name of NAMES) expect(stderr).toMatch(new RegExp(`^  ${name} +\\S`, "m"));
    const asJson = await callnumber(["schemes", "parse", "2VznWE2", "--json"]);
    expect(asJson).toMatchObject({ code: 1, stderr: "" });
    const answer = JSON.parse(asJson.stdout) as { schemes: unknown[]; reasons: Record<string, string> };
    expect(answer.schemes).toEqual([]);
    expect(Object.keys(answer.reasons)).toEqual(NAMES);
  });

  test.each([" 2VznWE2i", "2VznWE2i ", "2VznWE2i\n"])(
    "%j is none, and told to be one without its white space",
    async (text) => {
      expect(await callnumber(["schemes", "parse", text])).toMatchObject({
        code: 1,
        stdout: "",
        stderr: expect.stringContaining("Without the white space around it, it is one: 2VznWE2i\n"),
      });
    },
  );

  test("what a terminal would obey or hide never reaches it, and a long text is cut", async () => {
    const { stderr } = await callnumber(["schemes", "parse", `\u001b[31m\u202e${"0".repeat(100_000)}`]);
    expect(stderr).toMatch(/^"\\u001b\[31m\\u\{202e\}0{30,40}…" is no number of any scheme:\n/);
    expect(stderr.length).toBeLessThan(5_000);
  });

  test("- reads lines: five columns with tabs, or JSON; bad ones are named", async () => {
    const input = "2VznWE2i\r\nno number\nhttps://x.example/454947766275222906\n";
    expect(await callnumber(["schemes", "parse", "-"], { input })).toEqual({
      code: 1,
      stdout:
        "2VznWE2i\tcall-number\tversion=0 run=99 sequence=345\t\tchibrary-3-32-8-4\n" +
        "454947766275222906\tsnowflake-2015\tsign=0 time=108468000000 node=786 sequence=3450\t2018-06-09T10:00:00.000Z\t" +
        "twitter-snowflake mysql-13-6-1 mysql-11-9 tickets millis-41-10-13\n",
      stderr: 'line 2: "no number" is a number of no scheme\n',
    });
    const asJson = await callnumber(["schemes", "parse", "-", "--json"], { input });
    expect(asJson).toMatchObject({ code: 1, stderr: "" });
    const lines = asJson.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { schemes: unknown[] });
    expect(lines.map(({ schemes }) => schemes.length > 0)).toEqual([true, false, true]);
    const one = await callnumber(["schemes", "parse", "-", "--scheme", "call-number"], {
      input: "2VznWE2i\n2VznWE2\n",
    });
    expect(one).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^2VznWE2i\tcall-number\t/),
      stderr: expect.stringMatching(/^line 2: \S/),
    });
  });

  test("a reader that leaves ends it quietly", async () => {
    const { code, stdout, stderr } = await shell(
      "set +o pipefail; yes 2VznWE2i | head -200000 | callnumber schemes parse - | head -1",
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^2VznWE2i\t/);
  });
});

describe("callnumber schemes odds", () => {
  test("tells the exact chance, the rule of thumb, and the draws for usual chances", async () => {
    const { code, stdout } = await callnumber(["schemes", "odds", "--space", "62^5", "--drawn", "30000"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^30,000 draws of 62\^5 = 916,132,832 numbers\n/);
    expect(stdout).toMatch(/ a repeat +38\.8 % +\(0\.388098608271\)\n/);
    expect(stdout).toMatch(/rule of thumb +38\.8 % +\(0\.388095327593\)/);
    expect(stdout).toMatch(/^ {2}50 % +35,638$/m);
  });

  test.each([
    [["--space", "365", "--drawn", "23"], { space: "365", drawn: "23" }],
    [["--space", "2^122", "--drawn", "10^9"], { space: String(2n ** 122n), drawn: "1000000000" }],
  ])("--json of %j has the figures in full", async (parameters, expected) => {
    const { stdout } = await callnumber(["schemes", "odds", "--json", ...parameters]);
    expect(JSON.parse(stdout)).toMatchObject({
      ...expected,
      chance: expect.any(Number),
      approximation: expect.any(Number),
    });
  });

  test("more draws than numbers is certain; --chance asks for one chance; without --drawn only the draws are told", async () => {
    expect((await callnumber(["schemes", "odds", "--space", "365", "--drawn", "366"])).stdout).toMatch(
      / a repeat +certain\n/,
    );
    const { stdout } = await callnumber(["schemes", "odds", "--space", "365", "--chance", "50%"]);
    expect(stdout).toBe("365 numbers\n\nDraws until a repeat has a chance of\n  50 %  23\n");
  });

  test.each([
    [["schemes", "odds"], "--space <numbers>' not specified"],
    [["schemes", "odds", "--space", "62^5^2"], "such as 62^5"],
    [["schemes", "odds", "--space", "2^99999999"], "more than 2^1000"],
    [["schemes", "odds", "--space", "-5"], "such as 62^5"],
    [["schemes", "odds", "--space", "0"], "at least 1"],
    [["schemes", "odds", "--space", "10", "--chance", "1"], "above 0 and below 1"],
    [["schemes", "odds", "--space", "10", "--drawn", "three"], "such as 62^5"],
  ])("%j is refused with a word that helps", async (parameters, said) => {
    expect(await callnumber(parameters)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(said) });
  });
});
