/**
 * A coordinator's server that is sent bytes on real sockets. Whatever arrives, the process lives, every answer is well-formed and ours, a healthy
 * request goes through behind it, and no run is answered for that was not leased. A run whose requester was gone is burnt, and lost.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { Coordinator } from "../../packages/coordinator/src/coordinator.js";
import { EventHub } from "../../packages/coordinator/src/events/events.js";
import { createServer, type ServerOptions } from "../../packages/coordinator/src/http/server.js";
import { SILENT_LOG } from "../../packages/coordinator/src/log.js";
import { newStoreId } from "../../packages/coordinator/src/store-id.js";
import { MemoryStore } from "../../packages/coordinator/src/stores/memory.js";
import { leaseSchema } from "../../packages/protocol/src/schemas.js";
import { ERROR_RULES, isErrorCode, type Lease } from "../../packages/protocol/src/wire.js";
import { answersIn, type HttpAnswer } from "./http-answers.js";
import { BATCH_SEPARATOR } from "./http-requests.js";

/** Long ago: the clock line lies far above everything that is leased here. */
const INITIALISED_AT_MS = 1_700_000_000_000;
/** How long no byte may come before this side ends. Only how much is tried depends on it. */
const QUIET_MS = 40;
/** A connection that has not ended by then, although this side ended its half, never will: a stream may speak on and on. */
const HANG_MS = 60_000;
/** What would end the process of a coordinator. */
const FAULTS = ["unhandledRejection", "uncaughtException"] as const;
/** Nothing is redirected, and nothing is told to be unchanged. Node answers 100 to `Expect: 100-continue`. */
const EXPECTED: ReadonlySet<number> = new Set([100, 200, 201]);
const HEALTHY = Buffer.from("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
/** Files that a process opens for itself meanwhile. */
const DESCRIPTORS_TOLERATED = 8;
const HEAP_BYTES_TOLERATED = 128 * 1024 * 1024;

export interface Conversation {
  readonly request: Buffer;
  readonly answers: readonly HttpAnswer[];
}

export interface FuzzedServerOptions {
  readonly namespaces: readonly string[];
  readonly server: Partial<ServerOptions>;
  /** A connection of its own to the port, as a caller opens it. */
  readonly connectTo: (port: number) => Socket;
}

export type FuzzedServer = Awaited<ReturnType<typeof startFuzzedServer>>;

export async function startFuzzedServer({ namespaces, server: options, connectTo }: FuzzedServerOptions) {
  const store = new MemoryStore();
  const events = new EventHub(SILENT_LOG);
  const coordinator = new Coordinator({ store, name: "fuzzed", log: events });
  for (const [index, namespace] of namespaces.entries()) {
    // The first has run 1, as the requests suppose; no two have the same id.
    const storeId = newStoreId({ firstRun: 1 + index * 1_000, initialisedAtMs: INITIALISED_AT_MS, rate: 2 });
    const nonce = "nonce-of-init-0123";
    const receiptKey = "5a".repeat(32);
    await store.step(namespace, { step: "init", storeId, nonce, isSilenceAccepted: false, nodeCount: 1, receiptKey });
  }
  const server = await createServer({ coordinator, release: "0.0.0", events, publicInspect: true, ...options });
  const port = Number(new URL(await server.listen({ host: "127.0.0.1", port: 0 })).port);
  const before = { descriptorCount: descriptorCount(), heapBytes: process.memoryUsage().heapUsed };
  const faults: unknown[] = [];
  const keep = (fault: unknown) => void faults.push(fault);
  for (const fault of FAULTS) process.on(fault, keep);

  const converse = async (request: Buffer): Promise<Conversation> => {
    return { request, answers: answersIn(await answerTo(connectTo(port), request), request) };
  };

  /** The marks of all namespaces together. */
  const marks = async () => {
    const records = await Promise.all(namespaces.map((namespace) => store.readNamespace(namespace)));
    return records.reduce((sum, { highWaterMark }) => sum + highWaterMark, 0);
  };

  return {
    coordinator,
    store,
    converse,
    /** Sends the requests of a batch, each on a connection of its own, all at once. */
    async check(batch: Buffer): Promise<readonly Conversation[]> {
      const marksBefore = await marks();
      const conversations = await Promise.all(partsOf(batch).map(converse));
      const healthy = (await converse(HEALTHY)).answers.map(({ status }) => status);
      assert.deepEqual(healthy, [200], "a healthy request failed behind it");
      const answers = conversations.flatMap((conversation) => conversation.answers);
      for (const answer of answers) mustBeOurs(answer);
      const answeredRunCount = answers.reduce((sum, answer) => sum + (leaseIn(answer)?.runCount ?? 0), 0);
      const leasedRunCount = (await marks()) - marksBefore;
      assert(
        answeredRunCount <= leasedRunCount,
        `${answeredRunCount} runs were answered, and ${leasedRunCount} leased`,
      );
      assert.deepEqual(faults, []);
      return conversations;
    },
    async stop(): Promise<void> {
      for (const fault of FAULTS) process.off(fault, keep);
      await server.stop();
      assert(descriptorCount() <= before.descriptorCount + DESCRIPTORS_TOLERATED, "file descriptors were left open");
      const grownBytes = process.memoryUsage().heapUsed - before.heapBytes;
      assert(grownBytes < HEAP_BYTES_TOLERATED, `the heap has grown by ${grownBytes} bytes`);
    },
  };
}

/** The lease in an answer; undefined when it is none. */
export function leaseIn({ status, body }: HttpAnswer): Lease | undefined {
  const isLease = status === 201 && body.startsWith('{"namespace"');
  return isLease ? leaseSchema.parse(JSON.parse(body)) : undefined;
}

function mustBeOurs({ status, headers, body }: HttpAnswer): void {
  if (status < 400) {
    assert(EXPECTED.has(status), `${status} is no answer of ours`);
    assert.equal(headers.get("location"), undefined);
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
async function answerTo(socket: Socket, request: Buffer): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const openedMs = performance.now();
  let heardMs = Number.POSITIVE_INFINITY;
  socket.on("data", (chunk: Buffer) => {
    heardMs = performance.now();
    chunks.push(chunk);
  });
  // A server may end a connection while it is still written to.
  socket.on("error", () => {});
  socket.write(request, () => {
    heardMs = performance.now();
  });
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
