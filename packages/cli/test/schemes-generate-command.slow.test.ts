/** `callnumber schemes generate` as real processes: numbers that are right, none twice, and never one that belongs to another message. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SCHEMES } from "@callnumber/schemes";
import { describe, expect, test } from "vitest";
import { callnumber, callnumberProcess, folderForTest, shell, startProcess } from "../../../test/processes/command.js";
import { sized } from "../../../test/size-of-run.js";

/** What must be stated for each scheme; those that keep state need a file, too. */
const STATED: Readonly<Record<string, string>> = {
  "chibrary-4-16-20": "--server 2",
  "chibrary-3-32-8-4": "--server 3",
  "mysql-13-6-1": "--server 1",
  "millis-41-10-13": "--node 7",
  "snowflake-2015": "--node 7",
  "twitter-snowflake": "--node 7",
  objectid: "--node 7",
  tickets: "--server 1",
};
const GENERATABLE = SCHEMES.filter(({ name }) => name !== "call-number" && name !== "hash-12");
const KEEPING: ReadonlySet<string> = new Set(["chibrary-4-16-20", "tickets"]);

const linesOf = (text: string) => text.trimEnd().split("\n");
const wordsOf = (options: string, more: readonly string[] = []) => [
  ...`schemes generate ${options}`.trim().split(/ +/),
  ...more,
];
const generate = (options: string, ...more: readonly string[]) => callnumber(wordsOf(options, more));

describe("callnumber schemes generate", () => {
  test.each(GENERATABLE)("generates numbers of $name that parse again", async (scheme) => {
    const { name } = scheme;
    const state = KEEPING.has(name) ? ["--state", join(await folderForTest(), "state.json"), "--create"] : [];
    const { code, stdout, stderr } = await generate(`--scheme ${name} -n 300 ${STATED[name] ?? ""}`, ...state);
    // A process id of more bits than the scheme has is no fault of the command.
    if (code === 2) return expect(stderr).toMatch(/process ids up to 65535; this process is \d{6,}/);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const numbers = linesOf(stdout);
    expect(numbers).toHaveLength(300);
    // What is drawn may repeat; what counts may not.
    if (!scheme.facts.failures.includes("birthday")) expect(new Set(numbers).size).toBe(300);
    for (const text of numbers) expect(scheme.parse(text)).toMatchObject({ matches: true });
    const parsed = scheme.parse(numbers[0] as string);
    if (parsed.matches && parsed.timeMs !== undefined)
      expect(Math.abs(parsed.timeMs - Date.now())).toBeLessThan(600_000);
  });

  test("--json prints each number with its fields on a line", async () => {
    const { stdout } = await generate("--scheme twitter-snowflake --node 37 -n 2 --json");
    const numbers = linesOf(stdout).map((line) => JSON.parse(line) as object);
    const number = { text: expect.stringMatching(/^\d{19}$/), fields: { sign: 0, datacenter: 1, worker: 5 } };
    expect(numbers).toMatchObject([number, number]);
  });

  test("--epoch counts from another day, which parse needs as well", async () => {
    const epoch = ["--epoch", "2014-10-01"];
    const { stdout } = await generate("--scheme chibrary-3-32-8-4 --server 3", ...epoch);
    const parse = ["schemes", "parse", "--json", stdout.trim(), "--scheme", "chibrary-3-32-8-4", ...epoch];
    const { schemes } = JSON.parse((await callnumber(parse)).stdout) as { schemes: { timeMs: number }[] };
    expect(Math.abs((schemes[0]?.timeMs ?? 0) - Date.now())).toBeLessThan(600_000);
  });

  test("waits for the next millisecond when this one has no number left, and repeats none", async () => {
    const numbers = linesOf((await generate("--scheme twitter-snowflake --node 1 -n 30000")).stdout);
    expect(new Set(numbers).size).toBe(30_000);
    expect(numbers.toSorted()).toEqual(numbers);
  });

  test.each([
    ["", "schemes generate needs --scheme"],
    ["--scheme call-number", "from a run that a coordinator has leased: callnumber next makes some"],
    ["--scheme call-number -n 3 --json", "callnumber next"],
    ["--scheme hash-7", "comes from the content. For each file: sha256sum FILE | cut -c -7"],
    ["--scheme uuid --epoch 2015-01-01", "uuid has no epoch to choose"],
    ["--scheme snowflake-2015 --epoch 2015", "must be a day since 1970 such as 2015-01-01"],
    ["--scheme snowflake-2015 --node 1 --epoch 2099-12-31", "the clock must be at"],
    ["--scheme snowflake", "The schemes are call-number"],
    ["--scheme uuid -n 0", "from 1 to 1,000,000,000"],
    ["--scheme uuid -n 1e9", "from 1 to 1,000,000,000"],
    ["--scheme uuid --node 1", "no place for --node"],
    ["--scheme uuid --server 1", "no place for --server"],
    ["--scheme twitter-snowflake", "--node N, from 0 to 1023"],
    ["--scheme twitter-snowflake --node 1024", "from 0 to 1023"],
    ["--scheme mysql-13-6-1", "--server N, from 0 to 9"],
    ["--scheme mysql-13-6-1 --server 10", "from 0 to 9"],
    ["--scheme tickets --server 1", "--state FILE"],
    ["--scheme chibrary-4-16-20 --server 1", "--state FILE"],
    ["--scheme uuid --create", "--create needs a state file"],
  ])("rejects %j with a message that helps", async (options, message) => {
    expect(await generate(options)).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(message) });
  });

  test("--node takes precedence over the MAC addresses of the machine", async () => {
    const { stdout } = await generate("--scheme snowflake-2015 --json --node 5");
    expect(JSON.parse(stdout)).toMatchObject({ fields: { node: 5 } });
  });

  test("ends quietly when its reader leaves, and the state stays usable", async () => {
    const state = join(await folderForTest(), "state.json");
    const generate = `callnumber schemes generate --scheme tickets --server 1 --state ${state}`;
    const { code, stdout, stderr } = await shell(
      `set +o pipefail; ${generate} --create -n 1000000 | head -1; ${generate}`,
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const [first, later] = linesOf(stdout);
    expect(first).toBe("1");
    expect(Number(later)).toBeGreaterThan(1);
    expect(existsSync(`${state}.lock`)).toBe(false);
  });
});

describe("the state file", () => {
  const TICKETS = "--scheme tickets --server 1";
  const tickets = (state: string, ...more: readonly string[]) => generate(TICKETS, "--state", state, ...more);
  /** Goes on until it is stopped. */
  const startTickets = (state: string, ...more: readonly string[]) =>
    startProcess(wordsOf(TICKETS, ["--state", state, ...more, "-n", "100000000"]));

  test("keeps a counter from call to call; of two servers one is odd and one even", async () => {
    const state = join(await folderForTest(), "state.json");
    expect((await tickets(state, "--create", "-n", "3")).stdout).toBe("1\n3\n5\n");
    expect((await tickets(state, "-n", "2")).stdout).toBe("7\n9\n");
    const even = await generate("--scheme tickets --server 0", "--state", state);
    expect(Number(even.stdout) % 2).toBe(0);
  });

  test("is not created without --create, nor when the command fails for another reason", async () => {
    const state = join(await folderForTest(), "state.json");
    expect(await tickets(state)).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/--create.*generator_state_unusable/s),
    });
    await generate("--scheme tickets --server 2 --create", "--state", state);
    await generate("--scheme call-number --create", "--state", state);
    expect(existsSync(state)).toBe(false);
  });

  test("is used by one of several concurrent processes at a time: the others fail, and no number repeats", async () => {
    const state = join(await folderForTest(), "state.json");
    await tickets(state, "--create");
    const finished = await Promise.all(
      Array.from({ length: sized(5, 12) }, () => callnumberProcess(wordsOf(TICKETS, ["--state", state, "-n", "3000"]))),
    );
    const numbers = finished.flatMap(({ stdout }) => (stdout === "" ? [] : linesOf(stdout)));
    expect(new Set(numbers).size).toBe(numbers.length);
    expect(finished.some(({ code }) => code === 0)).toBe(true);
    for (const { code, stderr, stdout } of finished) {
      if (code === 0) expect(linesOf(stdout)).toHaveLength(3_000);
      else expect([code, stdout, stderr]).toEqual([1, "", expect.stringContaining("generates with")]);
    }
  });

  test("repeats no printed number after a kill; its lock must be removed manually", async () => {
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

  test("is unlocked when the command is stopped", async () => {
    const state = join(await folderForTest(), "state.json");
    const running = startTickets(state, "--create");
    while (running.output().stdout === "") await delay(5);
    expect(await running.stop("SIGINT")).toBe(130);
    expect((await tickets(state)).code).toBe(0);
  });

  test("remembers the last time of a clock: the next process fails when the clock went back", async () => {
    const state = join(await folderForTest(), "state.json");
    const snowflake = (...more: readonly string[]) =>
      generate("--scheme twitter-snowflake --node 1", "--state", state, ...more);
    expect((await snowflake("--create")).code).toBe(0);
    // As if it had been generated an hour from now.
    const text = readFileSync(state, "utf8");
    const [, unit = ""] = /unit": "(\d+)"/.exec(text) ?? [];
    writeFileSync(state, text.replace(unit, String(Number(unit) + 3_600_000)));
    expect(await snowflake()).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/went back.*\(clock_moved_backward\)/),
    });
  });

  test("stops generating when it can't be written, before a number is printed", async () => {
    const state = join(await folderForTest(), "state.json");
    await tickets(state, "--create");
    // Takes the name of the new file that would replace the old one.
    mkdirSync(`${state}.unfinished`);
    expect(await tickets(state)).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("generator_state_unusable"),
    });
    expect(existsSync(`${state}.lock`)).toBe(false);
  });
});
