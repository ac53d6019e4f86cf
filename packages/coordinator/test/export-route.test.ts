/** Exports over real sockets: whole or noticeably not, at the pace of whoever takes them, and no longer than that. */
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { exportEndSchema } from "@callnumber/protocol/operator-schemas";
import { ledgerEntrySchema } from "@callnumber/protocol/schemas";
import type { Holder, LedgerEntry } from "@callnumber/protocol/wire";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { EventHub } from "../src/events/events.js";
import { createServer, type Server } from "../src/http/server.js";
import { findLease } from "../src/ledger/read-ledger.js";
import { SILENT_LOG } from "../src/log.js";
import { MemoryStore } from "../src/stores/memory.js";
import type { LeaseQuery } from "../src/stores/store.js";
import { holder, NAMESPACE } from "./commands-for-test.js";

/** A store whose ledger never ends, or ends with a fault, once it is told so. */
class LongStore extends MemoryStore {
  isEndless = false;
  failsAtCall = Number.POSITIVE_INFINITY;
  calls = 0;
  override async leases(namespace: string, query: LeaseQuery) {
    this.calls++;
    if (this.calls >= this.failsAtCall) throw new Error("the disk is gone");
    if (!this.isEndless) return await super.leases(namespace, query);
    const { from = 0, limit } = query;
    return Array.from({ length: limit }, (_, index): LedgerEntry => {
      const firstRun = from + index;
      const [nonce, leasedAtMs] = [`nonce-of-lease-${firstRun}`, 1_790_000_000_000 + firstRun];
      return { version: 0, firstRun, runCount: 1, leasedAtMs, holder, coordinator: "c", nonce, progress: null };
    });
  }
}

let store: LongStore;
let coordinator: Coordinator;
let server: Server;
let url: string;
/** Events of refusals and faults. */
let told: string[];

beforeEach(async () => {
  store = new LongStore();
  coordinator = new Coordinator({ store, name: "test" });
  await coordinator.initNamespace(NAMESPACE);
  told = [];
  const events = new EventHub(SILENT_LOG);
  events.subscribe(({ event }) => void told.push(event));
  server = await createServer({ coordinator, release: "0.0.0", events });
  url = `${await server.listen({ host: "127.0.0.1", port: 0 })}/v1/namespaces/${NAMESPACE}/export`;
});

afterEach(() => server.stop());

async function lease(own: Partial<Holder> = {}, runCount = 1): Promise<string> {
  const nonce = `-nonce-${Math.random().toString(36).slice(2)}-0123456789`;
  const about = { lastRun: null, receipt: null, sentAtMs: 1_700_000_000_000 };
  await coordinator.lease(NAMESPACE, { runCount, nonce, holder: { ...holder, ...own }, ...about });
  return nonce;
}

/** RFC 4180, read by the letter. */
function rowsOf(csv: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, quoted, bare, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    row.push(quoted === undefined ? (bare ?? "") : quoted.replaceAll('""', '"'));
    if (end === ",") continue;
    rows.push(row);
    row = [];
  }
  return rows;
}

describe("an export", () => {
  test("as NDJSON has a lease on each line, oldest first, and a last line that says it is whole", async () => {
    for (let count = 0; count < 600; count++) await lease({ pid: count }, 2);
    const answer = await fetch(url);
    expect(answer.headers.get("content-type")).toBe("application/x-ndjson; charset=utf-8");
    expect(answer.headers.get("content-disposition")).toBe('attachment; filename="main-leases.ndjson"');
    const lines = (await answer.text()).split("\n");
    expect(lines.pop()).toBe("");
    expect(exportEndSchema.parse(JSON.parse(lines.pop() ?? ""))).toEqual({ end: true, leaseCount: 600, upToRun: 1200 });
    const leases = lines.map((line) => ledgerEntrySchema.parse(JSON.parse(line)));
    const { leases: newestFirst } = await coordinator.runs(NAMESPACE, { limit: 500 });
    expect(leases).toHaveLength(600);
    expect(leases.slice(100)).toEqual(newestFirst.toReversed());
  });

  test("as CSV is a table as RFC 4180 has it, with times for programs and for people", async () => {
    const odd = { name: 'Büro, "Listen"', labels: { a: '"x",\\', b: "=1" } };
    const nonce = await lease(odd, 3);
    await coordinator.report(NAMESPACE, 2, { nonce, lastSequence: 7, state: "open" });
    const answer = await fetch(`${url}?format=csv`);
    expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8; header=present");
    const [headings = [], ...rows] = rowsOf(await answer.text());
    expect(rows).toHaveLength(1);
    const cells = Object.fromEntries(headings.map((heading, index) => [heading, rows[0]?.[index]]));
    const { leasedAtMs, progress } = (await findLease(store, NAMESPACE, 1)) as LedgerEntry;
    expect(cells).toEqual({
      version: "0",
      firstRun: "1",
      lastRun: "3",
      runCount: "3",
      leasedAtMs: String(leasedAtMs),
      leasedAt: new Date(leasedAtMs).toISOString(),
      holder: odd.name,
      host: holder.host,
      pid: String(holder.pid),
      labels: JSON.stringify(odd.labels),
      coordinator: "test",
      tokenId: "",
      nonce: `'${nonce}`,
      state: "open",
      reportedRun: "2",
      lastSequence: "7",
      reportedAtMs: String(progress?.reportedAtMs),
      reportedAt: new Date(progress?.reportedAtMs ?? 0).toISOString(),
    });
  });

  test.each(["=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "＝1"])(
    "as CSV hands no formula to a spreadsheet: %s",
    async (name) => {
      await lease({ name });
      const [headings = [], row = []] = rowsOf(await (await fetch(`${url}?format=csv`)).text());
      expect(row[headings.indexOf("holder")]).toBe(`'${name}`);
    },
  );

  test("of nothing says so: no line but the end, no row but the headings", async () => {
    expect(await (await fetch(url)).json()).toEqual({ end: true, leaseCount: 0, upToRun: null });
    expect(rowsOf(await (await fetch(`${url}?format=csv`)).text())).toHaveLength(1);
  });

  test("takes the filters of the runs route, and refuses what is none", async () => {
    for (const pid of [1, 2, 3]) await lease({ pid, labels: { step: String(pid), archive: "lists" } });
    const lines = await (await fetch(`${url}?label=archive%3Dlists&label=step%3D2&toRun=2&state=unreported`)).text();
    expect(lines.split("\n").map((line) => (line === "" ? null : JSON.parse(line).holder?.pid))).toEqual([
      2,
      undefined,
      null,
    ]);
    for (const query of ["format=xml", "limit=5", "label=archive", "label=%3Dx", "state=lost", "fromRun=-1"]) {
      const refused = await fetch(`${url}?${query}`);
      const { code } = (await refused.json()) as { code: string };
      expect([query, refused.status, code]).toEqual([query, 400, "invalid_request"]);
    }
    const unknown = await fetch(url.replace(NAMESPACE, "nowhere"));
    expect(await unknown.json()).toMatchObject({ code: "namespace_not_found" });
    expect((await fetch(url, { method: "HEAD" })).status).toBe(405);
  });
});

describe("an export that goes on for long", () => {
  async function begun(): Promise<IncomingMessage> {
    const request = get(url);
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    answer.on("error", () => {});
    return answer;
  }

  /** Resolves when the store was left alone for a while. */
  async function untilQuiet(): Promise<number> {
    for (let before = -1; before !== store.calls; ) {
      before = store.calls;
      await delay(150);
    }
    return store.calls;
  }

  test("waits for whoever takes it, reads on when it is taken, and ends when nobody does", async () => {
    store.isEndless = true;
    const answer = await begun();
    const waiting = await untilQuiet();
    answer.resume();
    await expect.poll(() => store.calls).toBeGreaterThan(2 * waiting);
    answer.destroy();
    await untilQuiet();
  });

  test("lets leases be made meanwhile", async () => {
    store.isEndless = true;
    const answer = await begun();
    answer.resume();
    for (let count = 0; count < 5; count++) await lease();
    expect((await store.readNamespace(NAMESPACE)).highWaterMark).toBe(5);
    answer.destroy();
  });

  test("takes one of two slots of its client, and frees it when it is broken off", async () => {
    store.isEndless = true;
    const [first] = [await begun(), await begun()];
    const rejected = await fetch(url);
    expect([rejected.status, await rejected.json()]).toMatchObject([503, { code: "overloaded" }]);
    first?.destroy();
    await expect
      .poll(async () => {
        const next = await begun();
        next.destroy();
        return next.statusCode;
      })
      .toBe(200);
  });

  test.each(["ndjson", "csv"])(
    "is refused before it begins when nothing can be read, and the log hears it: %s",
    async (format) => {
      store.failsAtCall = 1;
      const answer = await fetch(`${url}?format=${format}`);
      expect(answer.status).toBe(500);
      expect(answer.headers.get("content-type")).toContain("application/json");
      expect(told).toEqual(["internal_error"]);
    },
  );

  test.each(["ndjson", "csv"])(
    "is cut where it breaks off, so that a part is never taken for the whole: %s",
    async (format) => {
      store.isEndless = true;
      store.failsAtCall = 4;
      const answer = await fetch(`${url}?format=${format}`);
      expect(answer.status).toBe(200);
      await expect(answer.text()).rejects.toThrow();
      expect(told).toEqual(["internal_error"]);
    },
  );
});
