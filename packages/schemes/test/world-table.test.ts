/** How what came of a world is told, in cases that no world of today brings. */
import { expect, test } from "vitest";
import { type Outcome, WORLDS } from "../src/collisions/index.js";
import { outcomeAsJson, worldTable } from "../src/commands/simulate.js";
import { SCHEMES, type Scheme, schemeNamed } from "../src/index.js";
import { plainIo } from "./plain-io.js";

const quiet: Outcome = {
  world: WORLDS.find(({ name }) => name === "good-clocks") as Outcome["world"],
  scheme: schemeNamed("call-number"),
  minted: 1_000,
  repeats: 0,
  waited: 0,
  refused: { clock_went_back: 0, space_used_up: 0 },
  theory: { kind: "none", expected: 0, together: 1 },
  plausible: true,
};
const lines = (first: Partial<Outcome>, ...others: readonly Outcome[]): readonly string[] =>
  worldTable([{ ...quiet, ...first }, ...others], plainIo()).split("\n");

test("a scheme without anything to see stands in a sentence, and every other has a row", () => {
  expect(lines({}).slice(3)).toEqual(["no repeat, as promised: call-number"]);
  const seen: readonly Partial<Outcome>[] = [
    { repeats: 1, theory: { kind: "overlap", expected: 1, together: 1 } },
    { theory: { kind: "birthday", expected: 0.1, together: 1 } },
    { waited: 1 },
    { refused: { clock_went_back: 0, space_used_up: 1 } },
    { plausible: false },
  ];
  for (const each of seen) expect(lines(each).filter((line) => line.startsWith("call-number "))).toHaveLength(1);
  expect(lines({ theory: { kind: "birthday", expected: 0.09, together: 1 } }).at(-1)).toBe(
    "no repeat, and hardly one by chance: call-number",
  );
});

test("what can't be by the theory is said in words, also where the theory is silent", () => {
  const told = lines({ repeats: 3, plausible: false }).join(" ");
  expect(told).toContain("call-number: 3 seen beside 0 expected is no chance");
  expect(lines({ repeats: 3, theory: { kind: "overlap", expected: 3, together: 1 } }).join(" ")).not.toContain(
    "no chance",
  );
});

test("both reasons of a refusal are counted, and told apart in JSON", () => {
  const refused = { clock_went_back: 2, space_used_up: 40 };
  expect(lines({ refused }).find((line) => line.startsWith("call-number "))).toMatch(/ 42$/);
  expect(outcomeAsJson({ ...quiet, refused })).toMatchObject({ refused });
});

test("figures of any size stand under their headings, in no more than 80 columns", () => {
  const crowded = (scheme: Scheme, index: number): Outcome => ({
    ...quiet,
    scheme,
    minted: 10 ** (index % 7),
    repeats: 10 ** (index % 7) - 1,
    waited: 999_999,
    refused: { clock_went_back: 999_999, space_used_up: 0 },
    theory: { kind: "birthday", expected: 1.2345e-29 * 10 ** (3 * index), together: 1 },
  });
  const [first, ...others] = SCHEMES.map(crowded) as [Outcome, ...Outcome[]];
  const table = lines(first, ...others);
  expect(table.filter((line) => line.length > 80)).toEqual([]);
  const headings = table.find((line) => line.startsWith("SCHEME")) ?? "";
  const end = headings.indexOf("REPEATS") + "REPEATS".length;
  for (const line of table.filter((each) => / birthday /.test(each)))
    expect(line.slice(end - 1, end + 1)).toMatch(/\d /);
});
