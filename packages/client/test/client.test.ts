/** Guarantees: G9 (docs/guarantees.md). */
import { hostname } from "node:os";
import { HOLDER_NAME_LENGTH_MAX, LABEL_COUNT_MAX, PID_MAX } from "@callnumber/protocol/api";
import { decodeCallNumber, RUN_MAX, SEQUENCE_COUNT, SEQUENCE_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { describe, expect, test, vi } from "vitest";
import { Client, ClientError, createClient, TAKE_COUNT_MAX } from "../src/index.js";
import type { ClientHooks, ClientOptions } from "../src/options.js";
import { clientsForTest, code, holdTimers, never, runsOf } from "./clients-for-test.js";
import { proofFor, refusal, ScriptedSource } from "./scripted-source.js";

/** Only ends a hang. */
const PATIENT = { timeout: 300_000, interval: 10 };
const clientOn = clientsForTest();

test("every form returns numbers of the current run, in sequence, each once", async () => {
  const client = clientOn(new ScriptedSource());
  const made = [await client.next(), client.nextSync(), ...(await client.take(3))];
  for await (const callNumber of client) {
    made.push(callNumber);
    if (made.length === 8) break;
  }
  made.push(client.nextSync());
  expect(made.map((text) => decodeCallNumber(text))).toEqual(
    Array.from({ length: 9 }, (_, sequence) => ({ version: 0, run: 1, sequence })),
  );
});

test("a call number includes a version above 0", async () => {
  const client = clientOn(new ScriptedSource().always((lease) => ({ ...lease, version: 7 })));
  expect(decodeCallNumber(await client.next())).toEqual({ version: 7, run: 1, sequence: 0 });
});

test.each([
  [SEQUENCE_COUNT - 1, 1],
  [SEQUENCE_COUNT, 1],
  [SEQUENCE_COUNT + 1, 2],
  [2 * SEQUENCE_COUNT + 1, 3],
])("a client that leases only when empty leases, for %i numbers, %i runs", async (count, runCount) => {
  const source = new ScriptedSource();
  const client = clientOn(source, { prefetch: false });
  const made: string[] = [];
  for (let made_ = 0; made_ < count; made_++) made.push(await client.next());
  expect(new Set(made).size).toBe(count);
  expect(runsOf(made)).toHaveLength(runCount);
  expect(source.requests).toHaveLength(runCount);
  expect(source.mark).toBe(runCount);
});

test("take() never goes past the last sequence of a run, and never back", async () => {
  const client = clientOn(new ScriptedSource());
  const made = (await client.take(3 * SEQUENCE_COUNT)).map((text) => decodeCallNumber(text));
  made.forEach(({ run, sequence }, index) => {
    if (sequence !== index % SEQUENCE_COUNT || run !== 1 + Math.floor(index / SEQUENCE_COUNT)) {
      expect.fail(`number ${index} is ${run}/${sequence}`);
    }
  });
});

test("nextSync stops at the last sequence of a run too, and begins the next run at its first", async () => {
  const client = clientOn(new ScriptedSource(), { prefetch: false });
  const made = [await client.next()];
  while (made.length < SEQUENCE_COUNT) made.push(client.nextSync());
  expect(decodeCallNumber(made.at(-1) as string)).toEqual({ version: 0, run: 1, sequence: SEQUENCE_MAX });
  expect(() => client.nextSync()).toThrow(code("no_run_available"));
  await vi.waitFor(() => made.push(client.nextSync()), PATIENT);
  expect(decodeCallNumber(made.at(-1) as string)).toEqual({ version: 0, run: 2, sequence: 0 });
  expect(new Set(made).size).toBe(SEQUENCE_COUNT + 1);
});

test("many callers at the end of a run share one request, and each gets a number of its own", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source, { prefetch: false });
  await client.take(SEQUENCE_COUNT - 10);
  const made = await Promise.all(Array.from({ length: 1000 }, () => client.next()));
  expect(new Set(made).size).toBe(1000);
  expect(source.requests).toHaveLength(2);
  expect(runsOf(made)).toEqual([1, 2]);
});

test("nextSync throws no_run_available until a run has come, and requests one", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source);
  expect(() => client.nextSync()).toThrow(code("no_run_available"));
  expect(() => client.nextSync()).toThrow(code("no_run_available"));
  await expect.poll(() => client.nextSync()).toHaveLength(8);
  expect(source.requests).toHaveLength(1);
});

test.each([0, -1, 1.5, TAKE_COUNT_MAX + 1, Number.NaN, "3"])("take(%j) is rejected as misuse", async (count) => {
  await expect(clientOn(new ScriptedSource()).take(count as number)).rejects.toThrow(RangeError);
});

test('the client stops after one run with onExhausted "stop"', async () => {
  const source = new ScriptedSource();
  const client = clientOn(source, { onExhausted: "stop" });
  await client.take(SEQUENCE_COUNT);
  expect(() => client.nextSync()).toThrow(code("sequence_exhausted"));
  await expect(client.next()).rejects.toEqual(code("sequence_exhausted"));
  expect(source.requests).toHaveLength(1);
  expect(source.reports).toEqual([expect.objectContaining({ run: 1, lastSequence: SEQUENCE_MAX, state: "exhausted" })]);
});

test("the client leases ahead when less than a quarter of a single run is left, not earlier", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source);
  await client.take((SEQUENCE_COUNT * 3) / 4 + 1);
  await new Promise((resolve) => setImmediate(resolve));
  expect(source.requests).toHaveLength(1);
  client.nextSync();
  await expect.poll(() => source.requests).toHaveLength(2);
});

test("a caller that keeps its pace never waits", async () => {
  const late = vi.fn();
  const source = new ScriptedSource();
  const client = clientOn(source, { hooks: { onStall: late } });
  for (let turn = 0; turn < 40; turn++) {
    await client.take(SEQUENCE_COUNT / 4);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  expect(late).not.toHaveBeenCalled();
  expect(Math.max(...source.leasedRunCounts)).toBe(1);
});

test("leases grow with demand up to the limit, and shrink when a lease lasts", async () => {
  let nowMs = 8_000;
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  const source = new ScriptedSource();
  const client = clientOn(source, { maxRunsPerLease: 8 });
  // A caller that never pauses, and does not say how many it will need.
  for (let count = 0; count < 50 * SEQUENCE_COUNT; count += 512) await client.take(512);
  expect(source.leasedRunCounts.slice(0, 12)).toEqual([1, 1, 1, 1, 2, 2, 3, 4, 6, 8, 8, 8]);
  expect(Math.max(...source.leasedRunCounts)).toBe(8);
  for (const [lastedMs, runCount] of [
    [10_000, 8],
    [10_001, 4],
    [10_001, 2],
  ] as const) {
    // The last request is answered first: a timer may fire before its answer on a busy machine.
    for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => setImmediate(resolve));
    nowMs += lastedMs;
    const before = source.requests.length;
    // Just enough to ask once more, from the middle of what is in hand.
    while (source.requests.length === before) await client.take(1_000);
    expect(source.leasedRunCounts.at(-1)).toBe(runCount);
  }
});

test.each([
  ["slow, asks while three runs wait", 6, 2, [2, 3, 4, 3, 4, 3]],
  ["quick, asks when no run waits", 5, 2, [0, 1, 0, 1, 0, 1]],
  ["slow, but leases are cut short, asks in the middle of a run", 6, 1, [0, 0, 0, 0, 0, 0]],
])("a client in demand whose responses are %s", async (_, answerMs, runCountMax, waitingRuns) => {
  let nowMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  const source = new ScriptedSource().always((lease) => {
    nowMs += answerMs;
    const runCount = Math.min(lease.runCount, runCountMax);
    source.mark += runCount - lease.runCount;
    return { ...lease, runCount, proof: proofFor(lease.firstRun + runCount - 1) };
  });
  const client = clientOn(source, { maxRunsPerLease: 2 });
  await client.take(SEQUENCE_COUNT);
  await client.take(30 * SEQUENCE_COUNT);
  const waiting: number[] = [];
  for (let run = 0; run < 6; run++) {
    const callNumbers = await client.take(2);
    // Each answer takes a turn of the event loop.
    for (let turns = 0; turns < 10; turns++) await new Promise((resolve) => setImmediate(resolve));
    waiting.push(source.mark - Math.max(...runsOf(callNumbers)));
    await client.take(SEQUENCE_COUNT - 2);
  }
  expect(waiting).toEqual(waitingRuns);
});

test("the client keeps spare runs, and generates from them while the coordinator is away", async () => {
  const source = new ScriptedSource();
  const away = vi.fn();
  const client = clientOn(source, { spareRuns: 4, hooks: { onRetry: away } });
  await client.next();
  await expect.poll(() => source.mark).toBe(5);
  source.always(refusal("store_unavailable", 50));
  const made = await client.take(5 * SEQUENCE_COUNT - 1);
  expect(runsOf(made)).toEqual([1, 2, 3, 4, 5]);
  await expect.poll(() => away).toHaveBeenCalled();
  source.always((lease) => lease);
  expect(decodeCallNumber(await client.next()).run).toBeGreaterThan(5);
});

test("the client sends with each request how many leased runs are buffered", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source, { spareRuns: 4, maxRunsPerLease: 2 });
  await client.next();
  await expect.poll(() => source.mark).toBe(5);
  // The second is made before any caller has taken a run of the first lease, the third when one was taken and two have come.
  expect(source.requests.map(({ spareRunCount }) => spareRunCount)).toEqual([0, 2, 3]);
  await client.close();
});

test("the client calls its hooks for leases and stalls, and survives a hook that throws", async () => {
  const uncaught = new Promise((resolve) => {
    const listeners = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    process.once("uncaughtException", (error) => {
      for (const listener of listeners) process.on("uncaughtException", listener);
      resolve(error);
    });
  });
  const onStall = vi.fn();
  const hooks = {
    onLease() {
      throw new Error("a fault of the hook");
    },
    onStall,
  };
  const client = clientOn(new ScriptedSource(), { hooks });
  expect(await client.next()).toHaveLength(8);
  expect(await uncaught).toMatchObject({ message: "a fault of the hook" });
  await client.close();
  const waiting = clientOn(new ScriptedSource(), { hooks: { onStall } });
  for (let run = 0; run < 4; run++) await waiting.take(SEQUENCE_COUNT);
  expect(onStall).toHaveBeenCalled();
});

test("onStall is called once for a missing run, however often the client is called", async () => {
  const onStall = vi.fn();
  const client = clientOn(new ScriptedSource().answer((lease) => lease).always(never), { hooks: { onStall } });
  await client.take(SEQUENCE_COUNT);
  for (let attempt = 0; attempt < 3; attempt++) expect(() => client.nextSync()).toThrow(code("no_run_available"));
  await new Promise((resolve) => setImmediate(resolve));
  expect(onStall).toHaveBeenCalledOnce();
});

test.each<[string, object]>([
  ["it does not echo the nonce of the request", { nonce: "nonce-of-another" }],
  ["it is for another namespace", { namespace: "other" }],
  ["it names no store", { storeId: 7 }],
  ["it names no store", { storeId: " store-1" }],
  ["it names no store", { storeId: "store-1\n" }],
  ["it names no store", { storeId: "s".repeat(100) }],
  ["it has no lease proof", { proof: "short" }],
  ["it has no lease proof", { proof: [proofFor(1)] }],
  ["its version is 8, not a whole number from 0 to 7", { version: VERSION_MAX + 1 }],
  ["its runCount is 0, not a whole number from 1 to 1", { runCount: 0 }],
  [`its firstRun is ${RUN_MAX + 1}, not a whole number from 0 to ${RUN_MAX}`, { firstRun: RUN_MAX + 1 }],
])("%s: next() rejects a lease with %j", async (reason, wrong) => {
  const client = clientOn(new ScriptedSource().answer((lease) => ({ ...lease, ...wrong })));
  await expect(client.next()).rejects.toMatchObject({
    code: "invalid_response",
    message: expect.stringContaining(reason),
  });
  expect(await client.next()).toHaveLength(8);
});

test("a first lease that begins with run 0 is used", async () => {
  const client = clientOn(new ScriptedSource().answer((lease) => ({ ...lease, firstRun: 0 })));
  expect(runsOf([await client.next()])).toEqual([0]);
});

test("a lease from another store stops the client, in the middle of its run", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source);
  await client.next();
  expect(client.storeId).toBe("store-1");
  source.storeId = "store-2";
  await client.take((SEQUENCE_COUNT * 3) / 4 + 1);
  await vi.waitFor(() => expect(() => client.nextSync()).toThrow(code("store_mismatch")), PATIENT);
  await expect(client.next()).rejects.toThrow(/store-2, but the numbers so far came from store store-1: /);
});

test("a lease that changes after it was checked changes nothing", async () => {
  const source = new ScriptedSource();
  const reused: Record<string, unknown> = {};
  source.always((lease) => Object.assign(reused, lease));
  const client = clientOn(source, { spareRuns: 4 });
  const made: string[] = [];
  for (let turn = 0; turn < 12; turn++) {
    made.push(...(await client.take(SEQUENCE_COUNT)));
    reused["firstRun"] = 1;
    reused["runCount"] = 64;
  }
  expect(new Set(made).size).toBe(made.length);
});

test("a client with a pinned store id rejects any other store before the first number", async () => {
  const client = clientOn(new ScriptedSource(), { expectedStoreId: "store-0" });
  await expect(client.next()).rejects.toEqual(code("store_mismatch"));
  await expect(client.next()).rejects.toThrow("from store store-1, but this client expects store store-0: ");
  const right = clientOn(new ScriptedSource(), { expectedStoreId: "store-1" });
  expect(await right.next()).toHaveLength(8);
});

test("close() reports how far the run got and that the spare runs were never used", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source, { spareRuns: 3 });
  await client.take(10);
  await expect.poll(() => source.mark).toBe(4);
  const before = source.reports.length;
  await client.close();
  expect(source.reports.slice(before)).toEqual([expect.objectContaining({ run: 1, lastSequence: 9, state: "closed" })]);
  expect(source.reports[0]?.nonce).toBe(source.requests[0]?.nonce);
});

test("the client reports a lease that is used up once, with its last run", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source, { spareRuns: 3, prefetch: false });
  for (let run = 0; run < 5; run++) await client.take(SEQUENCE_COUNT);
  await client.next();
  expect(source.leasedRunCounts.slice(0, 2)).toEqual([4, 4]);
  expect(source.reports).toEqual([expect.objectContaining({ run: 4, lastSequence: SEQUENCE_MAX, state: "exhausted" })]);
});

describe("the report of a lease that is used up", () => {
  const exhausted = (run: number) => expect.objectContaining({ run, lastSequence: SEQUENCE_MAX, state: "exhausted" });

  test("the next lease request has it, once, and no request of its own is sent", async () => {
    const source = new ScriptedSource();
    const report = vi.spyOn(source, "report");
    const client = clientOn(source, { prefetch: false });
    for (let run = 0; run < 3; run++) await client.take(SEQUENCE_COUNT);
    await client.next();
    expect(source.requests.map((request) => request.report)).toEqual([
      undefined,
      exhausted(1),
      exhausted(2),
      exhausted(3),
    ]);
    expect(source.requests[1]?.report?.nonce).toBe(source.requests[0]?.nonce);
    expect(report).not.toHaveBeenCalled();
  });

  test("each attempt has it until one succeeds", async () => {
    const source = new ScriptedSource().answer((lease) => lease, refusal("store_unavailable"), refusal("overloaded"));
    const client = clientOn(source, { prefetch: false });
    await client.take(SEQUENCE_COUNT);
    await client.next();
    const [, ...repeated] = source.requests.map((request) => request.report);
    expect(repeated).toEqual([exhausted(1), exhausted(1), exhausted(1)]);
  });

  test("it is sent by a request of its own when more than one waited for a lease", async () => {
    const source = new ScriptedSource();
    const client = clientOn(source, { spareRuns: 2, maxRunsPerLease: 1 });
    await client.next();
    await expect.poll(() => source.mark).toBe(3);
    source.always(refusal("store_unavailable", 20));
    await client.take(3 * SEQUENCE_COUNT - 1);
    const report = vi.spyOn(source, "report");
    expect(() => client.nextSync()).toThrow(code("no_run_available"));
    expect(report).not.toHaveBeenCalled();
    source.always((lease) => lease);
    await client.next();
    expect(report.mock.calls.map(([, run]) => run)).toEqual([2]);
    await client.close();
    expect(new Set(source.reports.map(({ run }) => run))).toEqual(new Set([1, 2, 3, source.mark - 1, source.mark]));
  });

  test("close() sends it when no lease request has", async () => {
    const source = new ScriptedSource();
    const client = clientOn(source);
    await client.take((SEQUENCE_COUNT * 3) / 4 + 2);
    await expect.poll(() => source.mark).toBe(2);
    await client.take(SEQUENCE_COUNT / 4);
    expect(source.reports).toEqual([]);
    await client.close();
    expect(source.reports).toEqual([expect.objectContaining({ run: 2, state: "closed" }), exhausted(1)]);
  });
});

test("close() reports leases that were never begun", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source);
  await client.take((SEQUENCE_COUNT * 3) / 4 + 2);
  await expect.poll(() => source.mark).toBe(2);
  await new Promise((resolve) => setImmediate(resolve));
  await client.close();
  expect(source.reports).toEqual([
    expect.objectContaining({ run: 1, lastSequence: (SEQUENCE_COUNT * 3) / 4 + 1, state: "closed" }),
    expect.objectContaining({ run: 2, lastSequence: null, state: "closed" }),
  ]);
});

test("a closed client generates no number in any form, and requests nothing", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source);
  await client.next();
  await client.close();
  expect(() => client.nextSync()).toThrow(code("client_closed"));
  await expect(client.next()).rejects.toEqual(code("client_closed"));
  await expect(client.take(1)).rejects.toEqual(code("client_closed"));
  await expect(client[Symbol.asyncIterator]().next()).rejects.toEqual(code("client_closed"));
  expect(source.requests).toHaveLength(1);
});

test("close() rejects waiting callers, discards and reports the lease in flight, and may be called twice", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source);
  const waiting = [client.next(), client.take(3)].map((caller) => caller.catch((error: unknown) => error));
  const closings = [client.close(), client.close()];
  for (const caller of waiting) expect(await caller).toEqual(code("client_closed"));
  await Promise.all(closings);
  expect(source.reports).toEqual([expect.objectContaining({ run: 1, lastSequence: null, state: "closed" })]);
  await client.close();
});

test("close() does not wait for a response that does not come", async () => {
  holdTimers();
  const client = clientOn(new ScriptedSource().always(never), { requestTimeoutMs: 600_000 });
  const waiting = client.next().catch((error: unknown) => error);
  const closed = client.close();
  expect(await waiting).toEqual(code("client_closed"));
  await vi.advanceTimersByTimeAsync(1_000);
  await closed;
});

test("close() waits a second for the response to its report, and calls the hook if there is none", async () => {
  holdTimers();
  const onReportFailed = vi.fn();
  const source = new ScriptedSource();
  source.report = async () => void (await never());
  const client = clientOn(source, { requestTimeoutMs: 1_900, hooks: { onReportFailed } });
  await client.next();
  const isClosed = vi.fn();
  void client.close().then(isClosed);
  await vi.advanceTimersByTimeAsync(900);
  expect(isClosed).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(100);
  for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => setImmediate(resolve));
  expect(isClosed).toHaveBeenCalled();
  expect(onReportFailed).toHaveBeenCalledExactlyOnceWith(code("client_closed"));
});

test("a source that calls back in the middle of a close gets no number", async () => {
  const source = new ScriptedSource();
  const outcomes: unknown[] = [];
  const tryOne = () => {
    try {
      outcomes.push(client.nextSync());
    } catch (error) {
      outcomes.push((error as ClientError).code);
    }
  };
  source.report = async () => tryOne();
  const client = clientOn(source);
  await client.next();
  await client.close();
  tryOne();
  expect(outcomes).toEqual(["client_closed", "client_closed"]);
});

test("close() that the source calls during a refill leaves a closed client", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source);
  await client.next();
  source.always((lease) => {
    void client.close();
    return lease;
  });
  const made: unknown[] = [];
  for (let count = 0; count < SEQUENCE_COUNT; count++) {
    const outcome = await client.next().catch((error: ClientError) => error.code);
    if (outcome === "client_closed") break;
    made.push(outcome);
  }
  expect(made.length).toBeLessThan(SEQUENCE_COUNT);
  expect(() => client.nextSync()).toThrow(code("client_closed"));
});

test("a caller that waits while the client closes gets no number beyond the reported ones", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source);
  await client.next();
  const racing = Array.from({ length: 50 }, () => client.next().catch((error: ClientError) => error.code));
  await client.close();
  const outcomes = await Promise.all(racing);
  const made = outcomes.filter((outcome) => outcome !== "client_closed");
  const lastSequence = source.reports[0]?.lastSequence ?? -1;
  expect(made.map((text) => decodeCallNumber(text).sequence).every((sequence) => sequence <= lastSequence)).toBe(true);
  expect(new Set(made).size).toBe(made.length);
});

test("close() reports exactly the numbers that were made, at any moment after a lease", async () => {
  for (let microtasks = 0; microtasks < 40; microtasks++) {
    const source = new ScriptedSource();
    const client = clientOn(source);
    const made = client.next().then(
      () => 0,
      () => null,
    );
    await new Promise<void>((resolve) => {
      source.answer((lease) => {
        resolve();
        return lease;
      });
    });
    for (let turn = 0; turn < microtasks; turn++) await undefined;
    await client.close();
    expect(source.reports.map(({ lastSequence }) => lastSequence)).toEqual([await made]);
  }
});

test("`await using` closes the client", async () => {
  const client = clientOn(new ScriptedSource());
  await client[Symbol.asyncDispose]();
  expect(() => client.nextSync()).toThrow(code("client_closed"));
});

test("close() never rejects when the report fails, and calls the hook", async () => {
  const onReportFailed = vi.fn();
  const source = new ScriptedSource();
  source.report = async () => {
    throw Object.assign(new Error("away"), { code: "store_unavailable" });
  };
  const client = clientOn(source, { hooks: { onReportFailed } });
  await client.next();
  await expect(client.close()).resolves.toBeUndefined();
  expect(onReportFailed).toHaveBeenCalledExactlyOnceWith(code("store_unavailable"));
});

describe("options", () => {
  const source = new ScriptedSource();
  const labels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`l${index}`, "x"]));
  test.each<[string, object, string]>([
    ["no holder", { holder: undefined }, 'holder must be an object such as { name: "my-importer" }, not undefined'],
    [
      "a holder that is its name",
      { holder: "me" },
      'holder must be an object such as { name: "my-importer" }, not "me"',
    ],
    ["a misspelled key of the holder", { holder: { name: "x", label: {} } }, 'knows no option "holder.label"'],
    [
      "a label that is a number",
      { holder: { name: "x", labels: { shard: 3 } } },
      "holder.labels.shard must be a string of",
    ],
    ["labels that are none", { holder: { name: "x", labels: null } }, 'such as { shard: "3" }, not null'],
    ["labels that are a text", { holder: { name: "x", labels: "shard" } }, 'such as { shard: "3" }, not "shard"'],
    ["an unknown hook", { hooks: { onleased: () => {} } }, 'knows no option "hooks.onleased"'],
    ["a hook that is not a function", { hooks: { onLease: "log" } }, 'hooks.onLease must be a function, not "log"'],
    [
      "hooks that are none",
      { hooks: () => {} },
      "hooks must be an object such as { onStall() {} }, not a value of type function",
    ],
    [
      "a source that is null",
      { source: null },
      "source must be an object with the functions `lease` and `report`, not null",
    ],
    ["a bad label", { holder: { name: "x", labels: { A: "b" } } }, '"A"'],
    ["a misspelled option", { expectedStoreID: "x" }, '"expectedStoreID"'],
    ["a bad namespace", { namespace: "Main" }, '"Main"'],
    ["an empty pin", { expectedStoreId: "" }, "expectedStoreId"],
    ["too many spares", { spareRuns: 65 }, "65"],
    ["half a run", { maxRunsPerLease: 1.5 }, "1.5"],
    ["no time to wait", { waitTimeoutMs: 0 }, "waitTimeoutMs"],
    ["a prefetch that is not a boolean", { prefetch: "sometimes" }, '"sometimes"'],
    ["both a source and an address", { coordinator: "http://127.0.0.1:1" }, "not both"],
    ["both a source and a token", { token: "x" }, "not both"],
    ["both a source and a fetch", { fetch }, "not both"],
    ["spare runs for one run", { onExhausted: "stop", spareRuns: 1 }, "spareRuns"],
    ["a source that is none", { source: {} }, "`lease`"],
    ["a source without a report", { source: { lease: source.lease } }, "`report`"],
    ["a source without a lease", { source: { report: source.report } }, "`lease`"],
    ["a holder that is null", { holder: null }, "holder must be an object such as"],
    ["an unknown end", { onExhausted: "wait" }, 'onExhausted must be one of lease, stop, not "wait"'],
    [
      "a name that is none",
      { holder: { name: 7 } },
      "holder.name must be a string of 1 to 64 printable characters, not 7",
    ],
    ["a name that is too long", { holder: { name: "x".repeat(HOLDER_NAME_LENGTH_MAX + 1) } }, "holder.name"],
    ["too many labels", { holder: { name: "x", labels: labels(LABEL_COUNT_MAX + 1) } }, `not ${LABEL_COUNT_MAX + 1}`],
    ["an empty value", { holder: { name: "x", labels: { a: "" } } }, "holder.labels.a"],
    ["no spare runs", { spareRuns: -1 }, "spareRuns must be a whole number from 0 to 64, not -1"],
    ["no run to ask for", { maxRunsPerLease: 0 }, "maxRunsPerLease"],
    ["a wait beyond an hour", { waitTimeoutMs: 3_600_001 }, "3600001"],
    ["a request beyond ten minutes", { requestTimeoutMs: 600_001 }, "600001"],
    ["a pin with the end of its line", { expectedStoreId: "a.1.2.3\n" }, "a store id without white space"],
    [
      "a pin that is not a text",
      { expectedStoreId: 7 },
      "expectedStoreId must be a store id without white space, or left out to pin the store of the first lease, not 7",
    ],
  ])("%s is rejected, with its name and value", (_, options, said) => {
    expect(() => createClient({ source, holder: { name: "x" }, ...options } as never)).toThrow(said);
  });

  test.each([undefined, null, "x"])("createClient(%j) is rejected with an example", (options) => {
    const said = `the options of createClient must be an object such as { holder: { name: "my-importer" } }, not`;
    expect(() => createClient(options as never)).toThrow(TypeError);
    expect(() => createClient(options as never)).toThrow(said);
  });

  test("createClient takes each option at its bounds", () => {
    const holder = { name: "x".repeat(HOLDER_NAME_LENGTH_MAX), pid: PID_MAX, labels: labels(LABEL_COUNT_MAX) };
    const [least, most] = [
      { spareRuns: 0, maxRunsPerLease: 1 },
      { spareRuns: 64, maxRunsPerLease: 64 },
    ];
    const [short, long] = [
      { waitTimeoutMs: 1, requestTimeoutMs: 1 },
      { waitTimeoutMs: 3_600_000, requestTimeoutMs: 600_000 },
    ];
    expect(createClient({ source, holder, ...least, ...short, onExhausted: "stop" })).toBeInstanceOf(Client);
    expect(createClient({ source, holder: { ...holder, pid: 0 }, ...most, ...long })).toBeInstanceOf(Client);
  });

  test("a request names the process, the host and the labels of its holder, or those it was given", async () => {
    const asking = new ScriptedSource();
    await clientOn(asking, { holder: { name: "a", labels: { step: "1" } } }).next();
    await clientOn(asking, { holder: { name: "a", host: "mail-1", pid: 7 } }).next();
    expect(asking.requests.map(({ holder }) => holder)).toEqual([
      { name: "a", host: hostname(), pid: process.pid, labels: { step: "1" } },
      { name: "a", host: "mail-1", pid: 7, labels: {} },
    ]);
  });

  test("createClient takes undefined for every option and every hook", () => {
    const hooks: Record<keyof ClientHooks, undefined> = {
      onLease: undefined,
      onStall: undefined,
      onRetry: undefined,
      onStopped: undefined,
      onReportFailed: undefined,
    };
    const unset: Record<Exclude<keyof ClientOptions, "holder" | "hooks">, undefined> = {
      coordinator: undefined,
      source: undefined,
      namespace: undefined,
      token: undefined,
      fetch: undefined,
      expectedStoreId: undefined,
      spareRuns: undefined,
      maxRunsPerLease: undefined,
      prefetch: undefined,
      onExhausted: undefined,
      waitTimeoutMs: undefined,
      requestTimeoutMs: undefined,
    };
    const holder = { name: "x", host: undefined, pid: undefined, labels: undefined };
    expect(createClient({ holder, hooks, ...unset })).toBeInstanceOf(Client);
    expect(createClient({ holder, hooks: undefined })).toBeInstanceOf(Client);
  });
});
