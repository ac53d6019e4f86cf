/** Exports over real sockets: complete or noticeably not, at the pace of their clients, and no longer than that. */
import { once } from "node:events";
import { type IncomingMessage, get as request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Holder } from "@callnumber/protocol/api";
import { exportEndSchema, type LedgerEntry, ledgerEntrySchema } from "@callnumber/protocol/schemas";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { MemoryStore } from "../src/stores/memory.js";
import type { LeaseQuery } from "../src/stores/store.js";
import { holder, NAMESPACE } from "./commands-for-test.js";
import { leaseRequest, served } from "./served.js";

/** A store whose ledger never ends, or fails. */
class LongStore extends MemoryStore {
  isEndless = false;
  failsAtCall = Number.POSITIVE_INFINITY;
  callCount = 0;
  override async leases(namespace: string, query: LeaseQuery) {
    this.callCount++;
    if (this.callCount >= this.failsAtCall) throw new Error("the disk is gone");
    if (!this.isEndless) return await super.leases(namespace, query);
    const { from = 0, limit } = query;
    return Array.from({ length: limit }, (_, index): LedgerEntry => {
      const firstRun = from + index;
      const [nonce, leasedAtMs] = [`nonce-of-lease-${firstRun}`, 1_790_000_000_000 + firstRun];
      return { version: 0, firstRun, runCount: 1, leasedAtMs, holder, coordinator: "c", nonce, progress: null };
    });
  }
}

const EXPORT = `/v1/namespaces/${NAMESPACE}/export`;

let store: LongStore;
let { coordinator, get, call, url } = {} as Awaited<ReturnType<typeof served>>;
/** Events of rejections and bugs. */
let logged: string[];

beforeEach(async () => {
  store = new LongStore();
  const server = await served({ own: { store } });
  ({ coordinator, get, call, url } = server);
  logged = [];
  server.events.subscribe(
    ({ event }) => event !== "lease" && event !== "checkpoint_created" && void logged.push(event),
  );
});

async function lease(own: Partial<Holder> = {}, runCount = 1): Promise<void> {
  await coordinator.lease(NAMESPACE, leaseRequest({ runCount, holder: { ...holder, ...own } }));
}

test("an export has a lease on each line, oldest first, and a last line that shows that it is complete", async () => {
  for (let count = 0; count < 600; count++) await lease({ pid: count }, 2);
  const { headers, text } = await get(EXPORT);
  expect(headers.get("content-type")).toBe("application/x-ndjson; charset=utf-8");
  expect(headers.get("content-disposition")).toBe('attachment; filename="main-leases.ndjson"');
  const lines = text.split("\n");
  expect(lines.pop()).toBe("");
  expect(exportEndSchema.parse(JSON.parse(lines.pop() ?? ""))).toEqual({
    end: true,
    leaseCount: 600,
    upToVersion: 0,
    upToRun: 1200,
  });
  const leases = lines.map((line) => ledgerEntrySchema.parse(JSON.parse(line)));
  const { leases: newestFirst } = await coordinator.runs(NAMESPACE, { limit: 500 });
  expect(leases).toHaveLength(600);
  expect(leases.slice(100)).toEqual(newestFirst.toReversed());
});

test("an export of no leases has the last line and nothing else", async () => {
  expect(JSON.parse((await get(EXPORT)).text)).toEqual({ end: true, leaseCount: 0, upToVersion: null, upToRun: null });
});

test("an export has the filters of the list of runs", async () => {
  for (const pid of [1, 2, 3]) await lease({ pid, labels: { step: String(pid), archive: "lists" } });
  const { text } = await get(`${EXPORT}?label=archive%3Dlists&label=step%3D2&toRun=2&state=unreported`);
  const pids = text.split("\n").map((line) => (line === "" ? null : JSON.parse(line).holder?.pid));
  expect(pids).toEqual([2, undefined, null]);
});

test.each(["format=csv", "limit=5", "label=archive", "label=%3Dx", "state=lost", "fromRun=-1"])(
  "an export rejects the query %s",
  async (query) => {
    expect(await get(`${EXPORT}?${query}`)).toMatchObject({ status: 400, body: { code: "invalid_request" } });
  },
);

test("an export rejects an unknown namespace, and HEAD", async () => {
  expect((await get(EXPORT.replace(NAMESPACE, "nowhere"))).body.code).toBe("namespace_not_found");
  expect((await call("HEAD", EXPORT)).status).toBe(405);
});

describe("a long export", () => {
  async function begun(): Promise<IncomingMessage> {
    const outgoing = request(url + EXPORT);
    onTestFinished(() => void outgoing.destroy());
    const [response] = (await once(
      outgoing.on("error", () => {}),
      "response",
    )) as [IncomingMessage];
    response.on("error", () => {});
    return response;
  }

  /** Resolves when the store was not read for a while. */
  async function untilQuiet(): Promise<number> {
    for (let before = -1; before !== store.callCount; ) {
      before = store.callCount;
      await delay(150);
    }
    return store.callCount;
  }

  test("a long export waits for its client, reads on when the client does, and ends when it disconnects", async () => {
    store.isEndless = true;
    const response = await begun();
    const callCount = await untilQuiet();
    response.resume();
    await expect.poll(() => store.callCount).toBeGreaterThan(2 * callCount);
    response.destroy();
    await untilQuiet();
  });

  test("a long export lets leases continue", async () => {
    store.isEndless = true;
    const response = await begun();
    response.resume();
    for (let count = 0; count < 5; count++) await lease();
    expect((await store.readNamespace(NAMESPACE)).highWaterMark).toBe(5);
    response.destroy();
  });

  test("a long export takes one of two slots of its client, and frees it when it is cut off", async () => {
    store.isEndless = true;
    const [first, second] = [await begun(), await begun()];
    expect(await get(EXPORT)).toMatchObject({ status: 503, body: { code: "overloaded" } });
    first.destroy();
    await expect
      .poll(async () => {
        const next = await begun();
        next.destroy();
        return next.statusCode;
      })
      .toBe(200);
    second.destroy();
  });

  test("an export is rejected before it begins when nothing can be read, and logged", async () => {
    store.failsAtCall = 1;
    const { status, body } = await get(EXPORT);
    expect([status, body.code]).toEqual([500, "internal_error"]);
    expect(logged).toEqual(["internal_error"]);
  });

  test("an export is cut where it fails, so that a part is never taken for the whole", async () => {
    store.isEndless = true;
    store.failsAtCall = 4;
    const response = await fetch(url + EXPORT);
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
    expect(logged).toEqual(["internal_error"]);
  });
});
