/** `callnumber schemes mint` as real processes: numbers that are right, none twice, and never one that belongs to somebody else. */
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SCHEMES } from "@callnumber/schemes";
import { describe, expect, test } from "vitest";
import { callnumber, callnumberProcess, folderForTest, shell, startProcess } from "../../../test/processes/command.js";

/** What each scheme must be told; those that keep state are told a file besides. */
const TOLD: Readonly<Record<string, readonly string[]>> = {
  "chibrary-4-16-20": ["--server", "2"],
  "chibrary-3-32-8-4": ["--server", "3"],
  "mysql-13-6-1": ["--server", "1"],
  "millis-41-10-13": ["--node", "7"],
  "snowflake-2015": ["--node", "7"],
  "twitter-snowflake": ["--node", "7"],
  objectid: ["--node", "7"],
  tickets: ["--server", "1"],
};
const KEEPING: ReadonlySet<string> = new Set(["chibrary-4-16-20", "tickets"]);
const MINTABLE = SCHEMES.filter(({ name }) => name !== "call-number");

const linesOf = (text: string) => text.trimEnd().split("\n");

describe("callnumber schemes mint", () => {
  test.each(MINTABLE.map((scheme) => [scheme.name, scheme] as const))(
    "makes numbers of %s that are taken apart again",
    async (name, scheme) => {
      const state = KEEPING.has(name) ? ["--state", join(await folderForTest(), "state.json"), "--create"] : [];
      const { code, stdout, stderr } = await callnumber([
        "schemes",
        "mint",
        "--scheme",
        name,
        "-n",
        "300",
        ...(TOLD[name] ?? []),
        ...state,
      ]);
      // A process id of more bits than the scheme has is no fault of the command; it must say so.
      if (code === 2) return expect(stderr).toMatch(/process ids up to 65535; this process is \d{6,}/);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      const numbers = linesOf(stdout);
      expect(numbers).toHaveLength(300);
      // What is drawn may repeat, in this scheme as in any hands; what counts may not.
      if (!scheme.facts.failures.includes("birthday")) expect(new Set(numbers).size).toBe(300);
      for (const text of numbers) expect(scheme.parse(text)).toMatchObject({ matches: true });
      const parsed = scheme.parse(numbers[0] as string);
      if (parsed.matches && parsed.timeMs !== undefined)
        expect(Math.abs(parsed.timeMs - Date.now())).toBeLessThan(600_000);
    },
  );

  test("--json has each number with its fields, a line each", async () => {
    const { stdout } = await callnumber([
      "schemes",
      "mint",
      "--scheme",
      "twitter-snowflake",
      "--node",
      "37",
      "-n",
      "2",
      "--json",
    ]);
    const numbers = linesOf(stdout).map((line) => JSON.parse(line) as object);
    expect(numbers).toHaveLength(2);
    for (const number of numbers) {
      expect(number).toMatchObject({
        text: expect.stringMatching(/^\d{19}$/),
        fields: { sign: 0, datacenter: 1, worker: 5 },
      });
    }
  });

  test("makes more than a millisecond has room for: it waits, and none comes twice", async () => {
    const { stdout } = await callnumber([
      "schemes",
      "mint",
      "--scheme",
      "twitter-snowflake",
      "--node",
      "1",
      "-n",
      "30000",
    ]);
    const numbers = linesOf(stdout);
    expect(new Set(numbers).size).toBe(30_000);
    expect(numbers.toSorted()).toEqual(numbers);
  });

  test("never makes a call number: that would be one of a run which belongs to somebody", async () => {
    for (const more of [[], ["-n", "3"], ["--json"]]) {
      expect(await callnumber(["schemes", "mint", "--scheme", "call-number", ...more])).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringContaining("callnumber next"),
      });
    }
  });

  test.each([
    [["schemes", "mint"], "required option '--scheme <name>'"],
    [["schemes", "mint", "--scheme", "snowflake"], "The schemes are call-number"],
    [["schemes", "mint", "--scheme", "uuid", "-n", "0"], "from 1 to 1,000,000,000"],
    [["schemes", "mint", "--scheme", "uuid", "-n", "-1"], "from 1 to 1,000,000,000"],
    [["schemes", "mint", "--scheme", "uuid", "-n", "1e9"], "from 1 to 1,000,000,000"],
    [["schemes", "mint", "--scheme", "uuid", "--node", "1"], "no place for --node"],
    [["schemes", "mint", "--scheme", "twitter-snowflake"], "--node N, from 0 to 1023"],
    [["schemes", "mint", "--scheme", "twitter-snowflake", "--node", "1024"], "from 0 to 1023"],
    [["schemes", "mint", "--scheme", "twitter-snowflake", "--node", "-1"], "must be a whole number"],
    [["schemes", "mint", "--scheme", "mysql-13-6-1"], "--server N, from 0 to 9"],
    [["schemes", "mint", "--scheme", "mysql-13-6-1", "--server", "10"], "from 0 to 9"],
    [["schemes", "mint", "--scheme", "tickets", "--server", "1"], "--state FILE"],
    [["schemes", "mint", "--scheme", "uuid", "--create"], "--create needs a state file"],
  ])("%j is refused with a word that helps", async (parameters, said) => {
    expect(await callnumber(parameters)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(said) });
  });

  test("--node takes precedence over the MAC addresses of the machine", async () => {
    const { stdout } = await callnumber(["schemes", "mint", "--scheme", "snowflake-2015", "--json", "--node", "5"]);
    expect(JSON.parse(stdout)).toMatchObject({ fields: { node: 5 } });
  });

  test("a reader that leaves ends it quietly, and the state stays good", async () => {
    const state = join(await folderForTest(), "state.json");
    const mint = `callnumber schemes mint --scheme tickets --server 1 --state ${state}`;
    const { code, stdout, stderr } = await shell(`set +o pipefail; ${mint} --create -n 1000000 | head -1; ${mint}`);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const [first, later] = linesOf(stdout);
    expect(first).toBe("1");
    expect(Number(later)).toBeGreaterThan(1);
    expect(existsSync(`${state}.lock`)).toBe(false);
  });

  test("a full disk behind standard output is a failure", async ({ skip }) => {
    if (!existsSync("/dev/full")) skip("no /dev/full here");
    const { code, stderr } = await shell("callnumber schemes mint --scheme uuid -n 100000 > /dev/full");
    expect(code).toBe(1);
    expect(stderr).toContain("ENOSPC");
  });
});

describe("the state file", () => {
  const words = (state: string, more: readonly string[]) => [
    "schemes",
    "mint",
    "--scheme",
    "tickets",
    "--server",
    "1",
    "--state",
    state,
    ...more,
  ];
  const tickets = (state: string, ...more: readonly string[]) => callnumber(words(state, more));
  /** Goes on until it is stopped. */
  const startTickets = (state: string, ...more: readonly string[]) =>
    startProcess(words(state, [...more, "-n", "100000000"]));

  test("carries a counter from call to call; of two servers one is odd and one even", async () => {
    const state = join(await folderForTest(), "state.json");
    expect((await tickets(state, "--create", "-n", "3")).stdout).toBe("1\n3\n5\n");
    expect((await tickets(state, "-n", "2")).stdout).toBe("7\n9\n");
    const even = await callnumber(["schemes", "mint", "--scheme", "tickets", "--server", "0", "--state", state]);
    expect(Number(even.stdout) % 2).toBe(0);
  });

  test("is not made by itself, and not taken when it is damaged", async () => {
    const state = join(await folderForTest(), "state.json");
    expect(await tickets(state)).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/--create.*mint_state_unusable/s),
    });
    writeFileSync(state, "{}");
    expect(await tickets(state, "--create")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("damaged"),
    });
    expect(readFileSync(state, "utf8")).toBe("{}");
  });

  test("what is refused for another reason makes no file", async () => {
    const folder = await folderForTest();
    await callnumber([
      "schemes",
      "mint",
      "--scheme",
      "tickets",
      "--server",
      "2",
      "--state",
      join(folder, "a"),
      "--create",
    ]);
    await callnumber(["schemes", "mint", "--scheme", "call-number", "--state", join(folder, "b"), "--create"]);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("twelve processes at once on one file make no number twice: each has it alone, or says so", async () => {
    const state = join(await folderForTest(), "state.json");
    await tickets(state, "--create");
    const finished = await Promise.all(
      Array.from({ length: 12 }, () => callnumberProcess(words(state, ["-n", "3000"]))),
    );
    const numbers = finished.flatMap(({ stdout }) => (stdout === "" ? [] : linesOf(stdout)));
    expect(new Set(numbers).size).toBe(numbers.length);
    expect(finished.some(({ code }) => code === 0)).toBe(true);
    for (const { code, stderr, stdout } of finished) {
      if (code === 0) expect(linesOf(stdout)).toHaveLength(3_000);
      else
        expect({ code, stdout, stderr }).toEqual({
          code: 1,
          stdout: "",
          stderr: expect.stringContaining("mints with"),
        });
    }
  });

  test("killed at any moment, the next process repeats nothing that came out; its lock must be removed by hand", async () => {
    const state = join(await folderForTest(), "state.json");
    await tickets(state, "--create");
    const seen = new Set<string>();
    let count = 0;
    for (let round = 0; round < 3; round++) {
      const running = startTickets(state);
      // The more rounds, the later the kill.
      while (linesOf(running.output().stdout).length < 2 + 1_500 * round) await delay(5);
      await running.stop("SIGKILL");
      const whole = running.output().stdout.split("\n").slice(0, -1);
      for (const number of whole) seen.add(number);
      count += whole.length;
      expect(await tickets(state)).toMatchObject({ code: 1, stderr: expect.stringContaining("remove that file") });
      rmSync(`${state}.lock`);
    }
    const { stdout } = await tickets(state);
    expect(count).toBeGreaterThan(2_000);
    expect(seen.size).toBe(count);
    expect(seen.has(stdout.trim())).toBe(false);
  });

  test("asked to stop, it lets the file go", async () => {
    const state = join(await folderForTest(), "state.json");
    const running = startTickets(state, "--create");
    while (running.output().stdout === "") await delay(5);
    expect(await running.stop("SIGINT")).toBe(130);
    expect((await tickets(state)).code).toBe(0);
  });

  test("remembers the last time of a clock: a clock that went back is refused by the next process", async () => {
    const state = join(await folderForTest(), "state.json");
    const mint = (...more: readonly string[]) =>
      callnumber(["schemes", "mint", "--scheme", "twitter-snowflake", "--node", "1", "--state", state, ...more]);
    expect((await mint("--create")).code).toBe(0);
    // As if it had been minted an hour from now.
    const text = readFileSync(state, "utf8");
    const [, unit = ""] = /unit": "(\d+)"/.exec(text) ?? [];
    writeFileSync(state, text.replace(unit, String(Number(unit) + 3_600_000)));
    expect(await mint()).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/went back.*\(clock_moved_backward\)/),
    });
  });

  test("that can't be written makes no number", async ({ skip }) => {
    if (process.getuid?.() === 0) skip("root may write everywhere");
    const folder = await folderForTest();
    const state = join(folder, "state.json");
    await tickets(state, "--create");
    chmodSync(folder, 0o500);
    const refused = await tickets(state);
    chmodSync(folder, 0o700);
    expect(refused).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("mint_state_unusable") });
  });
});
