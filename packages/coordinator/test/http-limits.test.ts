/** Limits over real sockets: what is refused is neither leased nor written, and neighbors feel nothing of it. */
import { once } from "node:events";
import { connect } from "node:net";
import { capacityResponseSchema } from "@callnumber/protocol/operator-schemas";
import type { Lease } from "@callnumber/protocol/wire";
import { afterEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { EventHub } from "../src/events/events.js";
import { type Authenticator, UNRESTRICTED } from "../src/http/auth.js";
import { createServer, type Server, type ServerOptions } from "../src/http/server.js";
import { LeaseLimits, type LeaseLimitsOptions } from "../src/limits/lease-limits.js";
import { FREE_STARTS } from "../src/limits/restart-brake.js";
import { SILENT_LOG } from "../src/log.js";
import { MemoryStore } from "../src/stores/memory.js";
import type { Outcome, StepCommand } from "../src/stores/store.js";

/** A store whose leases wait while its gate is closed, and which counts how often it is asked for one. */
class GatedStore extends MemoryStore {
  gate: Promise<void> = Promise.resolve();
  leaseCount = 0;
  override async step(namespace: string, command: StepCommand): Promise<Outcome> {
    if (command.step === "lease") {
      this.leaseCount++;
      await this.gate;
    }
    return super.step(namespace, command);
  }
}

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

/** Takes the id of a token from a header. */
const authenticator: Authenticator = {
  authenticate: ({ headers }) => {
    const id = headers["x-token"];
    return typeof id === "string" ? { ...UNRESTRICTED, tokenId: id } : UNRESTRICTED;
  },
  isValid: () => true,
};

async function served(limitsOptions: LeaseLimitsOptions = {}, more: Partial<ServerOptions> = {}) {
  const clock = { nowMs: 1_000_000 };
  const limits = new LeaseLimits({ now: () => clock.nowMs, ...limitsOptions });
  const store = new GatedStore();
  const events = new EventHub(SILENT_LOG);
  const coordinator = new Coordinator({ store, name: "c", log: events, startLoops: (name) => limits.startLoops(name) });
  await coordinator.initNamespace("main");
  const server = await createServer({ coordinator, release: "0.0.0", events, authenticator, limits, ...more });
  servers.push(server);
  const base = await server.listen({ host: "127.0.0.1", port: 0 });
  const lease = (own: Partial<Asked> = {}) => ask(base, own);
  const mark = async () => (await store.readNamespace("main")).highWaterMark;
  return { base, lease, clock, store, mark };
}

interface Asked {
  readonly token: string;
  readonly runCount: number;
  readonly name: string;
  readonly pid: number;
  readonly lastRun: number | null;
  readonly namespace: string;
}

let nonceCount = 0;

async function ask(
  base: string,
  { token, runCount = 1, name = "letters", pid = 1, lastRun = null, namespace = "main" }: Partial<Asked>,
) {
  const nonce = `nonce-${String(++nonceCount).padStart(12, "0")}`;
  const holder = { name, host: "mail-1", pid, labels: {} };
  const response = await fetch(`${base}/v1/namespaces/${namespace}/leases`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(token === undefined ? {} : { "x-token": token }) },
    body: JSON.stringify({ runCount, nonce, holder, lastRun, receipt: null, sentAtMs: 0 }),
  });
  const body = (await response.json()) as Lease & { code: string; retryAfterMs: number };
  return { status: response.status, retryAfter: response.headers.get("retry-after"), nonce, body };
}

function gateOf(store: GatedStore): () => void {
  let open = () => {};
  store.gate = new Promise((resolve) => {
    open = resolve;
  });
  return open;
}

async function countOf(base: string, code: string): Promise<number> {
  const text = await (await fetch(`${base}/metrics`)).text();
  const figures = text.matchAll(new RegExp(`^callnumber_rejected_requests_total{[^}]*code="${code}"} (\\d+)$`, "gm"));
  return [...figures].reduce((sum, [, figure]) => sum + Number(figure), 0);
}

describe("what a token may take", () => {
  const options = { token: { atOnce: 10, perSecond: 4 } };

  test("is leased as far as it goes, and then refused before the store is asked, with the time to wait", async () => {
    const { lease, clock, store, mark } = await served(options);
    expect((await lease({ token: "aa", runCount: 4 })).body.runCount).toBe(4);
    expect((await lease({ token: "aa", runCount: 64 })).body.runCount).toBe(6);
    const refused = await lease({ token: "aa", name: "another one" });
    expect(refused).toMatchObject({ status: 429, retryAfter: "1", body: { code: "rate_limited", retryAfterMs: 250 } });
    expect([await mark(), store.leaseCount]).toEqual([10, 2]);
    clock.nowMs += 249;
    expect((await lease({ token: "aa" })).body.retryAfterMs).toBe(1);
    clock.nowMs += 1;
    expect((await lease({ token: "aa", runCount: 64 })).body.runCount).toBe(1);
    expect(await mark()).toBe(11);
  });

  test("is nobody else's: another token has its own", async () => {
    const { lease } = await served(options);
    expect((await lease({ token: "aa", runCount: 64 })).body.runCount).toBe(10);
    expect((await lease({ token: "bb", runCount: 64 })).body.runCount).toBe(10);
  });

  test("is given back for what was asked for and not leased", async () => {
    const { lease } = await served(options);
    for (let index = 0; index < 20; index++) {
      expect((await lease({ token: "aa", runCount: 10, namespace: "unknown" })).body.code).toBe("namespace_not_found");
    }
    expect((await lease({ token: "aa", runCount: 64 })).body.runCount).toBe(10);
  });
});

describe("what a holder may take", () => {
  const options = { token: { atOnce: 100, perSecond: 16 }, holder: { atOnce: 10, perSecond: 4 } };

  test("is the same for all its processes, and leaves the others of the token theirs", async () => {
    const { lease } = await served(options);
    expect((await lease({ token: "aa", runCount: 10, pid: 1 })).status).toBe(201);
    expect((await lease({ token: "aa", pid: 2 })).body).toMatchObject({ code: "rate_limited", retryAfterMs: 250 });
    expect((await lease({ token: "aa", name: "lists", runCount: 10 })).body.runCount).toBe(10);
  });

  test("can't be spent by the holder of another token that uses its name", async () => {
    const { lease } = await served(options);
    expect((await lease({ token: "bb", runCount: 64 })).body.runCount).toBe(10);
    expect((await lease({ token: "aa", runCount: 64 })).body.runCount).toBe(10);
  });

  test("does not grow by inventing names: these spend what the token has", async () => {
    const { lease, mark } = await served(options);
    const refusals: string[] = [];
    for (let index = 0; index < 120; index++) {
      const { status, body } = await lease({ token: "aa", name: `invented-${index}` });
      if (status !== 201) refusals.push(body.code);
    }
    expect([await mark(), refusals.length]).toEqual([100, 20]);
    expect((await lease({ token: "bb", runCount: 10 })).body.runCount).toBe(10);
  });
});

describe("a holder that starts again and again", () => {
  const options = { holder: { atOnce: 1_000, perSecond: 1_000 } };

  test("is made to wait and raises an alarm, while its neighbor goes on; until one of its processes works", async () => {
    const { base, lease, clock, mark } = await served(options);
    const last = { nonce: "", run: 0 };
    for (let pid = 1; pid <= FREE_STARTS; pid++) {
      const { status, nonce, body } = await lease({ pid });
      expect(status).toBe(201);
      Object.assign(last, { nonce, run: body.firstRun });
    }
    const refused = await lease({ pid: 1_000 });
    expect(refused).toMatchObject({ status: 429, body: { code: "rate_limited", retryAfterMs: 1_000 } });
    expect(await mark()).toBe(FREE_STARTS);
    expect((await lease({ name: "lists" })).status).toBe(201);
    const capacity = capacityResponseSchema.parse(await (await fetch(`${base}/v1/namespaces/main/capacity`)).json());
    expect(capacity.alarms).toContainEqual({
      name: "holder_restarts",
      severity: "warning",
      explanation: expect.stringContaining(`"letters" on mail-1 was started ${FREE_STARTS} times`),
    });
    clock.nowMs += 1_000;
    expect((await lease({ pid: 1_001 })).status).toBe(201);
    expect((await lease({ pid: 1_002 })).status).toBe(429);
    const report = await fetch(`${base}/v1/namespaces/main/runs/${last.run}/report`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ nonce: last.nonce, lastSequence: 5, state: "open" }),
    });
    expect(report.status).toBe(200);
    expect((await lease({ pid: 1_003 })).status).toBe(201);
  });
});

describe("more leases in flight than a client may have", () => {
  test("fail with overloaded, while reads are answered; afterwards all is as before", async () => {
    const { base, lease, store, mark } = await served({}, { maxConcurrentLeases: 2 });
    const open = gateOf(store);
    const admitted = [lease({ pid: 1 }), lease({ pid: 2 })];
    await expect.poll(() => store.leaseCount).toBe(2);
    const rejected = await Promise.all(Array.from({ length: 40 }, () => lease()));
    for (const one of rejected) {
      expect(one).toMatchObject({ status: 503, retryAfter: "1", body: { code: "overloaded", retryAfterMs: 1_000 } });
    }
    for (const path of ["/healthz", "/v1/namespaces/main/status", "/v1/namespaces", "/metrics"]) {
      expect((await fetch(base + path)).status, path).toBe(200);
    }
    expect([store.leaseCount, await mark()]).toEqual([2, 0]);
    open();
    for (const { status } of await Promise.all(admitted)) expect(status).toBe(201);
    expect((await lease()).status).toBe(201);
    expect([await mark(), await countOf(base, "overloaded")]).toEqual([3, 40]);
  });

  test("leave slots for the clients of another token", async () => {
    const { lease, store } = await served({}, { maxConcurrentLeases: 2 });
    const open = gateOf(store);
    const admitted = [lease({ token: "aa" }), lease({ token: "aa" })];
    await expect.poll(() => store.leaseCount).toBe(2);
    expect((await lease({ token: "aa" })).status).toBe(503);
    admitted.push(lease({ token: "bb" }));
    await expect.poll(() => store.leaseCount).toBe(3);
    open();
    for (const { status } of await Promise.all(admitted)) expect(status).toBe(201);
  });

  test("are not those that wait for their bodies", async () => {
    const { base, lease } = await served({}, { maxConcurrentLeases: 2 });
    const { hostname, port } = new URL(base);
    const sockets = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const socket = connect({ host: hostname, port: Number(port) });
        await once(socket, "connect");
        socket.on("error", () => {});
        const head = `POST /v1/namespaces/main/leases HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json`;
        socket.write(`${head}\r\ncontent-length: 200\r\n\r\n{"runCount":`);
        return socket;
      }),
    );
    expect((await lease()).status).toBe(201);
    for (const socket of sockets) socket.destroy();
  });
});
