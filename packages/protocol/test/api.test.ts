import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import {
  describe as described,
  ERROR_RULES,
  isErrorCode,
  ledgerIdOf,
  PROOF_PATTERN,
  pathOf,
  runOfLedgerId,
} from "../src/api.js";
import {
  callNumberSchema,
  holderSchema,
  leaseRequestSchema,
  leaseSchema,
  namespaceSchema,
  reportRequestSchema,
  runsQuerySchema,
  statusResponseSchema,
} from "../src/schemas.js";

const holder = { name: "importer", host: "mail-1", pid: 4711, labels: { archive: "lists" } };
const request = { runCount: 1, nonce: "0123456789abcdef", holder, lastRun: null, proof: null, sentAtMs: 1 };

test("pathOf escapes its parameters", () => {
  expect(pathOf("callNumber", { namespace: "main", callNumber: "../a b/?" })).toBe(
    "/v1/namespaces/main/call-numbers/..%2Fa%20b%2F%3F",
  );
  expect(pathOf("health")).toBe("/healthz");
});

test.each([".", ".."])("a parameter %j stays in its path", (parameter) => {
  const path = pathOf("callNumber", { namespace: parameter, callNumber: parameter });
  expect(new URL(path, "http://127.0.0.1").pathname).toBe("/v1/namespaces/%252E/call-numbers/%252E");
});

test("pathOf requires every parameter", () => {
  expect(() => pathOf("run", { namespace: "main" })).toThrow('needs "run"');
});

test("ledger ids are the run itself in version 0, rise with the version, and can be read back", () => {
  expect(ledgerIdOf(0, 99)).toBe(99);
  expect(ledgerIdOf(1, 0)).toBeGreaterThan(ledgerIdOf(0, 2 ** 30 - 1));
  expect(runOfLedgerId(ledgerIdOf(7, 2 ** 30 - 1))).toEqual({ version: 7, run: 2 ** 30 - 1 });
});

test("the pattern of lease proofs matches every HMAC-SHA256 in base64url", () => {
  const proofs = Array.from({ length: 200 }, (_, index) =>
    createHmac("sha256", "key").update(String(index)).digest("base64url"),
  );
  expect(proofs.filter((proof) => !PROOF_PATTERN.test(proof))).toEqual([]);
});

test("a rejected value in a message is quoted, cut after 40 characters, and without control characters", () => {
  expect(described("x".repeat(40))).toBe(`"${"x".repeat(40)}"`);
  expect(described("x".repeat(41))).toBe(`"${"x".repeat(40)}…"`);
  expect(described("a\u202eb\u2028")).toBe('"a\\u{202e}b\\u{2028}"');
  expect([null, undefined, 7, {}].map(described)).toEqual(["null", "undefined", "7", "a value of type object"]);
});

test("error codes are a closed list: names of object properties are none of them", () => {
  expect(isErrorCode("store_unavailable")).toBe(true);
  for (const word of ["constructor", "toString", "__proto__", "", "STORE_UNAVAILABLE", 503, null, ["overloaded"]]) {
    expect(isErrorCode(word)).toBe(false);
  }
});

test("a code that can be retried later has the status 408, 429 or 503, and every code has an error status", () => {
  for (const [code, { httpStatus, retry }] of Object.entries(ERROR_RULES)) {
    if (retry === "later") expect([408, 429, 503], code).toContain(httpStatus);
    expect(httpStatus, code).toBeGreaterThanOrEqual(400);
  }
});

test("store_recovering is retried later", () => expect(ERROR_RULES.store_recovering.retry).toBe("later"));

test.each([
  "store_forked",
  "store_id_mismatch",
  "namespace_lost",
  "store_corrupt",
  "manual_recovery_required",
] as const)("%s is not retried: an operator must act", (code) => expect(ERROR_RULES[code].retry).toBe("never"));

test("callNumberSchema takes a call number and nothing else", () => {
  expect(callNumberSchema.parse("2VznWE2i")).toBe("2VznWE2i");
  for (const text of ["2VznWE2", "zzzzzzzz", 7, null]) expect(callNumberSchema.safeParse(text).success).toBe(false);
});

const exhausted = { run: 7, nonce: request.nonce, lastSequence: 16_383, state: "exhausted" };

test("a valid lease request passes as it is", () => {
  expect(leaseRequestSchema.parse(request)).toEqual(request);
  const reporting = { ...request, report: { run: 7, nonce: request.nonce, lastSequence: null, state: "closed" } };
  expect(leaseRequestSchema.parse(reporting)).toEqual(reporting);
  expect(leaseRequestSchema.parse({ ...request, runCount: 64, lastRun: 2 ** 33 - 1 }).runCount).toBe(64);
});

test.each([
  ["no run", { ...request, runCount: 0 }],
  ["too many runs", { ...request, runCount: 65 }],
  ["half a run", { ...request, runCount: 1.5 }],
  ["runs as text", { ...request, runCount: "1" }],
  ["a short nonce", { ...request, nonce: "0123456789abcde" }],
  ["a nonce that begins with a space", { ...request, nonce: " 0123456789abcdef" }],
  ["a pid beyond 32 bits", { ...request, holder: { ...holder, pid: 2 ** 32 } }],
  ["a label's name that ends with a space", { ...request, holder: { ...holder, labels: { "archive ": "x" } } }],
  ["a nonce with a line end", { ...request, nonce: "0123456789abcdef\n" }],
  ["an unknown key", { ...request, extra: 1 }],
  ["no last run at all", { ...request, lastRun: undefined }],
  ["no lease proof at all", { ...request, proof: undefined }],
  ["a lease proof that is too short", { ...request, proof: "r".repeat(42) }],
  ["a lease proof with other characters", { ...request, proof: `${"r".repeat(42)}=` }],
  ["no clock", { ...request, sentAtMs: undefined }],
  ["a clock with half milliseconds", { ...request, sentAtMs: 1.5 }],
  ["a clock before 1970", { ...request, sentAtMs: -1 }],
  ["fewer spare runs than none", { ...request, spareRunCount: -1 }],
  ["a report without a run", { ...request, report: { nonce: request.nonce, lastSequence: 1, state: "open" } }],
  ["a report of a used-up run before its end", { ...request, report: { ...exhausted, lastSequence: 1 } }],
  ["an unknown key in the report", { ...request, report: { ...exhausted, extra: 1 } }],
  ["half a spare run", { ...request, spareRunCount: 0.5 }],
  ["a clock that is text", { ...request, sentAtMs: "1795000000000" }],
  ["a clock beyond what a number holds", { ...request, sentAtMs: 2 ** 53 }],
  ["a lease proof that is too long", { ...request, proof: "r".repeat(44) }],
  ["a lease proof with a line end", { ...request, proof: `${"r".repeat(43)}\n` }],
  ["a last run beyond the space", { ...request, lastRun: 2 ** 33 }],
  ["an unknown key in the holder", { ...request, holder: { ...holder, admin: true } }],
  ["a negative pid", { ...request, holder: { ...holder, pid: -1 } }],
  ["an empty name", { ...request, holder: { ...holder, name: "" } }],
  ["a name that recolors terminals", { ...request, holder: { ...holder, name: "x\u001b[31m" } }],
  ["a name that turns the line round", { ...request, holder: { ...holder, name: "x\u202ey" } }],
  ["a name with a lone surrogate", { ...request, holder: { ...holder, name: "x\ud800" } }],
  [
    "too many labels",
    {
      ...request,
      holder: { ...holder, labels: Object.fromEntries("abcdefghi".split("").map((name) => [name, "1"])) },
    },
  ],
  ["a label's name in capitals", { ...request, holder: { ...holder, labels: { Archive: "x" } } }],
  ["a label that is not a text", { ...request, holder: { ...holder, labels: { archive: 1 } } }],
])("a lease request with %s is rejected", (_, bad) => {
  expect(leaseRequestSchema.safeParse(bad).success).toBe(false);
});

test("a lease request with the lease proof of its last run passes as it is", () => {
  const evidence = { lastRun: 64, proof: "-_".padEnd(43, "Zz09"), sentAtMs: 1_795_000_000_000 };
  expect(leaseRequestSchema.parse({ ...request, ...evidence })).toEqual({ ...request, ...evidence });
});

test("a lease request with eight labels, and the greatest pid, passes as it is", () => {
  const labels = Object.fromEntries("abcdefgh".split("").map((name) => [name, "1"]));
  const full = { ...request, holder: { ...holder, pid: 2 ** 32 - 1, labels } };
  expect(leaseRequestSchema.parse(full)).toEqual(full);
});

test("a lease includes a lease proof", () => {
  const lease = { namespace: "main", storeId: "s", version: 0, firstRun: 1, runCount: 1, leasedAtMs: 1, nonce: "n" };
  expect(leaseSchema.parse({ ...lease, proof: "r".repeat(43) }).proof).toBe("r".repeat(43));
  for (const proof of [undefined, null, "", "r".repeat(42), `${"r".repeat(42)}=`]) {
    expect(leaseSchema.safeParse({ ...lease, proof }).success).toBe(false);
  }
});

test("a status shows whether the guard is active, and by which code it is not", () => {
  const guard = {
    state: "recovering",
    code: "store_recovering",
    reason: "epoch_changed",
    sinceMs: 1,
    explanation: "",
    generation: 0,
    headroomRuns: 0,
    nodeCount: 1,
    lastRecovery: null,
  };
  const { guard: schema } = statusResponseSchema.shape;
  expect(schema.parse(guard)).toEqual(guard);
  expect(schema.safeParse({ ...guard, state: "active", code: null, reason: null }).success).toBe(true);
  for (const bad of [
    { state: "shut" },
    { code: "of_the_future" },
    { generation: -1 },
    { headroomRuns: 0.5 },
    { nodeCount: 0 },
  ]) {
    expect(schema.safeParse({ ...guard, ...bad }).success, JSON.stringify(bad)).toBe(false);
  }
});

test("a holder's name in another script passes", () => {
  expect(holderSchema.safeParse({ ...holder, name: "Archiv für Briefe 書簡" }).success).toBe(true);
});

test.each(["", "Main", "a/b", "../a", "a{b}", "a*", "-a", ".a", "a b", "a\n", "x".repeat(64), "é"])(
  "the namespace %j is rejected",
  (name) => {
    expect(namespaceSchema.safeParse(name).success).toBe(false);
  },
);

test("a label named __proto__ is dropped (found by fuzzing, seed 1286455694: HTTP rejects it before)", () => {
  const labels = holderSchema.shape.labels.parse(JSON.parse('{"__proto__":{"x":"y"},"constructor":"z"}'));
  expect(Object.entries(labels)).toEqual([["constructor", "z"]]);
  expect((labels as { x?: unknown })["x"]).toBeUndefined();
});

test("a report of an exhausted run must have its last sequence", () => {
  const report = { nonce: request.nonce, state: "exhausted" };
  expect(reportRequestSchema.safeParse({ ...report, lastSequence: 16_383 }).success).toBe(true);
  expect(reportRequestSchema.safeParse({ ...report, state: "closed", lastSequence: 5 }).success).toBe(true);
  const { error } = reportRequestSchema.safeParse({ ...report, lastSequence: 5 });
  expect(error?.issues).toMatchObject([{ path: ["lastSequence"], message: expect.stringContaining("16383") }]);
  for (const lastSequence of [null, 16_382, 16_384]) {
    expect(reportRequestSchema.safeParse({ ...report, lastSequence }).success).toBe(false);
  }
});

test("a query is text, and its numbers are checked", () => {
  expect(runsQuerySchema.parse({ limit: "500", leasedFromMs: "0" })).toMatchObject({ limit: 500, leasedFromMs: 0 });
  expect(runsQuerySchema.parse({}).limit).toBe(50);
  for (const query of [
    { limit: "501" },
    { limit: "0" },
    { cursor: "-1" },
    { cursor: "x" },
    { page: "2" },
    { leasedToMs: "soon" },
  ]) {
    expect(runsQuerySchema.safeParse(query).success).toBe(false);
  }
});
