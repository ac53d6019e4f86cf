/** Over real sockets: one token that takes all it can get, of leases, reports, exports, questions and streams, and its neighbours beside it. */
import { once } from "node:events";
import { type ClientRequest, get, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import type { Lease, LedgerEntry } from "@callnumber/protocol/wire";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { EventHub } from "../src/events.js";
import type { Role } from "../src/http/caller.js";
import { STREAM_COUNT_MAX } from "../src/http/event-streams.js";
import { createServer, type Server } from "../src/http/server.js";
import { EXPORTS_AT_ONCE, LOOKS_AT_ONCE, QUESTIONS_AT_ONCE } from "../src/limits/places.js";
import { SILENT_LOG } from "../src/log.js";
import type { ReportCommand, StepCommand } from "../src/store.js";
import { MemoryStore } from "../src/stores/memory-store.js";
import { makeToken } from "../src/tokens/made-token.js";
import { TokenDoor } from "../src/tokens/token-door.js";
import { holder } from "./commands-for-test.js";

const LEASES_AT_ONCE = 4;

/** A store in which what one token asks for waits: its reports, its pages of the ledger; and whose exports have no end. */
class SlowStore extends MemoryStore {
  gate: Promise<unknown> = Promise.resolve();
  askedCount = 0;
  /** A page of so many waits. */
  slowLimit = PAGE_LIMIT;
  isEndless = false;
  override async report(namespace: string, ledgerId: number, command: ReportCommand) {
    if (command.lastSequence === null) await this.#waitAtGate();
    await super.report(namespace, ledgerId, command);
  }
  override async listLeases(namespace: string, page: { belowLedgerId: number; limit: number }) {
    if (page.limit === this.slowLimit) await this.#waitAtGate();
    return await super.listLeases(namespace, page);
  }
  override async exportLeases(namespace: string, page: { afterLedgerId: number; limit: number }) {
    if (!this.isEndless) return await super.exportLeases(namespace, page);
    return Array.from({ length: page.limit }, (_, index): LedgerEntry => {
      const firstRun = page.afterLedgerId + 1 + index;
      const nonce = `nonce-of-lease-${firstRun}`;
      return { version: 0, firstRun, runCount: 1, leasedAtMs: 1, holder, coordinator: "c", nonce, progress: null };
    });
  }
  override async step(namespace: string, command: StepCommand) {
    if (command.step === "lease" && command.holder.name === SLOW_HOLDER) await this.#waitAtGate();
    return await super.step(namespace, command);
  }
  async #waitAtGate() {
    this.askedCount++;
    await this.gate;
  }
}

/** A page of so many is asked for by these tests alone. */
const PAGE_LIMIT = 77;
const SLOW_HOLDER = "slow";
/** What a status asks for: the newest lease. */
const STATUS_LIMIT = 1;

let store: SlowStore;
let server: Server;
let base: string;
let told: { event: string; fields: Record<string, unknown> }[];
const open = new Set<ClientRequest>();

const made = (role: Role) => makeToken({ role, namespaces: "all" }, new Set(), 1);
const greedy = { lease: made("lease"), read: made("read") };
const modest = { lease: made("lease"), read: made("read") };

beforeEach(async () => {
  store = new SlowStore();
  const events = new EventHub(SILENT_LOG);
  told = [];
  events.subscribe(({ event, fields }) => void told.push({ event, fields: fields as Record<string, unknown> }));
  const coordinator = new Coordinator({ store, name: "c", log: events });
  await coordinator.initNamespace("main");
  const door = new TokenDoor([greedy.lease, greedy.read, modest.lease, modest.read].map(({ record }) => record));
  server = await createServer({ coordinator, release: "0.0.0", events, door, leasesAtOnce: LEASES_AT_ONCE });
  base = await server.listen({ host: "127.0.0.1", port: 0 });
});

afterEach(async () => {
  for (const stream of open) stream.destroy();
  open.clear();
  await server.stop();
});

type Token = (typeof greedy)["lease"];

async function ask({ token }: Token, path: string, body?: object) {
  const headers = { authorization: `Bearer ${token}`, ...(body && { "content-type": "application/json" }) };
  const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  const answer = await fetch(base + path, init);
  return { status: answer.status, answer: (await answer.json()) as { code?: string } };
}

let nonceCount = 0;

async function lease(token: Token, name = "letters") {
  const nonce = `nonce-${String(++nonceCount).padStart(12, "0")}`;
  const about = { lastRun: null, receipt: null, sentAtMs: 1_700_000_000_000 };
  const { status, answer } = await ask(token, "/v1/namespaces/main/leases", {
    runCount: 1,
    nonce,
    holder: { ...holder, name },
    ...about,
  });
  return { status, nonce, ...(answer as Partial<Lease>) };
}

const report = (token: Token, { firstRun, nonce }: Partial<Lease>, lastSequence: number | null) =>
  ask(token, `/v1/namespaces/main/runs/${firstRun}/report`, { nonce, lastSequence, state: "open" });

function closeGate(): () => void {
  let letGo = () => {};
  store.gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  return letGo;
}

/** An answer that goes on, or a refusal. */
async function begun({ token }: Token, path: string): Promise<IncomingMessage> {
  const asking = get(base + path, { headers: { authorization: `Bearer ${token}` } });
  open.add(asking);
  asking.on("error", () => {});
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  answer.on("error", () => {});
  return answer;
}

describe("a token that leases as much as it can", () => {
  test("has its places and no more, while its neighbour leases, of whom all leases come through", async () => {
    const letGo = closeGate();
    let refusedCount = 0;
    const leases = Array.from({ length: 20 }, async () => {
      const { status } = await lease(greedy.lease, SLOW_HOLDER);
      if (status === 503) refusedCount++;
      return status;
    });
    await expect.poll(() => refusedCount).toBe(20 - LEASES_AT_ONCE);
    for (let count = 0; count < 5; count++) expect((await lease(modest.lease)).status).toBe(201);
    letGo();
    expect((await Promise.all(leases)).filter((status) => status === 201)).toHaveLength(LEASES_AT_ONCE);
  });
});

describe("a token that reports as much as it can", () => {
  test("has its places and no more, while its neighbour leases and reports; and the log says whose the others were", async () => {
    const [ours, theirs] = [await lease(greedy.lease), await lease(modest.lease)];
    const letGo = closeGate();
    let answeredCount = 0;
    const reports = Array.from({ length: 40 }, async () => {
      const { status } = await report(greedy.lease, ours, null);
      answeredCount++;
      return status;
    });
    await expect.poll(() => answeredCount).toBe(40 - LEASES_AT_ONCE);
    expect(store.askedCount).toBe(LEASES_AT_ONCE);
    for (let count = 0; count < 5; count++) {
      expect((await lease(modest.lease)).status).toBe(201);
      expect((await report(modest.lease, theirs, 5)).status).toBe(200);
    }
    letGo();
    const statuses = await Promise.all(reports);
    expect(statuses.filter((status) => status === 200)).toHaveLength(LEASES_AT_ONCE);
    expect(statuses.filter((status) => status === 503)).toHaveLength(40 - LEASES_AT_ONCE);
    await server.stop();
    const callers = told.filter(({ event }) => event === "refusals").flatMap(({ fields }) => fields["callers"]);
    const byId = callers as { tokenId: string; remoteAddress: string; refusalCount: number }[];
    expect(new Set(byId.map(({ tokenId }) => tokenId))).toEqual(new Set([greedy.lease.record.id]));
    expect(new Set(byId.map(({ remoteAddress }) => remoteAddress))).toEqual(new Set(["127.0.0.1"]));
    const lines = told.filter(({ event, fields }) => event === "refusal" && fields["code"] === "overloaded");
    expect(byId.reduce((sum, { refusalCount }) => sum + refusalCount, lines.length)).toBe(40 - LEASES_AT_ONCE);
  });
});

describe("a token that exports as much as it can", () => {
  const path = "/v1/namespaces/main/export";

  test("has its places and no more, while its neighbour exports; and they are free again however an export ended", async () => {
    store.isEndless = true;
    const held: IncomingMessage[] = [];
    for (let count = 0; count < EXPORTS_AT_ONCE; count++) held.push(await begun(greedy.read, path));
    expect(held.map(({ statusCode }) => statusCode)).toEqual(held.map(() => 200));
    const refused = await ask(greedy.read, path);
    expect(refused).toMatchObject({
      status: 503,
      answer: { code: "overloaded", message: expect.stringContaining("export") },
    });
    const theirs = await begun(modest.read, path);
    expect(theirs.statusCode).toBe(200);
    expect((await ask(greedy.read, "/v1/namespaces/main/status")).status).toBe(200);
    expect((await lease(modest.lease)).status).toBe(201);
    // Broken off by who took them.
    for (const answer of [...held, theirs]) answer.destroy();
    await expect.poll(async () => (await begun(greedy.read, path)).statusCode).toBe(200);
    for (const asking of open) asking.destroy();
    // Refused, and taken whole: more often than there are places.
    store.isEndless = false;
    await expect.poll(async () => (await ask(greedy.read, "/v1/namespaces/nowhere/export")).status).toBe(404);
    for (let count = 0; count < 3 * EXPORTS_AT_ONCE; count++) {
      await expect.poll(async () => (await ask(greedy.read, "/v1/namespaces/nowhere/export")).status).toBe(404);
      await expect.poll(async () => (await begun(greedy.read, path)).resume().statusCode).toBe(200);
    }
  });
});

describe("a token that looks through the ledger as often as it can", () => {
  test("has its places and no more, while its neighbours look and lease, and it is told itself how things stand", async () => {
    const letGo = closeGate();
    const path = `/v1/namespaces/main/runs?limit=${PAGE_LIMIT}`;
    const pages = Array.from({ length: LOOKS_AT_ONCE }, () => ask(greedy.read, path));
    await expect.poll(() => store.askedCount).toBe(LOOKS_AT_ONCE);
    for (const question of [path, "/v1/namespaces/main/call-numbers/00000000", "/v1/namespaces/main/runs/1"]) {
      expect(await ask(greedy.read, question)).toMatchObject({ status: 503, answer: { code: "overloaded" } });
    }
    for (const question of ["/v1/namespaces", "/v1/namespaces/main/status", "/v1/namespaces/main/capacity"]) {
      expect((await ask(greedy.read, question)).status).toBe(200);
    }
    expect((await ask(modest.read, "/v1/namespaces/main/call-numbers/00000000")).status).toBe(200);
    expect((await lease(modest.lease)).status).toBe(201);
    letGo();
    for (const { status } of await Promise.all(pages)) expect(status).toBe(200);
    expect((await ask(greedy.read, path)).status).toBe(200);
  });
});

describe("a token that asks how things stand as often as it can", () => {
  test("has its places and no more, while its neighbours ask and lease", async () => {
    const letGo = closeGate();
    store.slowLimit = STATUS_LIMIT;
    const status = "/v1/namespaces/main/status";
    const answers = Array.from({ length: QUESTIONS_AT_ONCE }, () => ask(greedy.read, status));
    await expect.poll(() => store.askedCount).toBe(QUESTIONS_AT_ONCE);
    store.slowLimit = PAGE_LIMIT;
    for (const question of [status, "/v1/namespaces", "/v1/namespaces/main/capacity", "/metrics"]) {
      expect(await ask(greedy.read, question)).toMatchObject({ status: 503, answer: { code: "overloaded" } });
    }
    for (const question of [status, "/v1/namespaces"]) expect((await ask(modest.read, question)).status).toBe(200);
    expect((await lease(modest.lease)).status).toBe(201);
    expect((await fetch(`${base}/readyz`)).status).toBe(200);
    letGo();
    for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200);
    await expect.poll(async () => (await ask(greedy.read, status)).status).toBe(200);
  });
});

describe("a token whose questions come all in one moment", () => {
  test("is answered as many as it has places for in one turn, so that a lease waits for no more of them", async () => {
    const { hostname: host, port } = new URL(base);
    const sockets = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const socket = connect({ host, port: Number(port) });
        await once(socket, "connect");
        return socket.setEncoding("latin1");
      }),
    );
    // The server has met each of them.
    expect((await ask(greedy.read, "/v1/namespaces/main/status")).status).toBe(200);
    const head = `GET /v1/namespaces/main/runs/1 HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${greedy.read.token}\r\n\r\n`;
    const answers = sockets.map(async (socket) => {
      socket.write(head);
      const [text] = (await once(socket, "data")) as [string];
      return text.slice("HTTP/1.1 ".length, "HTTP/1.1 404".length);
    });
    const statuses = await Promise.all(answers);
    for (const socket of sockets) socket.destroy();
    // Nothing waits in this store: without a bound for a turn all of them would be answered.
    expect(statuses.filter((status) => status === "503").length).toBeGreaterThan(0);
    expect(statuses.filter((status) => status === "404").length).toBeGreaterThanOrEqual(LOOKS_AT_ONCE);
  });
});

describe("a token that watches as often as it can", () => {
  test("has half of the streams, while its neighbour watches", async () => {
    for (let count = 0; count < STREAM_COUNT_MAX / 2; count++)
      expect((await begun(greedy.read, "/v1/events")).statusCode).toBe(200);
    expect(await ask(greedy.read, "/v1/events")).toMatchObject({ status: 503, answer: { code: "too_many_streams" } });
    expect((await begun(modest.read, "/v1/events")).statusCode).toBe(200);
  });

  test("has all of that half again when streams of it broke, however long more were asked for", async () => {
    const streams: IncomingMessage[] = [];
    for (let count = 0; count < STREAM_COUNT_MAX / 2; count++) streams.push(await begun(greedy.read, "/v1/events"));
    await refusedForLong("/v1/events");
    streams[0]?.destroy();
    await expect.poll(async () => (await begun(greedy.read, "/v1/events")).statusCode).toBe(200);
  });

  test("has all its exports again, too", async () => {
    const path = "/v1/namespaces/main/export";
    store.isEndless = true;
    const exports: IncomingMessage[] = [];
    for (let count = 0; count < EXPORTS_AT_ONCE; count++) exports.push(await begun(greedy.read, path));
    await refusedForLong(path);
    exports[0]?.destroy();
    await expect.poll(async () => (await begun(greedy.read, path)).statusCode).toBe(200);
  });

  /** For longer than a crowd may be one that begins together. */
  async function refusedForLong(path: string) {
    for (let count = 0; count < 4; count++) {
      expect((await ask(greedy.read, path)).status).toBe(503);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
});
