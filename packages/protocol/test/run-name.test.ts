/** The names of runs: `99`, `1/65556`. */
import { expect, test } from "vitest";
import { nameOfLedgerId, parseRunName, pathOfRun, runName, runsName, whyAmbiguous } from "../src/api.js";
import { runNameSchema } from "../src/schemas.js";

const RUN_MAX = 2 ** 30 - 1;

test("a run is its own name while the namespace has had version 0 alone, and has its version afterwards", () => {
  expect(runName(0, 99)).toBe("99");
  expect(runName(0, 99, 0)).toBe("99");
  expect(runName(0, 99, 1)).toBe("0/99");
  expect(runName(1, 65_556)).toBe("1/65556");
  expect(runName(1, 65_556, 2)).toBe("1/65556");
  expect(nameOfLedgerId(2 ** 30 + 65_556)).toBe("1/65556");
  expect(nameOfLedgerId(7, 1)).toBe("0/7");
});

test("consecutive runs have the name of the first, and the number of the last", () => {
  expect(runsName({ version: 0, firstRun: 7, runCount: 1 })).toBe("7");
  expect(runsName({ version: 0, firstRun: 7, runCount: 3 })).toBe("7-9");
  expect(runsName({ version: 0, firstRun: 7, runCount: 3 }, 1)).toBe("0/7-9");
  expect(runsName({ version: 1, firstRun: 7, runCount: 2 })).toBe("1/7-8");
});

test.each([
  ["0", undefined, 0],
  ["99", undefined, 99],
  [String(RUN_MAX), undefined, RUN_MAX],
  ["65,556", undefined, 65_556],
  ["0/99", 0, 99],
  ["1/65556", 1, 65_556],
  ["1/65,556", 1, 65_556],
  [`7/${RUN_MAX}`, 7, RUN_MAX],
  ["1/1,073,741,823", 1, RUN_MAX],
])("%s is read as a run", (text, version, run) => {
  expect(parseRunName(text)).toEqual({ version, run });
  expect(runNameSchema.parse(text)).toEqual({ version, run });
});

test.each([
  ["", "-1", "1.5", "x", " 1", "1 ", "01", "1/01", "1/", "/1", "8/1", "10/1", "1/2/3", "1-2", "1e3", "0x10"],
  [String(RUN_MAX + 1), `1/${RUN_MAX + 1}`, String(2 ** 30 + 65_556), "9999999999", "1,2", "65,55", "0,001", "1,,000"],
])("%s and the like are no runs", (...texts) => {
  for (const text of texts) {
    expect(parseRunName(text), text).toBeUndefined();
    expect(runNameSchema.safeParse(text).error?.issues[0]?.message, text).toContain("1/65556 (version/run)");
  }
});

test("a run without its version is known only in a namespace that has had version 0 alone", () => {
  expect(whyAmbiguous({ version: undefined, run: 7 }, 0)).toBeUndefined();
  expect(whyAmbiguous({ version: 0, run: 7 }, 1)).toBeUndefined();
  expect(whyAmbiguous({ version: undefined, run: 7 }, 2)).toBe(
    "run 7 could be of any version from 0 to 2: write it as 2/7 (version/run)",
  );
});

test("the path of a run has its version in a segment of its own", () => {
  expect(pathOfRun("main", { version: undefined, run: 99 })).toBe("/v1/namespaces/main/runs/99");
  expect(pathOfRun("main", { version: 1, run: 65_556 })).toBe("/v1/namespaces/main/runs/1/65556");
});
