/** `status --check`: each state of a namespace as one line and one exit code. */
import type { GuardStatus, StatusResponse } from "@callnumber/protocol/schemas";
import { expect, test } from "vitest";
import { checkLine, EXIT_CODES, verdictOf, verdictWithout } from "../src/commands/status.js";
import { STATUS } from "./commands-for-test.js";

const ALL = 1_000_000;

function statusOf(runsUsed: number, guard: Partial<GuardStatus> = {}): StatusResponse {
  const runs = { highWaterMark: runsUsed, runsUsed, runsLeft: ALL - runsUsed };
  return { ...STATUS, ...runs, guard: { ...STATUS.guard, ...guard } };
}

const recovering = {
  state: "recovering",
  code: "store_recovering",
  reason: "rolled_back",
  explanation: "why | and\n what",
} as const;
const stopped = { state: "stopped", code: "store_forked", explanation: "recover it" } as const;

test.each([
  ["it leases", statusOf(3), 0, "OK - namespace main leases: mark 3, 999,997 runs left of 1,000,000"],
  ["just below four fifths are used", statusOf(799_999), 0, "OK - "],
  ["four fifths are used", statusOf(800_000), 1, "WARNING - namespace main comes to the end of its run space: 200,000"],
  ["19 of 20 are used", statusOf(950_000), 2, "CRITICAL - namespace main comes to the end of its run space: 50,000"],
  ["all are used", statusOf(ALL), 2, "CRITICAL - "],
  ["the line is reached for a moment", statusOf(3, { headroomRuns: 0 }), 0, "OK - "],
  [
    "it recovers",
    statusOf(3, recovering),
    1,
    "WARNING - namespace main does not lease (store_recovering, rolled_back): why / and what",
  ],
  ["it recovers near the end", statusOf(ALL, recovering), 1, "WARNING - namespace main does not lease"],
  ["it is stopped", statusOf(3, stopped), 2, "CRITICAL - namespace main does not lease (store_forked): recover it"],
])("when %s, the exit code and the line show it", (_, status, exitCode, line) => {
  const verdict = verdictOf(status, []);
  expect(EXIT_CODES[verdict.state]).toBe(exitCode);
  expect(checkLine(verdict)).toContain(`CALLNUMBER ${line}`);
  expect(checkLine(verdict)).toMatch(/^[^|\n]+ \| runs_used=\d+;800000;950000;0;1000000 headroom_runs=\d+;;;0$/);
});

test.each([
  ["critical", 2, "CRITICAL - namespace main, alarm holder_restarts: look | there"],
  ["warning", 1, "WARNING - namespace main, alarm holder_restarts: look | there"],
  ["notice", 0, "OK - namespace main leases"],
] as const)("an alarm of severity %s exits with %i, unless the state is worse", (severity, exitCode, line) => {
  const alarms = [{ name: "holder_restarts", severity, explanation: "look | there" }] as const;
  const verdict = verdictOf(statusOf(3), alarms);
  expect(EXIT_CODES[verdict.state]).toBe(exitCode);
  expect(checkLine(verdict)).toContain(`CALLNUMBER ${line.replace("|", "/")}`);
  expect(verdictOf(statusOf(3, stopped), alarms)).toEqual(verdictOf(statusOf(3, stopped), []));
  expect(verdictOf(statusOf(950_000), alarms)).toEqual(verdictOf(statusOf(950_000), []));
});

test.each([
  ["coordinator_unreachable", 3],
  ["unauthorized", 3],
  ["forbidden", 3],
  ["token_invalid", 3],
  ["invalid_response", 3],
  ["store_unavailable", 2],
  ["namespace_not_found", 2],
])("without a status, %s exits with %i", (code, exitCode) => {
  const verdict = verdictWithout("main", { code, message: "a | b" });
  expect(EXIT_CODES[verdict.state]).toBe(exitCode);
  expect(checkLine(verdict)).toMatch(
    new RegExp(`^CALLNUMBER (UNKNOWN|CRITICAL) - namespace main \\(${code}\\): a / b$`),
  );
});
