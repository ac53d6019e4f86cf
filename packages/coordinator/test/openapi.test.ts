/** `/openapi.json` describes every route, field, number and error. */
import { ERROR_RULES, type ErrorCode, ROUTES } from "@callnumber/protocol/api";
import { describe, expect, test } from "vitest";
import { type Field, operations, schemas } from "./described-api.js";
import { served } from "./served.js";

const { console: _, ...DESCRIBED } = ROUTES;

test("every route but the console is described, under its name and with a summary", () => {
  const paths = Object.entries(DESCRIBED).map(([id, path]) => [id, path.replace(/:(\w+)/g, "{$1}")]);
  expect(operations.map(({ operationId, path }) => [operationId, path]).sort()).toEqual(paths.sort());
  expect(operations.filter(({ summary }) => !/^\w/.test(summary))).toEqual([]);
});

test.each(operations)("$method $path gives each parameter a description, and each number a unit and a range", (one) => {
  for (const { name, description, schema } of one.parameters ?? []) expectDescribed(name, { ...schema, description });
});

test.each(Object.entries(schemas))(
  "%s gives each field a description, and each number a unit and a range",
  (_, schema) => {
    expect(schema.description).toMatch(/\w/);
    for (const [name, field] of Object.entries(schema.properties ?? {})) expectDescribed(name, field);
  },
);

function expectDescribed(name: string, field: Field): void {
  expect(field.description, name).toMatch(/\w/);
  for (const one of [field, ...(field.anyOf ?? []), ...(field.items ? [field.items] : [])]) {
    if (one.type !== "integer" && one.type !== "number") continue;
    expect(one["x-unit"], name).toMatch(/\w/);
    if (one.enum === undefined) expect(one.minimum, name).toBeTypeOf("number");
    if (one.enum === undefined && one.type === "integer") expect(one.maximum, name).toBeTypeOf("number");
  }
}

test("every reference has its object, and every object but those of lines and events is referred to", () => {
  const inPaths = [...JSON.stringify([operations, schemas]).matchAll(/"#\/components\/schemas\/(\w+)"/g)];
  const ids = new Set(inPaths.map(([, id]) => id as string));
  expect([...ids, "OperatorEvent", "ExportEnd"].sort()).toEqual(Object.keys(schemas).sort());
});

describe("errors", () => {
  test("the code of an error is one of the closed list", () => {
    expect(schemas["Error"]?.properties?.["code"]?.enum).toEqual(Object.keys(ERROR_RULES));
  });

  test.each(operations)("$method $path lists its codes by their statuses", ({ responses, security }) => {
    const errors = Object.entries(responses).filter(([status]) => Number(status) >= 400);
    expect("401" in responses).toBe(security.length > 0);
    for (const [status, { content, headers = {} }] of errors) {
      const codes = content["application/json"]?.schema?.properties?.["code"]?.enum as readonly ErrorCode[];
      expect(codes.length).toBeGreaterThan(0);
      expect(codes.map((code) => ERROR_RULES[code].httpStatus)).toEqual(codes.map(() => Number(status)));
      expect("Retry-After" in headers).toBe(codes.some((code) => ERROR_RULES[code].retry === "later"));
    }
  });

  test("every code is one of some operation, but those of no route and those of commands", () => {
    const listed = new Set(operations.flatMap(({ codes }) => codes));
    const others = ["method_not_allowed", "namespace_exists", "version_still_active", "coordinator_still_running"];
    expect([...listed, ...others].sort()).toEqual(Object.keys(ERROR_RULES).sort());
  });
});

test("the document is the same whatever is off", async () => {
  const [off, on] = [await served(), await served({ publicInspect: true, startedWith: STARTED_WITH })];
  expect((await on.get("/openapi.json")).text).toBe((await off.get("/openapi.json")).text);
});

const STARTED_WITH = {
  store: "memory:",
  startedAtMs: 1,
  settings: [],
  commands: { storeOption: "", checkpointOption: "" },
};
