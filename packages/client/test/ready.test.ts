/** `ready()`: after it, the next calls of `nextSync()` find a run. */
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { expect, test, vi } from "vitest";
import { type Client, TAKE_COUNT_MAX } from "../src/index.js";
import { clientsForTest, code, holdTimers, never, runsOf } from "./clients-for-test.js";
import { type Answer, proofFor, refusal, ScriptedSource } from "./scripted-source.js";

const clientOn = clientsForTest();

/** Without a step of the event loop in between. */
const madeAtOnce = (client: Client, count: number) => Array.from({ length: count }, () => client.nextSync());

async function untilRequested(source: ScriptedSource, requestCount: number): Promise<void> {
  while (source.requests.length < requestCount) await new Promise((resolve) => setImmediate(resolve));
}

/** Grants at most so many runs. */
const granting =
  (source: ScriptedSource, runCountMax: number): Answer =>
  (lease) => {
    const runCount = Math.min(lease.runCount, runCountMax);
    source.mark = lease.firstRun + runCount - 1;
    return { ...lease, runCount, proof: proofFor(source.mark) };
  };

/** The clock of the client, which the test moves. */
const holdClock = () => holdTimers("performance");
const after =
  (passedMs: number): Answer =>
  (lease) => {
    vi.advanceTimersByTime(passedMs);
    return lease;
  };

test.each([
  [1, 1],
  [SEQUENCE_COUNT, 1],
  [SEQUENCE_COUNT + 1, 2],
  [3 * SEQUENCE_COUNT, 3],
  [TAKE_COUNT_MAX, 64],
])("ready(%i) leases as many runs as are missing, at once: %i", async (count, runCount) => {
  const source = new ScriptedSource();
  const client = clientOn(source, { prefetch: false });
  await client.ready(count);
  expect(source.leasedRunCounts).toEqual([runCount]);
  const made = madeAtOnce(client, count);
  expect(new Set(made).size).toBe(count);
  expect(runsOf(made)).toHaveLength(runCount);
  while (made.length < runCount * SEQUENCE_COUNT) made.push(client.nextSync());
  expect(() => client.nextSync()).toThrow(code("no_run_available"));
});

test("ready() requests nothing when the run in use and the buffer have enough", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source, { prefetch: false });
  await client.ready(3 * SEQUENCE_COUNT);
  madeAtOnce(client, 10);
  await client.ready(3 * SEQUENCE_COUNT - 10);
  await client.ready(1);
  expect(source.leasedRunCounts).toEqual([3]);
  await client.ready(3 * SEQUENCE_COUNT - 9);
  expect(source.leasedRunCounts).toEqual([3, 1]);
  madeAtOnce(client, 4 * SEQUENCE_COUNT - 10);
});

test("ready() requests again when the coordinator grants fewer runs than requested", async () => {
  const source = new ScriptedSource();
  source.always(granting(source, 2));
  const client = clientOn(source, { prefetch: false });
  await client.ready(5 * SEQUENCE_COUNT);
  expect(source.leasedRunCounts).toEqual([5, 3, 1]);
  expect(runsOf(madeAtOnce(client, 5 * SEQUENCE_COUNT))).toEqual([1, 2, 3, 4, 5]);
});

test("ready() requests no more runs at once than maxRunsPerLease", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source, { prefetch: false, maxRunsPerLease: 2 });
  await client.ready(5 * SEQUENCE_COUNT);
  expect(source.leasedRunCounts).toEqual([2, 2, 1]);
});

test("concurrent calls of ready() share the runs and one request", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source, { prefetch: false });
  await Promise.all([3, 1, 2].map((runCount) => client.ready(runCount * SEQUENCE_COUNT)));
  expect(source.leasedRunCounts).toEqual([3]);
  expect(source.greatestConcurrency).toBe(1);
});

test("a request that is repeated is as large as the greatest of the waiting calls of ready()", async () => {
  const source = new ScriptedSource().answer(refusal("store_unavailable"));
  const client = clientOn(source, { prefetch: false });
  await Promise.all([1, 3, 2].map((runCount) => client.ready(runCount * SEQUENCE_COUNT)));
  expect(source.leasedRunCounts).toEqual([1, 3]);
});

test("ready() requests the rest when a smaller request is in flight", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source, { prefetch: false });
  const first = client.next();
  await client.ready(5 * SEQUENCE_COUNT);
  expect(runsOf([await first])).toEqual([1]);
  expect(source.leasedRunCounts[0]).toBe(1);
  expect(source.greatestConcurrency).toBe(1);
  madeAtOnce(client, 5 * SEQUENCE_COUNT);
});

test("a call of ready() that has its runs does not make the next request larger", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source, { spareRuns: 6, maxRunsPerLease: 4 });
  await client.ready(4 * SEQUENCE_COUNT);
  await expect.poll(() => source.leasedRunCounts).toEqual([4, 2]);
});

test("many callers that use numbers after ready() never share one", async () => {
  const client = clientOn(new ScriptedSource());
  const callers = Array.from({ length: 40 }, async () => {
    await client.ready(40 * 2_000);
    return madeAtOnce(client, 2_000);
  });
  const made = (await Promise.all(callers)).flat();
  expect(new Set(made).size).toBe(80_000);
});

test("a loop of ready() and nextSync() lets the event loop turn", async () => {
  let answer = () => {};
  // The refill is not answered meanwhile.
  const source = new ScriptedSource()
    .answer((lease) => lease)
    .always(() => new Promise<void>((resolve) => (answer = resolve)));
  const client = clientOn(source, { spareRuns: 64 });
  await client.next();
  const turned = vi.fn();
  setImmediate(turned);
  for (let batch = 0; batch < 200; batch++) {
    await client.ready(1_000);
    madeAtOnce(client, 1_000);
  }
  answer();
  expect(turned).toHaveBeenCalled();
});

test("ready() waits waitTimeoutMs for each further run", async () => {
  holdClock();
  const source = new ScriptedSource().always(after(20_000));
  const hooks = { onRetry: () => {} };
  const client = clientOn(source, { maxRunsPerLease: 1, waitTimeoutMs: 30_000, requestTimeoutMs: 600_000, hooks });
  await client.ready(3 * SEQUENCE_COUNT);
  expect(source.requests).toHaveLength(3);
});

test("ready() rejects after waitTimeoutMs without a further run, and keeps those that came", async () => {
  holdClock();
  const source = new ScriptedSource().answer((lease) => lease).always(never);
  const client = clientOn(source, { maxRunsPerLease: 1, waitTimeoutMs: 50, requestTimeoutMs: 600_000 });
  const failure = client.ready(2 * SEQUENCE_COUNT).catch((error: unknown) => error);
  await untilRequested(source, 2);
  await vi.advanceTimersByTimeAsync(50);
  expect(await failure).toEqual(code("wait_timeout"));
  await client.ready(SEQUENCE_COUNT);
  expect(runsOf(madeAtOnce(client, SEQUENCE_COUNT))).toEqual([1]);
});

test("ready() rejects after waitTimeoutMs when other callers use up the runs that come", async () => {
  holdClock();
  const source = new ScriptedSource().answer(...Array.from({ length: 10 }, () => after(12_000))).always(never);
  let leaseCount = 0;
  // One run is missing after 12 s, two after 24 s, one again after 36 s.
  const onLease = () => {
    if (++leaseCount % 2 === 0) madeAtOnce(client, 2 * SEQUENCE_COUNT);
  };
  const client: Client = clientOn(source, {
    maxRunsPerLease: 1,
    prefetch: false,
    waitTimeoutMs: 30_000,
    requestTimeoutMs: 600_000,
    hooks: { onLease, onRetry: () => {} },
  });
  await expect(client.ready(2 * SEQUENCE_COUNT)).rejects.toEqual(code("wait_timeout"));
  expect(source.requests).toHaveLength(4);
});

test("ready() rejects with a rejection that no retry fixes, and the client stays usable", async () => {
  const client = clientOn(new ScriptedSource().answer(refusal("namespace_not_found")));
  await expect(client.ready(1)).rejects.toEqual(code("namespace_not_found"));
  await client.ready(1);
  expect(client.nextSync()).toHaveLength(8);
});

test("ready() rejects when the client closes meanwhile, and on a closed client", async () => {
  let answer = () => {};
  const source = new ScriptedSource()
    .answer((lease) => lease)
    .always((lease) => new Promise((resolve) => (answer = () => resolve(lease))));
  const client = clientOn(source, { maxRunsPerLease: 1 });
  const waiting = client.ready(2 * SEQUENCE_COUNT).catch((error: unknown) => error);
  await untilRequested(source, 2);
  const closed = client.close();
  expect(await waiting).toEqual(code("client_closed"));
  await new Promise((resolve) => setImmediate(resolve));
  answer();
  await closed;
  const requestCount = source.requests.length;
  await expect(client.ready(1)).rejects.toEqual(code("client_closed"));
  expect(source.requests).toHaveLength(requestCount);
});

test("ready() rejects when the client stops meanwhile, and on a stopped client", async () => {
  const source = new ScriptedSource().answer((lease) => lease).always((lease) => ({ ...lease, storeId: "store-2" }));
  const client = clientOn(source, { maxRunsPerLease: 1 });
  await expect(client.ready(2 * SEQUENCE_COUNT)).rejects.toEqual(code("store_mismatch"));
  await expect(client.ready(1)).rejects.toEqual(code("store_mismatch"));
  expect(source.requests).toHaveLength(2);
});

test('ready() rejects with onExhausted "stop" when the run has fewer numbers left, and uses none', async () => {
  const source = new ScriptedSource();
  const client = clientOn(source, { onExhausted: "stop" });
  await expect(client.ready(SEQUENCE_COUNT + 1)).rejects.toEqual(code("sequence_exhausted"));
  expect(source.requests).toEqual([]);
  await client.ready(SEQUENCE_COUNT);
  await client.ready(SEQUENCE_COUNT);
  madeAtOnce(client, 10);
  await expect(client.ready(SEQUENCE_COUNT - 9)).rejects.toThrow(/^16374 of the 16384 numbers of the run are left/);
  await client.ready(SEQUENCE_COUNT - 10);
  madeAtOnce(client, SEQUENCE_COUNT - 10);
  await expect(client.ready(1)).rejects.toEqual(code("sequence_exhausted"));
  expect(() => client.nextSync()).toThrow(code("sequence_exhausted"));
  await expect(client.ready(1)).rejects.toEqual(code("sequence_exhausted"));
  expect(source.leasedRunCounts).toEqual([1]);
  await client.close();
  await expect(client.ready(SEQUENCE_COUNT + 1)).rejects.toEqual(code("client_closed"));
});

test.each([0, -1, 1.5, TAKE_COUNT_MAX + 1, Number.NaN, "3"])("ready(%j) is rejected as misuse", async (count) => {
  const source = new ScriptedSource();
  await expect(clientOn(source).ready(count as number)).rejects.toThrow(RangeError);
  expect(source.requests).toEqual([]);
});
