/** `explain`: what it prints is the reference of errors, and no message names a page that the package does not contain. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../../../test/processes/command.js";
import { errorEntries } from "../dist/commands/explain.js";
import { done, expectFailure, jsonOf } from "./commands-for-test.js";

const PAGE = readFileSync(join(REPOSITORY, "docs/reference/errors.md"), "utf8");

test("explain has every code of the page, each with cause and fix in plain text", () => {
  const codes = [...PAGE.matchAll(/^### `([a-z_]+)`$/gm)].map(([, code]) => code);
  const entries = errorEntries();
  expect(entries.map(({ code }) => code)).toEqual(codes);
  for (const { code, kind, cause, fix } of entries) {
    expect(kind, code).toMatch(/^(HTTP \d{3} · retry: |At start only · retry: |Client|Command)/);
    for (const text of [cause, fix]) expect(text, code).toMatch(/^\S.*\.$/);
    expect(`${cause}${fix}`, code).not.toMatch(/\]\(|\*\*|\.md/);
  }
});

test("explain prints cause and fix, whatever stands around the code", async () => {
  const { stdout } = await done("explain", "store_locked");
  expect(stdout).toMatch(/^store_locked \(At start only .*\)\nCause: Another process .*\.\nFix: Stop it, .*\.\n$/);
  for (const typed of ["(store_locked)", "STORE_LOCKED", "store-locked"])
    expect((await done("explain", typed)).stdout).toBe(stdout);
  const entry = { code: "store_locked", kind: expect.any(String), cause: expect.any(String), fix: expect.any(String) };
  expect(await jsonOf("explain", "store_locked")).toEqual(entry);
});

test("explain advises no new store against the run ceiling: it would repeat the archive's numbers", async () => {
  const { fix } = await jsonOf<{ fix: string }>("explain", "run_ceiling_reached");
  expect(fix).toContain("raise `waitTimeoutMs` (an option of the client), or start fewer importers");
  expect(fix).not.toContain("new store");
});

test("explain lists similar codes for an unknown one, and all codes where none is similar", async () => {
  await expectFailure(["explain", "lost"], 2, /no error has the code "lost"\. Similar: .*namespace_lost/);
  await expectFailure(["explain", "store_lock"], 2, "Similar: store_locked, ");
  await expectFailure(["explain", "xyz"], 2, "All codes: body_too_large, ");
  await expectFailure(["explain"], 2, "Example: callnumber explain store_locked");
});

test("no message of a package names a page that the package does not contain", () => {
  const packages = join(REPOSITORY, "packages");
  const files = readdirSync(packages).flatMap((name) =>
    readdirSync(join(packages, name, "src"), { recursive: true, encoding: "utf8" })
      .filter((file) => /\.tsx?$/.test(file))
      .map((file) => join(packages, name, "src", file)),
  );
  expect(files.length).toBeGreaterThan(100);
  const withoutComments = (path: string) =>
    readFileSync(path, "utf8")
      .replace(/\/\*\*?[\s\S]*?\*\//g, "")
      .replace(/^\s*\/\/.*$/gm, "");
  expect(files.filter((path) => /docs\/[\w/-]+\.md/.test(withoutComments(path)))).toEqual([]);
});
