/** Commands that send a token: over plain HTTP to another machine they say so, once, where no program reads. */
import { expect, test } from "vitest";
import { callnumber } from "../../../test/processes/command.js";

/** Of no machine (RFC 6890); who answers instead, if anybody, is not the point. */
const ELSEWHERE = "http://240.0.0.1:7300";
const WORD = /^callnumber: the token goes to http:\/\/240\.0\.0\.1:7300 in plain text.*$/gm;
const withToken = { env: { CALLNUMBER_TOKEN: "cn_secret" } };
const at = (coordinator: string) => ["--coordinator", coordinator];

test.each([["status", "--json"], ["export"], ["next"]])("%s says it once, on standard error", async (...words) => {
  const { stdout, stderr } = await callnumber([...words, ...at(ELSEWHERE)], withToken);
  expect(stderr.match(WORD)).toHaveLength(1);
  expect(stdout + stderr).not.toContain("cn_secret");
  expect(stdout).not.toContain("plain text");
});

test.each([
  ["without a token", ELSEWHERE, {}],
  ["to this machine by its address", "http://127.0.0.1:1", withToken],
  ["to this machine by its other address", "http://[::1]:1", withToken],
  ["to this machine by its name", "http://localhost:1", withToken],
  ["by TLS", "https://240.0.0.1:7300", withToken],
])("nothing is said %s", async (_, coordinator, options) => {
  const { code, stderr } = await callnumber(["status", ...at(coordinator)], options);
  expect(code).toBe(1);
  expect(stderr).not.toContain("plain text");
});
