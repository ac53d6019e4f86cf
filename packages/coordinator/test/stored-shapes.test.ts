/** Labels as a store keeps them: the same labels are the same text, and no other text is taken for labels. */
import { expect, test } from "vitest";
import { labelsIn, labelsText } from "../src/stores/stored-shapes.js";

test("labels are sorted by name, and come back", () => {
  const names = ["b", "a", "c", "aa", "B"];
  const labels = Object.fromEntries(names.map((name) => [name, `of ${name}`]));
  const text = '{"B":"of B","a":"of a","aa":"of aa","b":"of b","c":"of c"}';
  expect(labelsText(labels)).toBe(text);
  expect(labelsText(Object.fromEntries(Object.entries(labels).reverse()))).toBe(text);
  expect(labelsIn(text)).toEqual(labels);
  expect(labelsIn("{}")).toEqual({});
});

test.each(["", "{", "null", "1", '"a"', "true", "[]", '["a"]', '{"a":1}', '{"a":"b","c":null}'])(
  "%j are no labels",
  (text) => expect(labelsIn(text)).toBeUndefined(),
);
