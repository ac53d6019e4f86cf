/** What the page tells an operator to type, held against the command and the documents. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ERROR_RULES } from "@callnumber/protocol/wire";
import { describe, expect, test } from "vitest";
import { adviceFor, advisedCodes } from "../src/advice.js";
import { circumstancesOf } from "../src/circumstances.js";

const REPOSITORY = join(import.meta.dirname, "..", "..", "..");
const circumstances = {
  namespace: "lists",
  storeId: "519e69f5-aaaa.1.1795250506950.2",
  floor: "65735",
  isClockToCheck: false,
};
const commands = advisedCodes().flatMap((code) =>
  (adviceFor(code, circumstances)?.steps ?? []).flatMap(({ type }) => (type === undefined ? [] : [type])),
);

/** Refused for a moment, or at the start, or for one request: nothing stands against a namespace. */
const NOT_ADVISED = new Set(["overloaded", "line_reached", "lease_burnt", "shutting_down", "too_many_streams"]);

describe("the advice", () => {
  test("stands for every code that can keep a namespace from leasing", () => {
    const unavailable = Object.entries(ERROR_RULES)
      .filter(([code, { httpStatus }]) => httpStatus === 503 && !NOT_ADVISED.has(code))
      .map(([code]) => code);
    expect(unavailable.length).toBeGreaterThan(20);
    for (const code of unavailable) expect(adviceFor(code, circumstances), code).toBeDefined();
  });

  test("says to type something exactly where docs/errors.md names a verb of the operator", () => {
    const text = readFileSync(join(REPOSITORY, "docs", "errors.md"), "utf8");
    for (const code of advisedCodes()) {
      const section = new RegExp(`^### \`${code}\`\n([^#]+)`, "m").exec(text)?.[1] ?? "";
      for (const [, verb] of section.matchAll(/`callnumber (recover|init|advance-version)\b/g)) {
        const typed = (adviceFor(code, circumstances)?.steps ?? []).map(({ type }) => type ?? "");
        expect(
          typed.some((command) => command.startsWith(`callnumber ${verb} `)),
          `${code}: ${verb}`,
        ).toBe(true);
      }
    }
  });

  test("names only verbs and flags that the command has", () => {
    const sources = ["recover", "init", "status", "doctor", "advance-version"].map((name) =>
      readFileSync(join(REPOSITORY, "packages", "coordinator", "src", "cli", `${name}-command.ts`), "utf8"),
    );
    const options = readFileSync(join(REPOSITORY, "packages", "coordinator", "src", "cli", "options.ts"), "utf8");
    const known = [...sources, options].join("\n");
    for (const command of commands.filter((text) => text.startsWith("callnumber"))) {
      expect(known, command).toMatch(new RegExp(`Command\\("${command.split(" ")[1]}"\\)`));
      for (const [, flag] of command.matchAll(/ --([a-z-]+)/g))
        expect(known, command).toMatch(new RegExp(`"(--)?${flag}\\b`));
    }
  });

  test("names the namespace in each command that acts on one", () => {
    for (const command of commands.filter((text) => /^callnumber (recover|init|status|advance-version)\b/.test(text)))
      expect(command).toContain("--namespace lists");
  });

  test("takes the store id and the floor from the refusal where the record is gone", () => {
    const explanation =
      'namespace "lists" is missing, but run 65735 was leased from it. Nothing is leased. Restore the store. If it is lost, stop the ' +
      "coordinator of an embedded store, and run `callnumber recover --store STORE_URL --namespace lists --store-id 519e69f5-aaaa.1.1795250506950.2 --floor 65735`";
    const guard = { state: "fenced", code: "store_emptied", sinceMs: 0, explanation } as const;
    expect(circumstancesOf({ namespace: "lists", record: null, guard })).toEqual(circumstances);
    const remembered =
      "its checksum is wrong. Remembered here: store id 789d22a9-bbbb.1.1795265073829.2, run 1, generation 0";
    expect(circumstancesOf({ namespace: "main", record: null, guard: { ...guard, explanation: remembered } })).toEqual({
      namespace: "main",
      storeId: "789d22a9-bbbb.1.1795265073829.2",
      floor: "1",
      isClockToCheck: false,
    });
  });
});
