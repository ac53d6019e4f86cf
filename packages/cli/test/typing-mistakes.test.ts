/** What people type for something else: the command names what they meant, or an example, and does nothing. */
import { expect, test } from "vitest";
import { callnumber } from "../../../test/processes/command.js";
import { expectFailure } from "./commands-for-test.js";

const NUMBER = "2VznWE2i";

/** The command line, and the last line of the answer. */
const MISTAKES: readonly (readonly [typed: string, answer: string])[] = [
  ["start", '(Did you mean "callnumber serve"?)'],
  ["list", '(Did you mean "callnumber runs"?)'],
  ["new", '(Did you mean "callnumber next"?)'],
  ["migrate", '(Did you mean "callnumber move"?)'],
  ["SERVE", '(Did you mean "callnumber serve"?)'],
  ["decod", "(Did you mean decode?)"],
  [NUMBER, `(Did you mean "callnumber inspect ${NUMBER}"?)`],
  [`https://lists.example.org/${NUMBER}`, `(Did you mean "callnumber inspect https://lists.example.org/${NUMBER}"?)`],
  ["help mailman", 'callnumber: there is no command "mailman"'],
  ["help start", '(Did you mean "callnumber serve"?)'],
  ["version --all", '(Did you mean "callnumber --version"?)'],
  ["token add", '(Did you mean "callnumber token create"?)'],
  ["next 5", '(Did you mean "callnumber next -n 5"?)'],
  ["next --n 5", "(Did you mean -n?)"],
  ["next \u2013n 5", '(Did you mean "callnumber next -n 5"?)'],
  ["next \u2014count 5", '(Did you mean "callnumber next --count 5"?)'],
  ["next --url http://127.0.0.1:7300", "(Did you mean --coordinator?)"],
  ["next --token abc", "(Did you mean --token-file?)"],
  ["runs my-importer", '(Did you mean "callnumber runs --holder my-importer"?)'],
  ["runs -n 5", "(Did you mean --limit?)"],
  ["status main", '(Did you mean "callnumber status --namespace main"?)'],
  ["status --all", "(Did you mean --all-namespaces?)"],
  ["init lists", '(Did you mean "callnumber init --namespace lists"?)'],
  ["serve 7301", '(Did you mean "callnumber serve --port 7301"?)'],
  ["serve -p 7301", "(Did you mean --port?)"],
  ["serve redis://127.0.0.1", '(Did you mean "callnumber serve --store redis://127.0.0.1"?)'],
  ["retention 90", '(Did you mean "callnumber retention --days 90"?)'],
  ["backup copy.db", '(Did you mean "callnumber backup --to copy.db"?)'],
  ["move redis://127.0.0.1", '(Did you mean "callnumber move --to redis://127.0.0.1"?)'],
  ["advance-version --yes", "(Did you mean --apply?)"],
  ["recover --force", "(Did you mean --apply?)"],
  ["recover --dry-run", "Without --apply nothing is changed"],
  ["recover apply", "callnumber: recover takes no arguments, not 1"],
  ["recover help", '(Did you mean "callnumber recover --help"?)'],
  ["-?", '(Did you mean "callnumber --help"?)'],
  ["inspect", `Example: callnumber inspect ${NUMBER}`],
  ["decode", `Example: callnumber decode ${NUMBER}`],
  ["encode", "Example: callnumber encode 0 99 345"],
  ["backup", "Example: callnumber backup --to store-2026-11-26.db"],
  ["token revoke --tokens-file x", "Example: callnumber token revoke 5e884898 --tokens-file tokens"],
  ["schemes parse", "Example: callnumber schemes parse 454947766275222906"],
];

test.each(MISTAKES)("%s is answered with %s", async (typed, answer) => {
  const { stderr } = await expectFailure(typed.split(" "), 2, "");
  expect(stderr.trimEnd().split("\n").at(-1)).toBe(answer);
});

test("encode with a number too few shows an example", async () => {
  await expectFailure(["encode", "0", "99"], 2, "such as callnumber encode 0 99 345");
});

test.each(["-v", "version"])("%s prints the release", async (word) => {
  expect(await callnumber([word])).toEqual(await callnumber(["--version"]));
});

test("advice is part of the message in JSON, and repeats no password", async () => {
  const { stderr } = await expectFailure(["move", "redis://u:secret@127.0.0.1", "--json"], 2, "");
  const { code, message } = JSON.parse(stderr) as { code: string; message: string };
  expect(code).toBe("misuse");
  expect(message).toMatch(/callnumber move --to redis:\S*\*{3}@127\.0\.0\.1/);
  expect(message).not.toContain("secret");
});
