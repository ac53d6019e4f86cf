/** `callnumber inspect` as an operator runs it: a number, a URL, a typo, or a million lines through a pipe. */
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { inspectResponseSchema } from "@callnumber/protocol/schemas";
import { expect, inject, test } from "vitest";
import { seededRandom } from "../../../test/faults/seeded-random.js";
import { callnumber, serve, shell } from "../../../test/processes/command.js";
import { done, embeddedStore, expectFailure, httpServer, imported, jsonLines, NOWHERE } from "./commands-for-test.js";

/** A coordinator whose first leases begin at run 99, and three numbers of each of two processes. */
async function coordinatorWithNumbers() {
  const store = await embeddedStore();
  await done("init", "--store", store, "--first-run", "99");
  const { url } = await serve(store);
  const to = ["--coordinator", url];
  return { to, url, numbers: [...(await imported(url, 3)), ...(await imported(url, 3))] };
}

/** Answers each request after a random time. */
async function slowCoordinator() {
  const counts = { requests: 0, inFlight: 0, mostInFlight: 0 };
  const random = seededRandom(inject("seed"));
  const url = await httpServer((request, response) => {
    counts.requests++;
    counts.mostInFlight = Math.max(counts.mostInFlight, ++counts.inFlight);
    const callNumber = new URL(request.url ?? "", NOWHERE).pathname.split("/").at(-1);
    const subject = { namespace: "main", callNumber, explanation: "", verdict: "other_version" };
    setTimeout(() => {
      counts.inFlight--;
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...subject, version: 1, run: 1, sequence: 1, hints: [] }));
    }, 20 * random());
  });
  return { to: ["--coordinator", url], counts };
}

test("inspect prints holder, host, pid, coordinator, time and neighbors, also of the number in a URL", async () => {
  const { to, numbers } = await coordinatorWithNumbers();
  const [callNumber = ""] = numbers;
  const shown = await done("inspect", callNumber, "--neighbors", ...to);
  expect(shown.stdout).toMatch(
    new RegExp(
      `^${callNumber}  reported: run 99 was leased to importer \\(\\S+, pid \\d+\\) at \\S+Z, within what it reported\n` +
        "  version 0, run 99, sequence 0\n  leased by coordinator \\S+\n  the same process got nothing before it, and run 100 after it\n$",
    ),
  );
  const url = `https://lists.example.org/message/${callNumber}?x=1`;
  expect(await done("inspect", url, "--neighbors", ...to)).toEqual(shown);
});

test.each([
  [
    "a Safe Link",
    (number: string) => `https://x.safelinks.protection.outlook.com/?url=${link(number, "%2F")}&data=05%7C02`,
  ],
  ["a link of urldefense", (number: string) => `https://urldefense.com/v3/__${link(number)}__;!!Ab-c!xyz$`],
  ["a link in angle brackets", (number: string) => `<${link(number)}>.`],
  ["a link to a file", (number: string) => `${link(number)}.html`],
  ["a sentence", (number: string) => `see ${number}.`],
])("inspect finds the call number in %s", async (_, textWith) => {
  const { to, numbers } = await coordinatorWithNumbers();
  const [callNumber = ""] = numbers;
  expect(await done("inspect", textWith(callNumber), ...to)).toEqual(await done("inspect", callNumber, ...to));
});

const link = (callNumber: string, slash = "/") =>
  ["https:", "", "lists.example.org", "message", callNumber].join(slash);

test("inspect takes none of several call numbers, and offers one whose zeros were dropped", async () => {
  const { to, counts } = await slowCoordinator();
  const { code, stdout } = await callnumber(["inspect", "2VznWE2i or 03KOE60u", "9NKUO8", ...to]);
  expect([code, counts.requests]).toEqual([1, 0]);
  expect(stdout.split("\n")).toEqual([
    '2VznWE2i or 03KOE60u  malformed: "2VznWE2i or 03KOE60u" has 2 call numbers: 2VznWE2i, 03KOE60u. Use one of them',
    '9NKUO8  malformed: "9NKUO8" has 6 characters; a call number has 8. Did you mean 009NKUO8?',
    "",
  ]);
  const asJson = await callnumber(["inspect", "9NKUO8", "--json", ...to]);
  expect(inspectResponseSchema.array().parse(JSON.parse(asJson.stdout))).toMatchObject([
    { callNumber: "9NKUO8", verdict: "malformed", problem: "wrong_length" },
  ]);
});

test("inspect points at a malformed character, and suggests a number", async () => {
  const { to, numbers } = await coordinatorWithNumbers();
  const [callNumber = ""] = numbers;
  const typo = `${callNumber.slice(0, 4)}-${callNumber.slice(4)}`;
  const shown = await callnumber(["inspect", typo, ...to]);
  expect(shown).toMatchObject({
    code: 1,
    stdout:
      `${typo}  malformed: "${typo}" has 9 characters; a call number has 8\n` +
      `  perhaps ${callNumber}: without the text around it; leased to importer, reported\n`,
  });
  const pointed = await callnumber(["inspect", "2Vz_\u202eE2i", ...to]);
  expect(pointed.stdout).toContain("\n   ^\n");
  expect(pointed.stdout).not.toContain("\u202e");
});

test("inspect reports a malformed number also without a coordinator; any other needs one", async () => {
  const nowhere = ["--coordinator", NOWHERE];
  const { code, stdout } = await callnumber(["inspect", "nonsense!", "--json", ...nowhere]);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject([{ verdict: "malformed", callNumber: "nonsense!", hints: [] }]);
  await expectFailure(["inspect", "2VznWE2i", ...nowhere], 1, "coordinator_unreachable");
});

test("inspect sends no request for a text that fits no path", async () => {
  const { to, counts } = await slowCoordinator();
  const odd = ["..", ".", "", "x".repeat(1_000), "ж".repeat(100)];
  const { code, stdout } = await callnumber(["inspect", ...odd, "--json", ...to]);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject(odd.map((callNumber) => ({ verdict: "malformed", callNumber })));
  expect(counts.requests).toBe(0);
  await callnumber(["inspect", "nonsense!", ...to]);
  expect(counts.requests).toBe(1);
});

test("inspect - prints a line for each line, as text or JSON, and exits with 1 for one that can't exist", async () => {
  const { to, numbers } = await coordinatorWithNumbers();
  const [first = "", second = ""] = numbers;
  const input = `${first}\r\n  https://lists.example.org/${second}\n\nnonsense!\n${numbers.at(-1)}`;
  const asJson = await callnumber(["inspect", "-", "--json", ...to], { input });
  expect(asJson.code).toBe(1);
  const inspected = jsonLines<object>(asJson.stdout).map((each) => inspectResponseSchema.parse(each));
  expect(inspected).toMatchObject([
    { callNumber: first, verdict: "reported" },
    { callNumber: second, verdict: "reported" },
    { callNumber: "nonsense!", verdict: "malformed" },
    { callNumber: numbers.at(-1), verdict: "reported" },
  ]);
  const asText = await callnumber(["inspect", "-", ...to], { input: numbers.join("\n") });
  expect(asText.code).toBe(0);
  const lines = asText.stdout.trimEnd().split("\n");
  expect(lines.map((line) => line.slice(0, 8))).toEqual(numbers);
  expect(lines[0]).toContain("  reported: run 99 was leased to importer (");
});

test("inspect - sends 4 requests at a time, and prints in the order of the lines", async () => {
  const { to, counts } = await slowCoordinator();
  const numbers = Array.from({ length: 400 }, (_, run) => encodeCallNumber({ version: 0, run, sequence: 0 }));
  const { stdout } = await callnumber(["inspect", "-", "--json", ...to], { input: numbers.join("\n") });
  expect(jsonLines<{ callNumber: string }>(stdout).map(({ callNumber }) => callNumber)).toEqual(numbers);
  expect(counts.mostInFlight).toBe(4);
});

test("inspect - ends quietly when its reader leaves", async () => {
  const { url, numbers } = await coordinatorWithNumbers();
  const { stdout, stderr } = await shell(
    `yes ${numbers[0]} | callnumber inspect - --json --coordinator ${url} | head -n 200 | wc -l`,
  );
  expect([stdout.trim(), stderr]).toEqual(["200", ""]);
});

test.each([
  [
    "without a coordinator",
    "2VznWE2i\n".repeat(100),
    1,
    /^callnumber: no coordinator answers.*coordinator_unreachable\)\n$/s,
  ],
  ["for a line without end", "x".repeat(3_000_000), 2, /line 1 of standard input has no end/],
])("inspect - fails once %s", async (_, input, code, message) => {
  const finished = await callnumber(["inspect", "-", "--coordinator", NOWHERE], { input });
  expect(finished).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(message) });
});
