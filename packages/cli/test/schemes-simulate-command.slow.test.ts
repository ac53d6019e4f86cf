/** `callnumber schemes simulate` as a user runs it who wants to see what goes wrong with which scheme. */
import { SCHEMES } from "@callnumber/schemes";
import { SCENARIOS } from "@callnumber/schemes/simulation";
import { describe, expect, test } from "vitest";
import { callnumber, shell, startOnTerminal } from "../../../test/processes/command.js";

const COLUMNS = 80;
const SMALL = ["--numbers", "1000", "--seed", "1"];

interface Simulated {
  readonly seed: number;
  readonly scenarios: readonly {
    readonly name: string;
    readonly outcomes: readonly { readonly scheme: string; readonly expected: number; readonly plausible: boolean }[];
  }[];
}

async function simulatedAsJson(...parameters: readonly string[]): Promise<Simulated> {
  const { code, stdout, stderr } = await callnumber(["schemes", "simulate", "--json", ...parameters]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout) as Simulated;
}

describe("callnumber schemes simulate", () => {
  test("shows every scheme in every scenario, in no more than 80 columns, and exits with 0 for repeats", async () => {
    const { code, stdout, stderr } = await callnumber(["schemes", "simulate", ...SMALL]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.split("\n").filter((line) => line.length > COLUMNS)).toEqual([]);
    expect(stdout).not.toMatch(/undefined|NaN|Infinity|\[object|…/);
    const [tables = "", summary = ""] = stdout.split("\nGenerated ");
    expect(summary.replace(/\s+/g, " ")).toMatch(
      new RegExp(
        `^[\\d,]+ numbers: schemes ${SCHEMES.length}, scenarios ${SCENARIOS.length}\\. .*: [1-9]\\d*\\. Every count is as`,
      ),
    );
    const sections = tables.split(/\n(?=[a-z-]+\n[A-Z])/).slice(1);
    expect(sections.map((section) => section.split("\n")[0])).toEqual(SCENARIOS.map(({ name }) => name));
    for (const section of sections) {
      const words = section.split(/[\s,]+/);
      for (const { name } of SCHEMES) expect(words.filter((word) => word === name)).toHaveLength(1);
    }
  });

  test("shows on a terminal which scenario and scheme it is at", async ({ skip }) => {
    if ((await shell("command -v script")).code !== 0) skip("no `script` here, which gives a command a terminal");
    const running = startOnTerminal(80, "schemes", "simulate", "--scheme", "uuid", ...SMALL);
    await running.ended();
    const { stdout } = running.output();
    for (const [index, { name }] of SCENARIOS.entries()) {
      expect(stdout).toContain(`\r\u001b[Kscenario ${index + 1} of ${SCENARIOS.length}, ${name}: uuid\r\u001b[K`);
    }
  });

  test("repeats a simulation with the seed that it printed, and runs another without", async () => {
    const asked = ["schemes", "simulate", "--scenario", "one-hash", "--scheme", "snowflake-2015", "--numbers", "3,000"];
    const { stdout: first } = await callnumber(asked);
    const seed = /--seed (\d+)/.exec(first)?.[1] as string;
    expect((await callnumber([...asked, "--seed", seed])).stdout).toBe(first);
    expect((await callnumber(asked)).stdout).not.toBe(first);
  });

  test("prints all that the table shows with --json, and the figures in full", async () => {
    const { seed, scenarios } = await simulatedAsJson("--scenario", "heavy-rate,counter-back", "good-clocks", ...SMALL);
    expect(seed).toBe(1);
    expect(scenarios.map(({ name }) => name)).toEqual(["heavy-rate", "counter-back", "good-clocks"]);
    for (const { outcomes } of scenarios) {
      expect(outcomes.map(({ scheme }) => scheme)).toEqual(SCHEMES.map(({ name }) => name));
      expect(outcomes.every(({ plausible }) => plausible)).toBe(true);
    }
    expect(scenarios[1]?.outcomes[0]).toEqual({
      scheme: "call-number",
      generated: 1_000,
      repeats: 250,
      expected: 250,
      theory: "overlap",
      waited: 0,
      rejected: { clock_moved_backward: 0, number_space_exhausted: 0 },
      plausible: true,
    });
    const uuid = scenarios[2]?.outcomes.find(({ scheme }) => scheme === "uuid");
    expect(uuid?.expected).toBeCloseTo((1_000 * 999) / 2 / 2 ** 122, 45);
  });

  test.each([
    [["--scenario", "clock-bakc"], 'there is no scenario "clock-bakc". The scenarios are good-clocks'],
    [["--scheme", ","], "must be at least one name"],
    [["--rate", "1/y"], "do not fit 365 days"],
    [["--nodes", "1"], "must be a whole number from 2 to 1,000"],
    [["--numbers", "0"], "must be a whole number from 1 to"],
    [["--numbers", "1e9"], "must be a whole number from 1 to"],
    [["--seed", "-1"], "must be a whole number from 0 to"],
    [["--scenraio", "x"], "--scenario"],
  ])("rejects %j with a message that helps", async (parameters, words) => {
    const { code, stdout, stderr } = await callnumber(["schemes", "simulate", ...parameters]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(words);
  });

  test("--help lists every scenario and the exit code, and its examples run", async () => {
    const { stdout } = await callnumber(["schemes", "simulate", "--help"]);
    for (const { name } of SCENARIOS) expect(stdout).toMatch(new RegExp(`^  ${name} +[A-Z]`, "m"));
    expect(stdout).toMatch(/no\s+failure/);
    const examples = [...stdout.matchAll(/^ {2}\$ callnumber (.+)$/gm)].map(([, words]) =>
      (words as string).split(" "),
    );
    expect(examples.length).toBeGreaterThanOrEqual(3);
    for (const [, , ...parameters] of examples) {
      expect(await callnumber(["schemes", "simulate", ...parameters, "--numbers", "100"])).toMatchObject({
        code: 0,
        stderr: "",
      });
    }
  });
});
