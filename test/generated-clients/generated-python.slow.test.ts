/** A client in Python that a generator makes of `/openapi.json`: it compiles, and gets numbers. Needs Java, which the generator is written in. */
import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folderForTest, serve } from "../processes/command.js";
import { outputOf, pythonWith } from "../python/python.js";

/** The last release that npm has whole. */
const GENERATOR = join(
  import.meta.dirname,
  "node_modules/@openapitools/openapi-generator-cli/bin/openapi-generator.jar",
);
/** What generated clients import. */
const python = pythonWith("certifi", "dateutil", "six", "urllib3");
const isMissing = python === undefined || spawnSync("java", ["-version"]).status !== 0;
if (isMissing)
  console.log("no client in Python is generated: Java, or python3 with certifi, dateutil, six and urllib3 is missing");

type Json = Readonly<Record<string, unknown>>;

/** As this generator needs it: OpenAPI 3.0 says null by a keyword, lacks `const` and `propertyNames`, and allows nothing next to a reference. */
function asOpenApi30(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asOpenApi30);
  if (typeof value !== "object" || value === null) return value;
  const { anyOf, type, const: only, propertyNames: _, ...rest } = value as Json;
  const choices = [anyOf ?? type ?? []].flat().map((one) => (typeof one === "string" ? { type: one } : one)) as Json[];
  const choice = choices.find((one) => one["type"] !== "null");
  const ofValue = { ...choice, ...rest, ...(only !== undefined && { enum: [only] }) };
  const converted = Object.entries(ofValue).map(([key, one]) => [key, asOpenApi30(one)]);
  const { $ref, ...json }: Record<string, unknown> = Object.fromEntries(converted);
  if (choices.length > 1) json["nullable"] = true;
  if ($ref === undefined) return json;
  return Object.keys(json).length === 0 ? { $ref } : { ...json, allOf: [{ $ref }] };
}

const PROGRAM = `
import sys, openapi_client
api = openapi_client.DefaultApi(openapi_client.ApiClient(openapi_client.Configuration(host=sys.argv[1])))
request = openapi_client.NumbersRequest(expected_store_id=api.status("main").store_id)
print(len(api.numbers("main", count=3, numbers_request=request).call_numbers), api.runs("main").leases[0].holder.name)
try:
    api.report("main", 5, openapi_client.ReportRequest(nonce="n" * 16, state="closed", last_sequence=0))
except openapi_client.ApiException as error:
    print(error.status)
`;

test.skipIf(isMissing)("a client in Python is generated, compiles and gets numbers", async () => {
  const folder = await folderForTest();
  const { url } = await serve("memory:");
  const document = await (await fetch(`${url}/openapi.json`)).json();
  const input = join(folder, "openapi.json");
  await writeFile(input, JSON.stringify({ ...(asOpenApi30(document) as Json), openapi: "3.0.3" }));
  await outputOf("java", "-jar", GENERATOR, "generate", "-g", "python", "-i", input, "-o", folder);
  await outputOf(python as string, "-m", "compileall", "-q", join(folder, "openapi_client"));
  await writeFile(join(folder, "program.py"), PROGRAM);
  expect(await outputOf(python as string, join(folder, "program.py"), url)).toBe("3 callnumber-coordinator\n404\n");
});
