/**
 * The HTTP surface: a real server, and requests as bytes on real sockets, valid ones made wrong. Whatever arrives, the process lives,
 * every answer is well-formed and ours, and as many runs are leased as were answered for, or noted as burnt because the requester
 * was gone.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { Coordinator } from "../../../packages/coordinator/src/coordinator.js";
import { EventHub } from "../../../packages/coordinator/src/events.js";
import { createServer } from "../../../packages/coordinator/src/http/server.js";
import { SILENT_LOG } from "../../../packages/coordinator/src/log.js";
import { newStoreId } from "../../../packages/coordinator/src/store-id.js";
import { MemoryStore } from "../../../packages/coordinator/src/stores/memory-store.js";
import { leaseSchema } from "../../../packages/protocol/src/schemas.js";
import { ERROR_RULES, isErrorCode } from "../../../packages/protocol/src/wire.js";
import type { Draw } from "../draw.js";
import { answersIn, type HttpAnswer } from "../http-answers.js";
import { BATCH_SEPARATOR, requestBatch } from "../http-requests.js";
import type { FuzzTarget } from "../target.js";

/** Long ago: the clock line lies far above everything that is leased here. */
const INITIALISED_AT_MS = 1_700_000_000_000;
/** How long no byte may come before this side ends. Only how much is tried depends on it. */
const QUIET_MS = 40;
/** A connection that has not ended by then, although this side ended its half, never will: a stream may speak on and on. */
const HANG_MS = 60_000;
/** What would end the process of a coordinator. */
const FAULTS = ["unhandledRejection", "uncaughtException"] as const;
const EXPECTED: ReadonlySet<number> = new Set([100, 200, 201, 304, 308]);
const HEALTHY = Buffer.from("GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
/** Files that a process opens for itself meanwhile. */
const DESCRIPTORS_TOLERATED = 8;
const HEAP_BYTES_TOLERATED = 128 * 1024 * 1024;

export const httpSurface: FuzzTarget = {
  name: "http-surface",
  shortCount: 10,
  async start() {
    const surface = await startSurface();
    const before = { descriptorCount: descriptorCount(), heapBytes: process.memoryUsage().heapUsed };
    return {
      input: (draw: Draw) => requestBatch(draw),
      check: (input) => surface.check(input),
      async stop() {
        await surface.stop();
        assert(descriptorCount() <= before.descriptorCount + DESCRIPTORS_TOLERATED, "file descriptors were left open");
        const grownBytes = process.memoryUsage().heapUsed - before.heapBytes;
        assert(grownBytes < HEAP_BYTES_TOLERATED, `the heap has grown by ${grownBytes} bytes`);
      },
    };
  },
};

async function startSurface() {
  const store = new MemoryStore();
  const events = new EventHub(SILENT_LOG);
  const coordinator = new Coordinator({ store, name: "fuzzed", log: events });
  const storeId = newStoreId({ firstRun: 1, initialisedAtMs: INITIALISED_AT_MS, rate: 2 });
  await store.step("main", {
    step: "init",
    storeId,
    nonce: "nonce-of-init-0123",
    isSilenceAccepted: false,
    nodeCount: 1,
    receiptKey: "5a".repeat(32),
  });
  const server = await createServer({ coordinator, release: "0.0.0", events, publicInspect: true });
  const { port } = new URL(await server.listen({ host: "127.0.0.1", port: 0 }));
  let burntRunCount = 0;
  events.subscribe(({ event, fields }) => {
    if (event === "burnt") burntRunCount += (fields as { runCount: number }).runCount;
  });
  const faults: unknown[] = [];
  const keep = (fault: unknown) => void faults.push(fault);
  for (const fault of FAULTS) process.on(fault, keep);
  const mark = async () => (await store.readNamespace("main")).highWaterMark;

  return {
    async check(batch: Buffer): Promise<void> {
      const markBefore = await mark();
      const burntBefore = burntRunCount;
      const conversations = await Promise.all(
        partsOf(batch).map(async (request) => answersIn(await answerTo(Number(port), request), request)),
      );
      const healthy = answersIn(await answerTo(Number(port), HEALTHY), HEALTHY);
      assert.deepEqual([healthy.length, healthy[0]?.status], [1, 200], "a healthy request failed behind it");
      const answers = conversations.flat();
      for (const answer of answers) mustBeOurs(answer);
      const answeredRunCount = answers
        .filter(isLease)
        .reduce((sum, { body }) => sum + leaseSchema.parse(JSON.parse(body)).runCount, 0);
      const toldRunCount = answeredRunCount + burntRunCount - burntBefore;
      const untoldRunCount = (await mark()) - markBefore - toldRunCount;
      assert.equal(untoldRunCount, 0, `${untoldRunCount} runs were leased, and neither answered nor noted as burnt`);
      assert.deepEqual(faults, []);
    },
    async stop(): Promise<void> {
      for (const fault of FAULTS) process.off(fault, keep);
      await server.stop();
    },
  };
}

function isLease({ status, body }: HttpAnswer): boolean {
  return status === 201 && body !== "";
}

function mustBeOurs({ status, headers, body }: HttpAnswer): void {
  if (status < 400) {
    assert(EXPECTED.has(status), `${status} is no answer of ours`);
    // Of the console's path without its slash; nowhere else.
    assert.equal(headers.get("location"), status === 308 ? "console/" : undefined);
    return;
  }
  // An answer to HEAD.
  if (body === "") return;
  assert.match(headers.get("content-type") ?? "", /^application\/json/);
  const answer = JSON.parse(body) as { code?: unknown; statusCode?: unknown };
  // The web framework's own, to what is no HTTP.
  if (answer.statusCode === status) return;
  assert(isErrorCode(answer.code), `"${String(answer.code)}" is no error code`);
  assert.equal(ERROR_RULES[answer.code].httpStatus, status);
  assert.notEqual(answer.code, "internal_error", body);
}

/** All bytes that come back until the connection ends. This side ends it when nothing comes any more. */
async function answerTo(port: number, request: Buffer): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const openedMs = performance.now();
  let heardMs = openedMs;
  socket.on("data", (chunk) => {
    heardMs = performance.now();
    chunks.push(chunk);
  });
  // A server may end a connection while it is still written to.
  socket.on("error", () => {});
  socket.write(request);
  const ending = setInterval(() => {
    const nowMs = performance.now();
    if (nowMs - heardMs > QUIET_MS) socket.end();
    if (nowMs - openedMs > HANG_MS) socket.destroy(new Error("hang"));
  }, QUIET_MS / 4);
  await closed;
  clearInterval(ending);
  assert(!(socket.errored?.message === "hang"), "a connection did not end");
  // What the end of a connection sets off is over a turn later.
  await delay(0);
  return Buffer.concat(chunks);
}

function partsOf(batch: Buffer): readonly Buffer[] {
  const parts: Buffer[] = [];
  let begin = 0;
  for (let at = batch.indexOf(BATCH_SEPARATOR); at >= 0; at = batch.indexOf(BATCH_SEPARATOR, begin)) {
    parts.push(batch.subarray(begin, at));
    begin = at + BATCH_SEPARATOR.length;
  }
  return [...parts, batch.subarray(begin)];
}

function descriptorCount(): number {
  return process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0;
}
