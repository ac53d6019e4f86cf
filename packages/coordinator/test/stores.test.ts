/** The contract, for each store; and what is particular to one, or shared by some. */
import { expect, test } from "vitest";
import { labelsIn, labelsText } from "../src/stores/stored-shapes.js";
import { describeStoreContract } from "./store-contract.js";
import { HAS_REDIS, openMemory, openRedis, openSqlite } from "./stores-for-test.js";

describeStoreContract("memory", openMemory, { remembers: false, sharesClock: true });
describeStoreContract("embedded", openSqlite, { remembers: true, sharesClock: true });
if (HAS_REDIS) describeStoreContract("Redis", openRedis, { remembers: true, sharesClock: false });

test("the memory store reports that it is lost with its process, and what to use instead", async () => {
  const { store } = await openMemory();
  expect(store.isExclusive).toBe(false);
  expect(await store.preflight()).toEqual([
    expect.objectContaining({
      what: expect.stringContaining("in memory"),
      remedy: expect.stringContaining("sqlite:PATH"),
      override: "no-persistence",
    }),
  ]);
});

test("stored labels are sorted by name, and are read again", () => {
  const names = ["b", "a", "c", "aa", "B"];
  const labels = Object.fromEntries(names.map((name) => [name, `of ${name}`]));
  const text = '{"B":"of B","a":"of a","aa":"of aa","b":"of b","c":"of c"}';
  expect(labelsText(labels)).toBe(text);
  expect(labelsText(Object.fromEntries(Object.entries(labels).reverse()))).toBe(text);
  expect(labelsIn(text)).toEqual(labels);
  expect(labelsIn("{}")).toEqual({});
});

test.each(["", "{", "null", "1", '"a"', "true", "[]", '["a"]', '{"a":1}', '{"a":"b","c":null}'])(
  "stored labels are undefined when the text is %j",
  (text) => expect(labelsIn(text)).toBeUndefined(),
);
