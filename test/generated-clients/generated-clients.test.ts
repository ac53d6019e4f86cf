/** `/openapi.json` is valid, and generators make clients of it that compile: the types of TypeScript here, a client in Python in the slow test. */
import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, test } from "vitest";
import { folderForTest, REPOSITORY, serve } from "../processes/command.js";
import { outputOf } from "../python/python.js";

const GENERATOR = join(import.meta.dirname, "node_modules", "openapi-typescript", "bin", "cli.js");
const COMPILER = join(REPOSITORY, "node_modules", "typescript", "bin", "tsc");

test("the document is valid OpenAPI 3.1", async () => {
  const { url } = await serve("memory:");
  const document = await (await fetch(`${url}/openapi.json`)).text();
  const validator = new Validator();
  expect(await validator.validate(JSON.parse(document))).toEqual({ valid: true });
  expect(validator.version).toBe("3.1");
  const invalid = JSON.parse(document.replace('"responses"', '"answers"'));
  expect(await validator.validate(invalid)).toMatchObject({ valid: false });
});

/** A line that must be wrong shows that the types are not all `any`. */
const PROGRAM = `import type { components, operations } from "./api.js";

type Lease = operations["leases"]["responses"][201]["content"]["application/json"];
export const runsOf = ({ firstRun, runCount }: Lease): number => firstRun + runCount;
export const query: operations["numbers"]["parameters"]["query"] = { count: 3 };
export const code: operations["numbers"]["responses"][409]["content"]["application/json"]["code"] = "store_mismatch";
export const report: components["schemas"]["ReportRequest"] = { nonce: "n", lastSequence: null, state: "open" };
// @ts-expect-error: it is no state
report.state = "lost";
`;

test("openapi-typescript makes types of the document that compile, and that a program can use", async () => {
  const folder = await folderForTest();
  const { url } = await serve("memory:");
  await outputOf(process.execPath, GENERATOR, `${url}/openapi.json`, "--output", join(folder, "api.ts"));
  await writeFile(join(folder, "program.ts"), PROGRAM);
  const options = ["--ignoreConfig", "--strict", "--noEmit", "--module", "nodenext", "--types", ""];
  const compiled = spawnSync(process.execPath, [COMPILER, ...options, join(folder, "program.ts")], {
    encoding: "utf8",
  });
  expect(compiled).toMatchObject({ stdout: "", status: 0 });
});
