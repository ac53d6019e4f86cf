/** What is read about namespaces over HTTP: all of them; status, capacity, history, leases and call numbers of one. */

import { HISTORY_STEP_COUNT, HISTORY_WINDOWS_MS } from "@callnumber/protocol/api";
import { encodeCallNumber, RUN_MAX } from "@callnumber/protocol/codec";
import {
  capacityResponseSchema,
  historyResponseSchema,
  inspectResponseSchema,
  namespacesResponseSchema,
  runsResponseSchema,
  statusResponseSchema,
} from "@callnumber/protocol/schemas";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { CoordinatorError } from "../src/errors.js";
import { PUBLIC_READS_MAX } from "../src/http/in-flight-limits.js";
import { holder, LEASE_NONCE } from "./commands-for-test.js";
import { gatedMethod } from "./gated-store.js";
import { served } from "./served.js";

type Served = Awaited<ReturnType<typeof served>>;

let { store, coordinator, get, post, lease } = {} as Served;

beforeEach(async () => {
  ({ store, coordinator, get, post, lease } = await served());
});

const inMain = (path: string) => get(`/v1/namespaces/main/${path}`);
const report = (run: number, lastSequence: number | null, state: string) =>
  post(`/v1/namespaces/main/runs/${run}/report`, { nonce: LEASE_NONCE, lastSequence, state });

describe("the list of namespaces", () => {
  const listed = async () => namespacesResponseSchema.parse((await get("/v1/namespaces")).body);

  test("the list of namespaces shows each by name, with its run space, its rate, and whether it leases", async () => {
    await coordinator.initNamespace("lists", { firstRun: 90, rate: 4 });
    await lease({ runCount: 5 }, "lists");
    const { namespaces, ...about } = await listed();
    expect(about).toEqual({ store: "memory", coordinator: "test", release: "1.2.3" });
    const used = { version: 0, firstRun: 90, highWaterMark: 94, runsUsed: 5, runsLeft: RUN_MAX - 94 };
    const unused = { firstRun: 1, highWaterMark: 0, runsUsed: 0, ceilingRunsPerSecond: 2 };
    expect(namespaces).toMatchObject([
      { namespace: "lists", record: { ...used, ceilingRunsPerSecond: 4 }, guard: { state: "active", code: null } },
      { namespace: "main", record: unused },
    ]);
  });

  test("the list of namespaces shows why a record can't be read, and the other namespaces with it", async () => {
    await coordinator.initNamespace("lists");
    await listed();
    const read = store.readNamespace.bind(store);
    store.readNamespace = async (namespace) => {
      if (namespace === "main") throw new CoordinatorError("store_corrupt", "the checksum of the record is wrong");
      return read(namespace);
    };
    const guard = { state: "stopped", code: "store_corrupt", explanation: expect.stringContaining("checksum") };
    expect((await listed()).namespaces).toMatchObject([
      { namespace: "lists", record: { firstRun: 1 }, guard: { state: "active" } },
      { namespace: "main", record: null, guard },
    ]);
  });

  test("the list of namespaces shows one as stopped while a server of the store could lose leases", async () => {
    const code = "store_eviction_enabled";
    store.preflight = async () => [{ code, what: "it evicts", remedy: "set noeviction" }];
    coordinator.startHeartbeat();
    onTestFinished(() => coordinator.stopHeartbeat());
    expect((await lease()).body).toMatchObject({ code });
    expect((await listed()).namespaces).toMatchObject([{ namespace: "main", guard: { state: "stopped", code } }]);
  });

  test("the list of namespaces fails as a whole only when the store does not respond", async () => {
    store.listNamespaces = async () => {
      throw new CoordinatorError("store_unavailable", "gone");
    };
    expect(await get("/v1/namespaces")).toMatchObject({ status: 503, body: { code: "store_unavailable" } });
  });
});

describe("the list of runs", () => {
  const page = async (query: string) => runsResponseSchema.parse((await inMain(`runs?${query}`)).body);

  test("the list of runs has each lease once, newest first, page by page", async () => {
    for (let count = 0; count < 7; count++) await lease({ runCount: 2 });
    const seen: number[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const { leases, nextCursor } = await page(`limit=3${cursor && `&cursor=${cursor}`}`);
      seen.push(...leases.map(({ firstRun }) => firstRun));
      cursor = nextCursor;
    }
    expect(seen).toEqual([13, 11, 9, 7, 5, 3, 1]);
  });

  test("the list of runs has the documented shape and nothing else, as JSON", async () => {
    for (let count = 0; count < 3; count++) await lease({ holder: { ...holder, labels: { a: "ä" } } });
    await report(2, 5, "open");
    for (const path of ["runs", "runs?limit=1", "runs?holder=absent"]) {
      const { body, headers } = await inMain(path);
      expect(runsResponseSchema.parse(body)).toEqual(body);
      expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
    }
  });

  test("the list of runs is filtered by holder and by time", async () => {
    for (const name of ["a", "b", "a", "c"]) await lease({ holder: { ...holder, name } });
    expect((await page("holder=a")).leases.map(({ firstRun }) => firstRun)).toEqual([3, 1]);
    const { leasedAtMs } = (await inMain("runs/4")).body.lease;
    expect(await page(`leasedFromMs=${leasedAtMs + 1}`)).toMatchObject({ leases: [], nextCursor: null });
    expect((await page(`leasedToMs=${leasedAtMs + 1}`)).leases).toHaveLength(4);
  });

  test("a run that was never leased is not found", async () => {
    expect(await inMain("runs/9")).toMatchObject({ status: 404, body: { code: "run_not_leased" } });
  });
});

describe("inspect", () => {
  const inspect = async (text: string, query = "") =>
    inspectResponseSchema.parse((await inMain(`call-numbers/${encodeURIComponent(text)}${query}`)).body);
  const number = (run: number, sequence: number, version = 0) => encodeCallNumber({ version, run, sequence });

  beforeEach(() => lease({ runCount: 2 }));

  test.each([
    ["2VznWE2", "wrong_length", null],
    ["2Vzn/E2i", "wrong_character", 4],
    ["zzzzzzzz", "beyond_greatest", null],
  ])("inspect calls %j malformed: %s", async (text, problem, position) => {
    expect(await inspect(text)).toMatchObject({ verdict: "malformed", callNumber: text, problem, position });
  });

  test("inspect returns the verdict of each kind of number", async () => {
    expect(await inspect(number(1, 0, 1))).toMatchObject({ verdict: "other_version", version: 1 });
    expect(await inspect(number(3, 0))).toMatchObject({ verdict: "never_leased", reason: "above_mark" });
    expect(await inspect(number(0, 0))).toMatchObject({ verdict: "never_leased", reason: "below_first_run" });
    const unreported = { verdict: "unreported", state: "unreported", lease: { holder } };
    expect(await inspect(number(1, 5))).toMatchObject(unreported);
    await report(1, 5, "open");
    expect(await inspect(number(1, 5))).toMatchObject({ verdict: "reported", lastSequence: 5 });
    expect(await inspect(number(1, 6))).toMatchObject({ verdict: "unreported", state: "open" });
    await report(2, null, "closed");
    expect(await inspect(number(1, 16_383))).toMatchObject({ verdict: "reported", state: "exhausted" });
    const explanation = expect.stringContaining("was not made");
    expect(await inspect(number(2, 0))).toMatchObject({ verdict: "not_made", state: "closed", explanation });
  });

  test("inspect returns neighbors on request", async () => {
    const own = await inspect(number(1, 0), "?neighbors=yes");
    expect(own).toMatchObject({ neighbors: { previous: null, next: null } });
    expect(await inspect(number(1, 0))).toMatchObject({ neighbors: null });
  });
});

test("the status counts what is leased and left", async () => {
  await lease({ runCount: 64 });
  const { rates, ...status } = statusResponseSchema.parse((await inMain("status")).body);
  const [runsLeft, callNumbersLeft] = [RUN_MAX - 64, (RUN_MAX - 64) * 16_384];
  const guard = { state: "active", code: null, generation: 0, nodeCount: 1 };
  expect(status).toMatchObject({
    store: "memory",
    coordinator: "test",
    highWaterMark: 64,
    runsUsed: 64,
    runsLeft,
    callNumbersLeft,
    guard,
  });
  // A minute is the shortest life that a rate is measured over, and too short for a forecast.
  expect(rates).toEqual([{ windowMs: 60_000, runs: 64, runsPerDay: 64 * 1440, exhaustedAtMs: null }]);
});

describe("capacity", () => {
  const capacity = async () => capacityResponseSchema.parse((await inMain("capacity")).body);

  test("the capacity shows by holder what was leased", async () => {
    await lease({ runCount: 2, holder: { ...holder, name: "steady" } });
    for (let pid = 1; pid <= 3; pid++) await lease({ holder: { ...holder, name: "many", pid } });
    const { rates, ...shown } = await capacity();
    expect(rates.map(({ runs }) => runs)).toEqual([5]);
    expect(shown).toMatchObject({
      runsUsed: 5,
      lookedAt: { leaseCount: 4 },
      holders: [
        { name: "many", leaseCount: 3, runCount: 3, share: 0.6, isLive: true },
        { name: "steady", leaseCount: 1, runCount: 2, share: 0.4, isLive: true },
      ],
    });
  });
});

test.each([...HISTORY_WINDOWS_MS])("the history of %i ms adds up to what was leased in it", async (windowMs) => {
  await lease({ runCount: 5 });
  const { runs, stepMs, fromMs } = historyResponseSchema.parse((await inMain(`history?windowMs=${windowMs}`)).body);
  expect(stepMs).toBe(windowMs / HISTORY_STEP_COUNT);
  expect(Math.abs(fromMs + windowMs - Date.now())).toBeLessThanOrEqual(2 * stepMs);
  expect(runs.reduce((sum, count) => sum + count, 0)).toBe(5);
  if (windowMs === HISTORY_WINDOWS_MS[0]) expect((await inMain("history")).body.stepMs).toBe(stepMs);
});

test.each([
  ["runs?limit=0", "limit"],
  ["history?windowMs=1", "windowMs"],
  ["history?windowMs=x", "windowMs"],
  ["history?windowMs=3600000&more=1", "more"],
  ["call-numbers/2VznWE2i?neighbors=maybe", "neighbors"],
])("the query of %s is rejected, and the message names its fault", async (path, fault) => {
  const message = expect.stringContaining(fault);
  expect(await inMain(path)).toMatchObject({ status: 400, body: { code: "invalid_request", message } });
});

test.each(["capacity", "history"])("%s of a namespace that does not exist is not found", async (path) => {
  const rejection = { status: 404, body: { code: "namespace_not_found" } };
  expect(await get(`/v1/namespaces/other/${path}`)).toMatchObject(rejection);
});

describe("the public inspection", () => {
  const pathOf = (text: string, namespace = "main") =>
    `/v1/public/namespaces/${namespace}/call-numbers/${encodeURIComponent(text)}`;
  const number = (run: number) => encodeCallNumber({ version: 0, run, sequence: 3 });

  test("the public inspection is an unknown path unless it is switched on", async () => {
    expect(await get(pathOf(number(1)))).toMatchObject({ status: 404, body: { code: "not_found" } });
  });

  describe("when it is switched on", () => {
    beforeEach(async () => {
      ({ store, get, post, lease } = await served({ publicInspect: true }));
    });

    test("the public inspection returns whether a message can have a number, and nothing else, in one shape for all", async () => {
      await lease({ runCount: 2 });
      await report(2, 2, "closed");
      const numbers = { [number(1)]: true, [number(2)]: false, [number(3)]: false };
      const texts = { "2VznWE2": false, "'2VznWE2i'": false, zzzzzzzz: false };
      for (const [callNumber, canExist] of Object.entries({ ...numbers, ...texts })) {
        expect(await get(pathOf(callNumber))).toMatchObject({ status: 200, body: { callNumber, canExist } });
        expect(Object.keys((await get(pathOf(callNumber))).body)).toEqual(["callNumber", "canExist"]);
      }
    });

    test("the public inspection of an unknown namespace is not found, and shows no command", async () => {
      const { status, body } = await get(pathOf(number(1), "other"));
      expect([status, body.code, body.message]).toEqual([404, "not_found", expect.not.stringContaining("callnumber")]);
    });

    test("the public inspection shows no reason when the store can't be read", async () => {
      store.readNamespace = async () => {
        throw new CoordinatorError("store_corrupt", "secret: redis.internal:6379");
      };
      const { status, text } = await get(pathOf(number(1)));
      expect([status, JSON.parse(text).code]).toEqual([503, "store_unavailable"]);
      expect(text).not.toContain("secret");
    });

    test("the public inspection is limited in flight, as each request reads the store", async () => {
      await get(pathOf(number(1)));
      const reads = gatedMethod(store, "readNamespace");
      const responses = Array.from({ length: PUBLIC_READS_MAX }, () => get(pathOf(number(1))));
      await expect.poll(() => reads.count).toBe(PUBLIC_READS_MAX);
      expect(await get(pathOf(number(1)))).toMatchObject({ status: 503, body: { code: "overloaded" } });
      expect((await get("/healthz")).status).toBe(200);
      reads.open();
      for (const response of responses) expect((await response).status).toBe(200);
    });
  });
});
