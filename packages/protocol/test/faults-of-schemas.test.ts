/** What a schema rejects is said in our words: the field, what it must be, and the value that was given. */
import { faultsOf, SCHEMA_WORDS, SECRET_SCHEMA_WORDS } from "@callnumber/protocol/schemas";
import { expect, test } from "vitest";
import * as z from "zod";

const schema = z.strictObject({
  count: z.int().min(1).max(64),
  name: z.string().min(2).max(5),
  state: z.enum(["open", "closed"]),
  parts: z.array(z.boolean()).min(1).optional(),
  id: z.string().regex(/^x/, "an id begins with x"),
});
const good = { count: 1, name: "abc", state: "open", id: "x" };

const faultsIn = (value: unknown, words = SCHEMA_WORDS) => {
  const { error } = schema.safeParse(value, words);
  return error === undefined ? "" : faultsOf(error, "the body");
};

test.each<[unknown, string]>([
  [{ ...good, count: 65 }, "count must be at most 64, not 65"],
  [{ ...good, count: 0 }, "count must be at least 1, not 0"],
  [{ ...good, count: "1" }, 'count must be a number, not "1"'],
  [{ ...good, count: 1.5 }, "count must be a whole number, not 1.5"],
  [{ ...good, count: [1] }, "count must be a number, not an array"],
  [{ ...good, name: "a" }, "name must have at least 2 characters"],
  [{ ...good, name: "abcdef" }, "name must have at most 5 characters"],
  [{ ...good, name: undefined }, "name is missing"],
  [{ ...good, state: "ajar" }, 'state must be one of "open", "closed", not "ajar"'],
  [{ ...good, state: undefined }, "state is missing"],
  [{ ...good, parts: [] }, "parts must have at least 1 entries"],
  [{ ...good, parts: [{}] }, "parts.0 must be true or false, not an object"],
  [{ ...good, id: "y" }, "id: an id begins with x"],
  [{ ...good, other: 1 }, 'the body has no field "other"'],
  [[1], "the body must be an object, not an array"],
  [null, "the body must be an object, not null"],
])("the faults of %j", (value, faults) => expect(faultsIn(value)).toBe(faults));

test("the values of what may be a secret are left out", () => {
  expect(faultsIn({ ...good, count: 65 }, SECRET_SCHEMA_WORDS)).toBe("count must be at most 64");
});

test("many faults are one line of at most 200 characters, which counts those that it leaves out", () => {
  const faults = faultsIn({ count: "x".repeat(300), name: 2, state: 3, parts: 4, id: 5 });
  expect(faults).toMatch(/^count must be a number, not "x{40}…"; name .*; and \d more$/);
  expect(faults.length).toBeLessThanOrEqual(200);
});
