/** What people paste instead of a call number, and which number is in it. */

import { expect, test } from "vitest";
import { callNumberIn } from "../src/call-number-in.js";

test.each([
  ["2VznWE2i", "2VznWE2i"],
  ["https://lists.example.org/message/2VznWE2i", "2VznWE2i"],
  ["  https://lists.example.org/message/2VznWE2i\n", "2VznWE2i"],
  ["https://lists.example.org/message/2VznWE2i/", "2VznWE2i"],
  ["https://lists.example.org/message/2VznWE2i/raw?from=dxlGgaI3#03KOE60u", "2VznWE2i"],
  ["https://lists.example.org/03KOE60u/message/2VznWE2i", "2VznWE2i"],
  ["HTTPS://lists.example.org/2%56znWE2i", "2VznWE2i"],
  ["/message/2VznWE2i", "2VznWE2i"],
  ["lists.example.org/2VznWE2i", "2VznWE2i"],
  ["x/y://2VznWE2i", "2VznWE2i"],
])("callNumberIn(%j) is %s", (text, callNumber) => {
  expect(callNumberIn(text)).toBe(callNumber);
});

test.each([
  "",
  "2VznWE2",
  " 2VznWE2i",
  "2VznWE2i.",
  "https://archives/",
  "  https://archives/",
  "https://xarchives/",
  "https://archives?2VznWE2i",
  "https://lists.example.org/message/2VznWE2",
  "https://lists.example.org/100%/2VznWE2",
])("callNumberIn(%j) is null", (text) => {
  expect(callNumberIn(text)).toBeNull();
});

test("callNumberIn finds eight characters that are no call number: the codec rejects them", () => {
  expect(callNumberIn("https://lists.example.org/zzzzzzzz")).toBe("zzzzzzzz");
});
