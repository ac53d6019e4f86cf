/** Commands that ask at an address where no coordinator of ours answers: whatever comes, they take a bounded part of it and say so. */
import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { endlessServer } from "../../../test/endless-server.js";
import { callnumber } from "../../../test/processes/command.js";

const MIB = 1024 * 1024;
/** What the kernels of both sides may keep for an asker that reads no more. */
const ON_THE_WAY_BYTES = 24 * MIB;

const lease = {
  version: 0,
  firstRun: 1,
  runCount: 1,
  leasedAtMs: 1_795_000_000_000,
  holder: { name: "importer", host: "mail-1", pid: 1, labels: {} },
  coordinator: "c",
  nonce: "nonce-0123456789",
  progress: null,
};
const status = {
  namespace: "main",
  storeId: "s",
  store: "memory",
  coordinator: "c",
  version: 0,
  firstRun: 1,
  highWaterMark: 5,
  runsUsed: 5,
  runsLeft: 9,
  callNumbersLeft: 9,
  lastLeaseAtMs: 1,
  guard: {
    state: "active",
    code: null,
    reason: null,
    sinceMs: 1,
    explanation: "x",
    generation: 1,
    headroomRuns: 1,
    nodeCount: 1,
    lastRecovery: null,
  },
  rates: [],
};

const page = (leases: unknown) => JSON.stringify({ namespace: "main", leases, nextCursor: null, trimmed: null });

/** Answers every question with this text. */
async function answering(text: string | Buffer, headers: Readonly<Record<string, string>> = {}) {
  const otherwise = (_: string, response: ServerResponse) => {
    response.writeHead(200, { "content-type": "application/json", ...headers }).end(text);
    return true;
  };
  const { url } = await endlessServer({ otherwise });
  return ["--coordinator", url];
}

describe("an answer without end", () => {
  test.each([
    [["status"], 200, 16 * MIB],
    [["status"], 500, 0],
    [["export"], 500, 0],
    [["next"], 200, 0],
  ])("%j of status %i: it is hung up on, and told to be none of a coordinator", async (command, code, readBytes) => {
    const { url, heard } = await endlessServer({ status: code });
    expect(await callnumber([...command, "--coordinator", url])).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/invalid_response/),
    });
    expect(await heard).toBeLessThan(readBytes + ON_THE_WAY_BYTES);
  });
});

describe("an answer that is small on its way only", () => {
  test.each([["runs"], ["runs", "--limit", "100000"]])(
    "%j: pages that lead no further back are no pages",
    async (...words) => {
      const stuck = JSON.stringify({ namespace: "main", leases: [], nextCursor: "7", trimmed: null });
      const { code, stderr } = await callnumber([...words, "--json", ...(await answering(stuck))]);
      expect([code, JSON.parse(stderr)]).toEqual([
        1,
        { code: "invalid_response", message: expect.stringContaining("leads no further back") },
      ]);
    },
  );

  test("is counted as it is when it is unpacked", async () => {
    const padded = (bytes: number) => gzipSync(JSON.stringify(status).padEnd(bytes));
    const small = await answering(padded(16 * MIB), { "content-encoding": "gzip" });
    expect(await callnumber(["status", "--json", ...small])).toMatchObject({ code: 0, stderr: "" });
    const large = await answering(padded(16 * MIB + 1), { "content-encoding": "gzip" });
    expect(await callnumber(["status", ...large])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/invalid_response/),
    });
  });
});

describe("an answer with what can't be", () => {
  const BEYOND_ANY_DATE_MS = Number.MAX_SAFE_INTEGER;

  test.each<[readonly string[], string, number]>([
    [["status"], JSON.stringify({ ...status, lastLeaseAtMs: BEYOND_ANY_DATE_MS }), 1],
    [["status", "--check"], JSON.stringify({ ...status, lastLeaseAtMs: BEYOND_ANY_DATE_MS }), 3],
    [["status", "--check"], JSON.stringify({ ...status, guard: { ...status.guard, sinceMs: 8.64e15 + 1 } }), 3],
    [["runs"], page([{ ...lease, leasedAtMs: BEYOND_ANY_DATE_MS }]), 1],
  ])("%j: a time that no date has is not understood", async (command, text, code) => {
    const finished = await callnumber([...command, ...(await answering(text))]);
    expect(finished.code).toBe(code);
    expect(finished.stdout + finished.stderr).toContain("invalid_response");
  });
});
