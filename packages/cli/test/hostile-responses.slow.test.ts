/** Commands that reach a server that is no coordinator of ours: they read a bounded part of any response, and report it. */
import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { endlessServer } from "../../../test/endless-server.js";
import { callnumber } from "../../../test/processes/command.js";
import { expectFailure, STATUS } from "./commands-for-test.js";

const MIB = 1024 * 1024;
/** What the kernels of both sides may buffer for a client that stops reading. */
const BUFFERED_BYTES = 24 * MIB;

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
const page = { namespace: "main", currentVersion: 0, leases: [lease], nextCursor: null, trimmed: null };

/** A server whose every response is this text. */
async function serverOf(text: string | Buffer, headers: Readonly<Record<string, string>> = {}) {
  const otherwise = (_: string, response: ServerResponse) => {
    response.writeHead(200, { "content-type": "application/json", ...headers }).end(text);
    return true;
  };
  return ["--coordinator", (await endlessServer({ otherwise })).url];
}

test.each([
  ["status", 200, 16 * MIB],
  ["status", 500, 0],
  ["export", 500, 0],
  ["next", 200, 0],
])("%s closes the connection of an endless response of status %i, and rejects it", async (name, code, readBytes) => {
  const { url, heard } = await endlessServer({ status: code });
  await expectFailure([name, "--coordinator", url], 1, "invalid_response");
  expect(await heard).toBeLessThan(readBytes + BUFFERED_BYTES);
});

test.each([["runs"], ["runs", "--limit", "100000"]])("%j rejects pages that lead no further back", async (...words) => {
  const to = await serverOf(JSON.stringify({ ...page, leases: [], nextCursor: "7" }));
  const { stderr } = await expectFailure([...words, "--json", ...to], 1, "leads no further back");
  expect(JSON.parse(stderr)).toMatchObject({ code: "invalid_response" });
});

test("the limit of a response counts its unpacked bytes", async () => {
  const packed = (bytes: number) =>
    serverOf(gzipSync(JSON.stringify(STATUS).padEnd(bytes)), { "content-encoding": "gzip" });
  expect(await callnumber(["status", "--json", ...(await packed(16 * MIB))])).toMatchObject({ code: 0, stderr: "" });
  await expectFailure(["status", ...(await packed(16 * MIB + 1))], 1, "invalid_response");
});

const BEYOND_ANY_DATE_MS = Number.MAX_SAFE_INTEGER;

test.each<[words: string, response: object, code: number]>([
  ["status", { ...STATUS, lastLeaseAtMs: BEYOND_ANY_DATE_MS }, 1],
  ["status --check", { ...STATUS, lastLeaseAtMs: BEYOND_ANY_DATE_MS }, 3],
  ["status --check", { ...STATUS, guard: { ...STATUS.guard, sinceMs: 8.64e15 + 1 } }, 3],
  ["runs", { ...page, leases: [{ ...lease, leasedAtMs: BEYOND_ANY_DATE_MS }] }, 1],
])("%s rejects a time that no date has: %j", async (words, response, code) => {
  const finished = await callnumber([...words.split(" "), ...(await serverOf(JSON.stringify(response)))]);
  expect(finished.code).toBe(code);
  expect(finished.stdout + finished.stderr).toContain("invalid_response");
});
