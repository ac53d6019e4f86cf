/** What people paste instead of a call number, and which number is in it. */

import { expect, test } from "vitest";
import { callNumberIn, UnclearTextError } from "../src/api.js";

const LINK = "https://lists.example.org/message/2VznWE2i";
const SAFE_LINK_END =
  "data=05%7C02%7Cann%40example.org%7Cba5fd6e9c0ae4d4c2d4308da4a2e0000%7C84df9e7fe9f640afb435aaaaaaaaaaaa%7C1%7C0%7C638%7CUnknown" +
  "%7CTWFpbGZsb3d8eyJWIjoi%3D%3D%7C3000%7C%7C%7C&sdata=q%2B03KOE60u%2Fr7%3D&reserved=0";
const safeLink = (url: string) =>
  `https://nam12.safelinks.protection.outlook.com/?url=${encodeURIComponent(url)}&${SAFE_LINK_END}`;
const urlDefense = (url: string) => `https://urldefense.com/v3/__${url}__;!!AbCdEf-Gh!x03KOE60u-y_dxlGgaI3-z$`;

test.each([
  ["2VznWE2i", "2VznWE2i"],
  [LINK, "2VznWE2i"],
  [`  ${LINK}\n`, "2VznWE2i"],
  [`${LINK}/`, "2VznWE2i"],
  [`${LINK}/raw?from=dxlGgaI3#03KOE60u`, "2VznWE2i"],
  ["https://lists.example.org/03KOE60u/message/2VznWE2i", "2VznWE2i"],
  ["https://archives.example.org/archives/message/2VznWE2i/download", "2VznWE2i"],
  ["https://lists.example.org/2VznWE2i?from=dxlGgaI3#03KOE60u", "2VznWE2i"],
  ["https://archives.example.org/?id=2VznWE2i", "2VznWE2i"],
  ["HTTPS://lists.example.org/2%56znWE2i", "2VznWE2i"],
  ["https://lists.example.org/100%/2VznWE2i", "2VznWE2i"],
  ["/message/2VznWE2i", "2VznWE2i"],
  ["lists.example.org/2VznWE2i", "2VznWE2i"],
  ["x/y://2VznWE2i", "2VznWE2i"],
  [" 2VznWE2i", "2VznWE2i"],
  ["2VznWE2i.", "2VznWE2i"],
  ["see 2VznWE2i.", "2VznWE2i"],
  ["“2VznWE2i”, 2VznWE2i", "2VznWE2i"],
  ["<2VznWE2i@lists.example.org>", "2VznWE2i"],
  [`<${LINK}>.`, "2VznWE2i"],
  [`[the letter](${LINK})`, "2VznWE2i"],
  ["https://lists.example.org/009NKUO8.html", "009NKUO8"],
  ["https://lists.example.org/message/009NKUO8.html", "009NKUO8"],
  ["https://lists.example.org/archives/2VznWE2i", "2VznWE2i"],
  ["https://lists.example.org/2VznWE2i/download", "2VznWE2i"],
  ["https://lists.example.org/message/archives", "archives"],
  [safeLink(LINK), "2VznWE2i"],
  [safeLink("https://lists.example.org/2VznWE2i"), "2VznWE2i"],
  [urlDefense(LINK), "2VznWE2i"],
  [urlDefense("https://lists.example.org/2VznWE2i"), "2VznWE2i"],
  [safeLink(urlDefense(LINK)), "2VznWE2i"],
  [urlDefense(safeLink(LINK)), "2VznWE2i"],
  [encodeURIComponent(encodeURIComponent(safeLink(safeLink(LINK)))), "2VznWE2i"],
])("callNumberIn(%j) is %s", (text, callNumber) => {
  expect(callNumberIn(text)).toBe(callNumber);
});

test.each([
  "",
  "2VznWE2_",
  "2Vzn-WE2i",
  "2VznWE2ix",
  "see nonsense!",
  "https://lists.example.org/archives/9NKUO8",
  "see archives",
  "https://archives/",
  "  https://archives/",
  "https://xarchives/",
  "https://lists.example.org/message/2Vzn",
  "https://lists.example.org/100%/2VznWE2",
  `${"%25".repeat(40)}32VznWE2`,
])("callNumberIn(%j) is null", (text) => {
  expect(callNumberIn(text)).toBeNull();
});

test("callNumberIn finds the segment that is not a call number: the codec rejects it", () => {
  expect(callNumberIn("zzzzzzzz")).toBe("zzzzzzzz");
  expect(callNumberIn("https://lists.example.org/zzzzzzz9")).toBe("zzzzzzz9");
  expect(callNumberIn("https://lists.example.org/archives/message/zzzzzzzz")).toBe("zzzzzzzz");
});

test.each([
  ["03KOE60u or 2VznWE2i", ["03KOE60u", "2VznWE2i"]],
  [`${LINK} and https://lists.example.org/message/03KOE60u`, ["2VznWE2i", "03KOE60u"]],
])("callNumberIn(%j) guesses none of several call numbers, and lists them", (text, candidates) => {
  const error = unclearIn(text);
  expect(error).toMatchObject({ name: "CallNumberError", code: "wrong_length", candidates });
  expect(error.message).toContain(`has 2 call numbers: ${candidates.join(", ")}. Use one of them`);
});

test("callNumberIn lists five of many call numbers", () => {
  const many = Array.from({ length: 300 }, (_, index) => `0000${String(index).padStart(4, "0")}`).join(" ");
  const error = unclearIn(many);
  expect(error.candidates).toHaveLength(300);
  expect(error.message).toMatch(/ has 300 call numbers: (\d{8}, ){4}\d{8}, …\. Use one of them$/);
  expect(error.message.length).toBeLessThan(200);
});

test.each([
  ["9NKUO8", "009NKUO8", 6],
  [" 12345\n", "00012345", 5],
  ["3KOE60u", "03KOE60u", 7],
  ["https://lists.example.org/message/9NKUO8", "009NKUO8", 6],
  ["https://lists.example.org/archives/message/9NKUO8.html", "009NKUO8", 6],
])("callNumberIn(%j) offers %s with its zeros, and does not accept the text", (text, candidate, length) => {
  const error = unclearIn(text);
  expect(error).toMatchObject({ code: "wrong_length", candidates: [candidate] });
  expect(error.message).toBe(
    `"${candidate.slice(8 - length)}" has ${length} characters; a call number has 8. Did you mean ${candidate}?`,
  );
});

function unclearIn(text: string): UnclearTextError {
  try {
    expect.fail(`${callNumberIn(text)} was found`);
  } catch (error) {
    if (error instanceof UnclearTextError) return error;
    throw error;
  }
}
