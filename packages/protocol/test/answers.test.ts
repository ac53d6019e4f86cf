/** The schemas of a coordinator's responses and queries: a valid response passes as it is, and each range and list has its limits. */
import { expect, test } from "vitest";
import type { z } from "zod";
import { ALARM_NAMES, ALARM_SEVERITIES, ERROR_RULES, HISTORY_WINDOWS_MS, SETTING_ORIGINS } from "../src/api.js";
import {
  callNumberAsNumberSchema,
  capacityResponseSchema,
  errorResponseSchema,
  exportEndSchema,
  exportQuerySchema,
  historyQuerySchema,
  historyResponseSchema,
  inspectQuerySchema,
  inspectResponseSchema,
  namespacesResponseSchema,
  publicCallNumberResponseSchema,
  runResponseSchema,
  runsQuerySchema,
  runsResponseSchema,
  settingsResponseSchema,
  statusResponseSchema,
} from "../src/schemas.js";

const atMs = 1_795_000_000_000;
const holder = { name: "importer", host: "mail-1", pid: 4711, labels: { archive: "lists" } };
const progress = { run: 99, lastSequence: 345, state: "open", reportedAtMs: atMs };
const lease = {
  version: 1,
  firstRun: 98,
  runCount: 2,
  leasedAtMs: atMs,
  holder,
  coordinator: "c-1",
  tokenId: "0a1b2c3d",
  nonce: "0123456789abcdef",
  progress,
};
const guard = {
  state: "recovering",
  code: "store_recovering",
  reason: "heartbeat_expired",
  sinceMs: atMs,
  explanation: "why",
  generation: 7,
  headroomRuns: 65_536,
  nodeCount: 3,
  lastRecovery: { atMs, reason: "heartbeat_expired", skippedRunCount: 12, explanation: "what" },
};
const rates = [{ windowMs: 3_600_000, runs: 5, runsPerDay: 1.5, exhaustedAtMs: atMs }];
const status = {
  namespace: "main",
  storeId: "s",
  store: "redis",
  coordinator: "c-1",
  version: 1,
  firstRun: 1,
  highWaterMark: 99,
  runsUsed: 99,
  runsLeft: 1_000,
  callNumbersLeft: 16_384_000,
  lastLeaseAtMs: atMs,
  guard,
  rates,
};
const fields = { version: 1, run: 99, sequence: 345 };
const inspected = { namespace: "main", callNumber: "2VznWE2i", explanation: "why" };
const hint = { callNumber: "2VznWE2i", slip: "case", positions: [3], holder: "importer", verdict: "reported" };
const known = { ...inspected, ...fields, currentVersion: 1, state: "open", lastSequence: 400, lease };
const use = {
  name: "importer",
  leaseCount: 3,
  runCount: 4,
  share: 0.5,
  lastLeaseAtMs: atMs,
  isLive: true,
};
const capacity = {
  namespace: "main",
  version: 1,
  highWaterMark: 99,
  runsUsed: 99,
  runsLeft: 1_000,
  usedShare: 0.25,
  callNumbersLeft: 16_384_000,
  headroomRuns: 64,
  ceilingRunsPerSecond: 16,
  ceilingEndsAtMs: atMs,
  rates,
  lookedAt: { leaseCount: 3, fromMs: atMs },
  holders: [use],
  alarms: ALARM_NAMES.map((name) => ({ name, severity: "notice", explanation: "why" })),
};
const record = {
  storeId: "s",
  version: 1,
  firstRun: 5,
  highWaterMark: 99,
  runsUsed: 95,
  runsLeft: 1_000,
  ceilingRunsPerSecond: 16,
};
const { state, code, reason, sinceMs, explanation } = guard;
const namespaces = {
  store: "redis",
  coordinator: "c-1",
  release: "1.0.0",
  namespaces: [{ namespace: "main", record, guard: { state, code, reason, sinceMs, explanation } }],
};
const commands = { storeOption: "--store X", checkpointOption: "" };
const settings = {
  release: "1.0.0",
  store: "redis",
  startedAtMs: atMs,
  settings: SETTING_ORIGINS.map((from) => ({ name: "port", value: "7300", from })),
  commands,
  certificateEndsAtMs: atMs,
  findings: [
    { code: "store_eviction_enabled", what: "it evicts", remedy: "set it", override: "evicts", namespaces: ["main"] },
  ],
};

const trimmed = { upToVersion: 1, upToRun: 98, lastLeasedAtMs: atMs };

const ANSWERS: readonly [string, z.ZodType, object][] = [
  [
    "run",
    runResponseSchema,
    { namespace: "main", currentVersion: 1, version: 1, run: 99, state: "unreported", lastSequence: 3, lease },
  ],
  ["runs", runsResponseSchema, { namespace: "main", currentVersion: 1, leases: [lease], nextCursor: null, trimmed }],
  ["status", statusResponseSchema, status],
  ["error", errorResponseSchema, { code: "overloaded", message: "later", retryAfterMs: 250 }],
  ["capacity", capacityResponseSchema, capacity],
  ["history", historyResponseSchema, { namespace: "main", fromMs: atMs, stepMs: 60_000, runs: Array(60).fill(2) }],
  ["namespaces", namespacesResponseSchema, namespaces],
  ["public call number", publicCallNumberResponseSchema, { callNumber: "2VznWE2i", canExist: true }],
  ["end of an export", exportEndSchema, { end: true, leaseCount: 3, upToVersion: 1, upToRun: 99 }],
  ["settings", settingsResponseSchema, settings],
];

const INSPECTED: readonly object[] = [
  { ...inspected, verdict: "malformed", problem: "wrong_length", position: null, hints: [hint] },
  { ...inspected, verdict: "malformed", problem: "wrong_character", position: 3, hints: [] },
  { ...inspected, verdict: "malformed", problem: "beyond_greatest", position: null, hints: [] },
  { ...inspected, ...fields, verdict: "other_version", hints: [{ ...hint, slip: "surrounding" }] },
  neverLeased("above_mark"),
  neverLeased("below_first_run"),
  { ...inspected, ...fields, verdict: "unknown", hints: [{ ...hint, verdict: "not_made" }] },
  { ...inspected, ...fields, verdict: "trimmed", trimmed },
  { ...known, verdict: "reported", neighbors: null },
  { ...known, verdict: "not_made", neighbors: null },
  { ...known, verdict: "unreported", neighbors: { previous: lease, next: null, explanation: "none" } },
];

function neverLeased(reason: string): object {
  const hints = [{ ...hint, slip: "look_alike", verdict: "unreported" }];
  return { ...inspected, ...fields, verdict: "never_leased", reason, hints };
}

test.each(ANSWERS)("the schema accepts a valid response as it is: %s", (_, schema, answer) => {
  expect(schema.parse(answer)).toEqual(answer);
});

test.each(INSPECTED)("the schema accepts a valid inspection as it is: %j", (answer) => {
  expect(inspectResponseSchema.parse(answer)).toEqual(answer);
});

test.each(ANSWERS)("the schema rejects a response with a number below its range: %s", (_, schema, answer) => {
  for (const [name, value] of Object.entries(answer)) {
    if (typeof value !== "number") continue;
    expect(schema.safeParse({ ...answer, [name]: -1 }).success, name).toBe(false);
  }
});

test("schemas accept every word of a closed list, and reject an empty one", () => {
  const { state: stateOfGuard, code: codeOfGuard } = statusResponseSchema.shape.guard.shape;
  for (const state of ["active", "recovering", "stopped"]) expect(stateOfGuard.parse(state)).toBe(state);
  for (const code of Object.keys(ERROR_RULES)) expect(codeOfGuard.parse(code)).toBe(code);
  for (const state of ["open", "exhausted", "closed", "discarded", "unreported"]) {
    expect(runResponseSchema.shape.state.parse(state)).toBe(state);
  }
  for (const severity of ALARM_SEVERITIES) {
    const alarms = [{ name: "run_ceiling_ending", severity, explanation: "" }];
    expect(capacityResponseSchema.parse({ ...capacity, alarms }).alarms).toEqual(alarms);
  }
  expect([stateOfGuard, codeOfGuard, runResponseSchema.shape.state].map((one) => one.safeParse("").success)).toEqual([
    false,
    false,
    false,
  ]);
});

test("schemas accept both ends of each range, and reject what is beyond", () => {
  const { version, highWaterMark, lastLeaseAtMs } = statusResponseSchema.shape;
  const { usedShare, ceilingRunsPerSecond } = capacityResponseSchema.shape;
  for (const [schema, min, max] of [
    [version, 0, 7],
    [highWaterMark, 0, 2 ** 30 - 1],
    [lastLeaseAtMs, 0, 8.64e15],
    [callNumberAsNumberSchema, 0, 2 ** 47 - 1],
    [runResponseSchema.shape.lastSequence, 0, 16_383],
    [runsQuerySchema.shape.limit, 1, 500],
    [runResponseSchema.shape.run, 0, 2 ** 30 - 1],
    [usedShare, 0, 1],
    [ceilingRunsPerSecond, 1, Number.MAX_SAFE_INTEGER],
  ] as readonly [z.ZodType, number, number][]) {
    const passes = [min - 1, min, max, max + 1].map((value) => schema.safeParse(value).success);
    expect(passes, String(max)).toEqual([false, true, true, false]);
  }
});

test("the query of the ledger takes every filter, and a label once or several times", () => {
  const filter = { holder: "importer", host: "mail-1", state: "discarded", leasedFromMs: 1, leasedToMs: 2 };
  const query = { ...filter, fromRun: "3", toRun: "1/4", label: "a=b=c", cursor: "1/234" };
  expect(runsQuerySchema.parse(query)).toEqual({
    ...filter,
    fromRun: { run: 3 },
    toRun: { version: 1, run: 4 },
    label: ["a=b=c"],
    cursor: "1/234",
    limit: 50,
  });
  const labels = "abcdefgh".split("").map((name) => `${name}=1`);
  expect(runsQuerySchema.parse({ label: labels }).label).toEqual(labels);
  for (const label of [[...labels, "i=1"], "a", "a=", "=b", "A=b", "a=\n", 7]) {
    expect(runsQuerySchema.safeParse({ label }).success, JSON.stringify(label)).toBe(false);
  }
  for (const cursor of ["", "01234567890", "1x", "x1"]) {
    expect(runsQuerySchema.safeParse({ cursor }).success, cursor).toBe(false);
  }
});

test("queries have defaults, and reject unknown words", () => {
  expect(inspectQuerySchema.parse({})).toEqual({ neighbors: "no" });
  expect(inspectQuerySchema.parse({ neighbors: "yes" })).toEqual({ neighbors: "yes" });
  expect(inspectQuerySchema.safeParse({ neighbors: "" }).success).toBe(false);
  expect(exportQuerySchema.parse({})).toEqual({});
  expect(exportQuerySchema.parse({ holder: "a" })).toEqual({ holder: "a" });
  expect(exportQuerySchema.safeParse({ format: "csv" }).success).toBe(false);
  expect(historyQuerySchema.parse({})).toEqual({ windowMs: HISTORY_WINDOWS_MS[0] });
  for (const windowMs of HISTORY_WINDOWS_MS) {
    expect(historyQuerySchema.parse({ windowMs: String(windowMs) })).toEqual({ windowMs });
  }
  expect(historyQuerySchema.safeParse({ windowMs: "1" }).success).toBe(false);
});
