/** The ledger shows each lease that no client received as discarded, and no other lease. */
import { connect } from "node:net";
import type { Progress } from "@callnumber/protocol/api";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { afterEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { type Applied, type Change, type Expected, isApplied, type Observed } from "../src/guard/step-store.js";
import { createServer, type Server } from "../src/http/server.js";
import type { Log } from "../src/log.js";
import { MemoryStore } from "../src/stores/memory.js";
import { holder, NAMESPACE } from "./commands-for-test.js";

type Alter = (applied: Applied) => Applied;

/** A store of two nodes whose answers to leases can be altered after they were done, and delayed. */
class AlteringStore extends MemoryStore {
  alter: Alter = (applied) => applied;
  gate: Promise<unknown> = Promise.resolve();
  isReporting = true;
  readonly reports: Progress[] = [];
  override async read(namespace: string): Promise<Observed> {
    const { keys, server } = await super.read(namespace);
    return { keys, server: { ...server, connectedReplicas: 1 } };
  }
  override async apply(namespace: string, expected: Expected, change: Change): Promise<Applied | Observed> {
    const isLease = change.leases.length > 0;
    if (isLease) await this.gate;
    const answer = await super.apply(namespace, expected, change);
    if (!isApplied(answer)) return answer;
    const { epoch, generation } = change.record;
    const applied = { ...answer, acknowledgedCount: 1, check: { role: "master", epoch, generation } };
    return isLease ? this.alter(applied) : applied;
  }
  override async setProgress(namespace: string, lease: LedgerEntry, progress: Progress): Promise<boolean> {
    this.reports.push(progress);
    if (!this.isReporting) throw new Error("not now");
    return await super.setProgress(namespace, lease, progress);
  }
}

const toEnd: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of toEnd.splice(0)) await end();
});

async function coordinatorOn(store: AlteringStore) {
  const logged: [event: string, fields: object][] = [];
  const note = (fields: object, event: string) => void logged.push([event, fields]);
  const log: Log = { debug: note, info: note, warn: note, error: note };
  const coordinator = new Coordinator({ store, name: "test", log });
  await coordinator.initNamespace(NAMESPACE, { nodeCount: 2 });
  const discarded = () => logged.filter(([event]) => event === "discarded").map(([, fields]) => fields);
  return { coordinator, logged, discarded };
}

let asked = 0;
const request = (runCount = 1) => {
  const nonce = `nonce-of-request-${asked++}`;
  return { runCount, nonce, holder, lastRun: null, proof: null, sentAtMs: 1_700_000_000_000 };
};

async function statesIn(coordinator: Coordinator): Promise<readonly (string | undefined)[]> {
  const { leases } = await coordinator.runs(NAMESPACE, { limit: 500 });
  return leases.map(({ progress }: LedgerEntry) => progress?.state).reverse();
}

const unacknowledged: Alter = (applied) => ({ ...applied, acknowledgedCount: 0 });
const restarted: Alter = (applied) => ({
  ...applied,
  check: { role: "master", epoch: "another:life:0", generation: 0 },
});

test.each([
  ["quorum_missing", unacknowledged],
  ["lease_discarded", restarted],
])("a lease rejected as %s is discarded, with all its runs, in the ledger and in the log", async (code, alter) => {
  const store = new AlteringStore();
  const { coordinator, discarded } = await coordinatorOn(store);
  await coordinator.lease(NAMESPACE, request());
  store.alter = alter;
  const refused = request(3);
  await expect(coordinator.lease(NAMESPACE, refused)).rejects.toMatchObject({ code });
  expect(await statesIn(coordinator)).toEqual([undefined, "discarded"]);
  const { nonce } = refused;
  expect(discarded()).toEqual([{ namespace: NAMESPACE, version: 0, firstRun: 2, runCount: 3, reason: code, nonce }]);
  for (const run of [2, 3, 4]) {
    expect(await coordinator.run(NAMESPACE, run)).toMatchObject({ state: "discarded", lastSequence: null });
  }
});

test("inspect reports that a number of a discarded lease was not made", async () => {
  const store = new AlteringStore();
  const { coordinator } = await coordinatorOn(store);
  store.alter = restarted;
  await expect(coordinator.lease(NAMESPACE, request())).rejects.toThrow();
  expect(await coordinator.inspect(NAMESPACE, encodeCallNumber({ version: 0, run: 1, sequence: 0 }))).toMatchObject({
    verdict: "not_made",
    state: "discarded",
    explanation: expect.stringContaining("never handed out: this number was not made"),
  });
  expect(await coordinator.canExist(NAMESPACE, encodeCallNumber({ version: 0, run: 1, sequence: 0 }))).toBe(false);
});

test("a discarded lease is rejected with the same code when the store cannot record it", async () => {
  const store = new AlteringStore();
  const { coordinator, logged } = await coordinatorOn(store);
  store.alter = restarted;
  store.isReporting = false;
  await expect(coordinator.lease(NAMESPACE, request())).rejects.toMatchObject({ code: "lease_discarded" });
  expect(await statesIn(coordinator)).toEqual([undefined]);
  const reason = "not now";
  expect(logged).toContainEqual(["discard_not_recorded", { namespace: NAMESPACE, version: 0, run: 1, reason }]);
});

test("a discard is not recorded when the runs were leased before: another holder may have generated their numbers", async () => {
  const store = new AlteringStore();
  const { coordinator, discarded } = await coordinatorOn(store);
  await coordinator.lease(NAMESPACE, request(10));
  store.alter = (applied) => ({ ...applied, highWaterMark: 10 });
  await expect(coordinator.lease(NAMESPACE, request())).rejects.toMatchObject({ code: "lease_discarded" });
  expect([discarded(), store.reports]).toEqual([[], []]);
});

describe("over HTTP", () => {
  async function serverOn(store: AlteringStore) {
    const at = await coordinatorOn(store);
    const server: Server = createServer({ coordinator: at.coordinator, release: "0.0.0" });
    toEnd.push(() => server.stop());
    const base = await server.listen({ host: "127.0.0.1", port: 0 });
    return { ...at, base };
  }

  test("a lease whose client disconnects before the response is discarded", async () => {
    const store = new AlteringStore();
    const { coordinator, discarded, base } = await serverOn(store);
    let open = () => {};
    let arrived = () => {};
    const hasArrived = new Promise<void>((resolve) => (arrived = resolve));
    store.gate = new Promise<void>((resolve) => (open = resolve));
    const apply = store.apply.bind(store);
    store.apply = (namespace, expected, change) => {
      arrived();
      return apply(namespace, expected, change);
    };
    const body = JSON.stringify(request(2));
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(base).port) });
    socket.write(
      `POST /v1/namespaces/${NAMESPACE}/leases HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await hasArrived;
    socket.destroy();
    // The server has seen it when it has answered a later request.
    await fetch(`${base}/healthz`);
    await fetch(`${base}/healthz`);
    open();
    await expect.poll(discarded).toMatchObject([{ firstRun: 1, runCount: 2, reason: "requester_gone" }]);
    await expect.poll(() => statesIn(coordinator)).toEqual(["discarded"]);
  });

  test("a lease with a response is not discarded, and its holder can't report it so", async () => {
    const { coordinator, discarded, base } = await serverOn(new AlteringStore());
    const post = async (path: string, body: unknown) => {
      const headers = { "content-type": "application/json" };
      const answer = await fetch(base + path, { method: "POST", headers, body: JSON.stringify(body) });
      return { status: answer.status, body: await answer.json() };
    };
    const { nonce, ...rest } = request();
    const leased = await post(`/v1/namespaces/${NAMESPACE}/leases`, { nonce, ...rest });
    expect(leased.status).toBe(201);
    const report = { nonce, lastSequence: null, state: "discarded" };
    const logged = await post(`/v1/namespaces/${NAMESPACE}/runs/1/report`, report);
    expect(logged).toMatchObject({ status: 400, body: { code: "invalid_request" } });
    expect([discarded(), await statesIn(coordinator)]).toEqual([[], [undefined]]);
  });
});
