/** Guarantees: G9 (docs/guarantees.md). */
import { hostname } from "node:os";
import { decodeCallNumber, RUN_MAX, SEQUENCE_COUNT, SEQUENCE_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { HOLDER_NAME_LENGTH_MAX, LABEL_COUNT_MAX, PID_MAX } from "@callnumber/protocol/wire";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Client, ClientError, createClient, TAKE_COUNT_MAX } from "../src/index.js";
import type { ClientHooks, ClientOptions } from "../src/options.js";
import { type Answer, receiptFor, refusal, ScriptedSource } from "./scripted-source.js";

const clients: Client[] = [];
/** Only ends a hang. */
const PATIENT = { timeout: 300_000, interval: 10 };

function clientOn(source: ScriptedSource, options: Partial<ClientOptions> = {}): Client {
  const client = createClient({ source, holder: { name: "test" }, ...options });
  clients.push(client);
  return client;
}

/** Time passes for the client when the test says so. */
const holdTimers = () => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
const never = () => new Promise(() => {});

/** No pause before a retry, where the coordinator asks for none. */
beforeEach(() => void vi.spyOn(Math, "random").mockReturnValue(0));
afterEach(async () => {
  vi.restoreAllMocks();
  const closings = clients.splice(0).map((client) => client.close());
  if (vi.isFakeTimers()) await vi.advanceTimersByTimeAsync(1_000);
  vi.useRealTimers();
  await Promise.all(closings);
});

const code = (expected: string) => expect.objectContaining({ name: "ClientError", code: expected });
const runsOf = (callNumbers: readonly string[]) => [...new Set(callNumbers.map((text) => decodeCallNumber(text).run))];

describe("making numbers", () => {
  test("every form gives numbers of the run in hand, in sequence, each once", async () => {
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

  test("a version above 0 goes into the number", async () => {
    const client = clientOn(new ScriptedSource().always((lease) => ({ ...lease, version: 7 })));
    expect(decodeCallNumber(await client.next())).toEqual({ version: 7, run: 1, sequence: 0 });
  });

  test.each([
    [SEQUENCE_COUNT - 1, 1],
    [SEQUENCE_COUNT, 1],
    [SEQUENCE_COUNT + 1, 2],
    [2 * SEQUENCE_COUNT + 1, 3],
  ])("%i numbers need %i runs, and ask for no more when told to ask only when empty", async (count, runCount) => {
    const source = new ScriptedSource();
    const client = clientOn(source, { refill: "when_empty" });
    const made: string[] = [];
    for (let made_ = 0; made_ < count; made_++) made.push(await client.next());
    expect(new Set(made).size).toBe(count);
    expect(runsOf(made)).toHaveLength(runCount);
    expect(source.requests).toHaveLength(runCount);
    expect(source.mark).toBe(runCount);
  });

  test("never goes past the last sequence of a run, and never back", async () => {
    const client = clientOn(new ScriptedSource());
    const made = (await client.take(3 * SEQUENCE_COUNT)).map((text) => decodeCallNumber(text));
    made.forEach(({ run, sequence }, index) => {
      if (sequence !== index % SEQUENCE_COUNT || run !== 1 + Math.floor(index / SEQUENCE_COUNT)) {
        expect.fail(`number ${index} is ${run}/${sequence}`);
      }
    });
  });

  test("nextSync stops at the last sequence of a run too, and begins the next run at its first", async () => {
    const client = clientOn(new ScriptedSource(), { refill: "when_empty" });
    const made = [await client.next()];
    while (made.length < SEQUENCE_COUNT) made.push(client.nextSync());
    expect(decodeCallNumber(made.at(-1) as string)).toEqual({ version: 0, run: 1, sequence: SEQUENCE_MAX });
    expect(() => client.nextSync()).toThrow(code("no_run_ready"));
    await vi.waitFor(() => made.push(client.nextSync()), PATIENT);
    expect(decodeCallNumber(made.at(-1) as string)).toEqual({ version: 0, run: 2, sequence: 0 });
    expect(new Set(made).size).toBe(SEQUENCE_COUNT + 1);
  });

  test("many callers at the end of a run share one request, and each gets a number of its own", async () => {
    const source = new ScriptedSource();
    const client = clientOn(source, { refill: "when_empty" });
    await client.take(SEQUENCE_COUNT - 10);
    const made = await Promise.all(Array.from({ length: 1000 }, () => client.next()));
    expect(new Set(made).size).toBe(1000);
    expect(source.requests).toHaveLength(2);
    expect(runsOf(made)).toEqual([1, 2]);
  });

  test("a caller whose run was used up by another, between the moment it came and its turn, waits for the next one", async () => {
    const client = clientOn(new ScriptedSource(), { refill: "when_empty" });
    const [all, one, more] = await Promise.all([client.take(SEQUENCE_COUNT), client.next(), client.take(2)]);
    expect(new Set([...all, one, ...more]).size).toBe(SEQUENCE_COUNT + 3);
    expect(runsOf([one, ...more])).toEqual([2]);
  });

  test("many callers of all forms, over many runs, never share a number, and one request is under way at a time", async () => {
    const source = new ScriptedSource();
    const client = clientOn(source, { spareRuns: 2 });
    const made: string[] = [];
    const caller = async (form: number) => {
      for (let turn = 0; turn < 60; turn++) {
        if (form === 0) made.push(await client.next());
        else if (form === 1) made.push(...(await client.take(997)));
        else {
          try {
            for (let count = 0; count < 500; count++) made.push(client.nextSync());
          } catch (error) {
            expect(error).toEqual(code("no_run_ready"));
            await new Promise((resolve) => setImmediate(resolve));
          }
        }
      }
    };
    await Promise.all(Array.from({ length: 12 }, (_, index) => caller(index % 3)));
    expect(made.length).toBeGreaterThan(10 * SEQUENCE_COUNT);
    expect(new Set(made).size).toBe(made.length);
    expect(source.greatestConcurrency).toBe(1);
  });

  test("nextSync throws no_run_ready until a run has come, and asks for one by itself", async () => {
    const source = new ScriptedSource();
    const client = clientOn(source);
    expect(() => client.nextSync()).toThrow(code("no_run_ready"));
    expect(() => client.nextSync()).toThrow(code("no_run_ready"));
    await expect.poll(() => client.nextSync()).toHaveLength(8);
    expect(source.requests).toHaveLength(1);
  });

  test.each([0, -1, 1.5, TAKE_COUNT_MAX + 1, Number.NaN, "3"])("take(%j) is refused as misuse", async (count) => {
    await expect(clientOn(new ScriptedSource()).take(count as number)).rejects.toThrow(RangeError);
  });

  test("stops after one run when told so", async () => {
    const source = new ScriptedSource();
    const client = clientOn(source, { onExhausted: "stop" });
    await client.take(SEQUENCE_COUNT);
    expect(() => client.nextSync()).toThrow(code("sequence_exhausted"));
    await expect(client.next()).rejects.toEqual(code("sequence_exhausted"));
    expect(source.requests).toHaveLength(1);
    expect(source.reports).toEqual([
      expect.objectContaining({ run: 1, lastSequence: SEQUENCE_MAX, state: "exhausted" }),
    ]);
  });
});

describe("refilling", () => {
  test("asks ahead when fewer than half of the last lease are left, not earlier", async () => {
    const source = new ScriptedSource();
    const client = clientOn(source);
    await client.take(SEQUENCE_COUNT / 2 + 1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(source.requests).toHaveLength(1);
    client.nextSync();
    await expect.poll(() => source.requests).toHaveLength(2);
  });

  test("a caller that keeps its pace never waits", async () => {
    const late = vi.fn();
    const source = new ScriptedSource();
    const client = clientOn(source, { hooks: { onRefillLate: late } });
    for (let turn = 0; turn < 40; turn++) {
      await client.take(SEQUENCE_COUNT / 4);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect(late).not.toHaveBeenCalled();
    expect(Math.max(...source.leasedRunCounts)).toBe(1);
  });

  test("leases grow with hunger up to the limit, and shrink when a lease lasts", async () => {
    let nowMs = 8_000;
    vi.spyOn(performance, "now").mockImplementation(() => nowMs);
    const source = new ScriptedSource();
    const client = clientOn(source, { leaseRunCountMax: 16 });
    await client.take(50 * SEQUENCE_COUNT);
    expect(source.leasedRunCounts.slice(0, 6)).toEqual([1, 1, 2, 4, 8, 16]);
    expect(Math.max(...source.leasedRunCounts)).toBe(16);
    for (const [lastedMs, runCount] of [
      [10_000, 16],
      [10_001, 8],
      [10_001, 4],
    ] as const) {
      nowMs += lastedMs;
      const before = source.requests.length;
      // Just enough to ask once more, from the middle of what is in hand.
      while (source.requests.length === before) await client.take(1_000);
      expect(source.leasedRunCounts.at(-1)).toBe(runCount);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  });

  test.each([
    ["slow, asks while up to three runs wait", 6, 2, [2, 3, 4, 5, 4, 5]],
    ["quick, asks when no run waits", 5, 2, [2, 1, 2, 1, 2, 1]],
    ["slow, but leases are cut short, asks in the middle of a run", 6, 1, [0, 0, 0, 0, 0, 0]],
  ])("a hungry client whose answers are %s", async (_, answerMs, runCountMax, waitingRuns) => {
    let nowMs = 0;
    vi.spyOn(performance, "now").mockImplementation(() => nowMs);
    const source = new ScriptedSource().always((lease) => {
      nowMs += answerMs;
      const runCount = Math.min(lease.runCount, runCountMax);
      source.mark += runCount - lease.runCount;
      return { ...lease, runCount, receipt: receiptFor(lease.firstRun + runCount - 1) };
    });
    const client = clientOn(source, { leaseRunCountMax: 2 });
    await client.take(SEQUENCE_COUNT);
    await client.take(30 * SEQUENCE_COUNT);
    const waiting: number[] = [];
    for (let run = 0; run < 6; run++) {
      const callNumbers = await client.take(2);
      await new Promise((resolve) => setTimeout(resolve, 2));
      waiting.push(source.mark - Math.max(...runsOf(callNumbers)));
      await client.take(SEQUENCE_COUNT - 2);
    }
    expect(waiting).toEqual(waitingRuns);
  });

  test("keeps spare runs, and mints from them while the coordinator is away", async () => {
    const source = new ScriptedSource();
    const away = vi.fn();
    const client = clientOn(source, { spareRuns: 4, hooks: { onCoordinatorAway: away } });
    await client.next();
    await expect.poll(() => source.mark).toBe(5);
    source.always(refusal("store_unavailable", 50));
    const made = await client.take(5 * SEQUENCE_COUNT - 1);
    expect(runsOf(made)).toEqual([1, 2, 3, 4, 5]);
    await expect.poll(() => away).toHaveBeenCalled();
    source.always((lease) => lease);
    expect(decodeCallNumber(await client.next()).run).toBeGreaterThan(5);
  });

  test("tells with each request how many leased runs wait", async () => {
    const source = new ScriptedSource();
    const client = clientOn(source, { spareRuns: 4, leaseRunCountMax: 2 });
    await client.next();
    await expect.poll(() => source.mark).toBe(5);
    // The second is made before anybody has taken a run of the first lease, the third when one was taken and two have come.
    expect(source.requests.map(({ spareRunCount }) => spareRunCount)).toEqual([0, 2, 3]);
    await client.close();
  });

  test("tells its hooks of leases and of late refills, and outlives a hook that throws", async () => {
    const uncaught = new Promise((resolve) => {
      const listeners = process.listeners("uncaughtException");
      process.removeAllListeners("uncaughtException");
      process.once("uncaughtException", (error) => {
        for (const listener of listeners) process.on("uncaughtException", listener);
        resolve(error);
      });
    });
    const onRefillLate = vi.fn();
    const hooks = {
      onLease() {
        throw new Error("a fault of the hook");
      },
      onRefillLate,
    };
    const client = clientOn(new ScriptedSource(), { hooks });
    expect(await client.next()).toHaveLength(8);
    expect(await uncaught).toMatchObject({ message: "a fault of the hook" });
    await client.close();
    const hungry = clientOn(new ScriptedSource(), { hooks: { onRefillLate } });
    await hungry.take(4 * SEQUENCE_COUNT);
    expect(onRefillLate).toHaveBeenCalled();
  });
});

describe("when the coordinator refuses or is away", () => {
  test("tries again after a passing refusal, with a new nonce, not before Retry-After", async () => {
    const source = new ScriptedSource().answer(refusal("store_unavailable", 20), refusal("shutting_down", 20));
    const away = vi.fn();
    const started = performance.now();
    const client = clientOn(source, { hooks: { onCoordinatorAway: away } });
    expect(await client.next()).toHaveLength(8);
    expect(performance.now() - started).toBeGreaterThanOrEqual(39);
    expect(new Set(source.requests.map(({ nonce }) => nonce)).size).toBe(3);
    expect(away.mock.calls.map(([{ attempt }]) => attempt)).toEqual([1, 2]);
    expect(runsOf([client.nextSync()])).toEqual([3]);
  });

  test.each(["rate_limited", "overloaded"])(
    "waits when it is %s, as long as it is told, and goes on",
    async (refused) => {
      const source = new ScriptedSource().answer(refusal(refused, 20));
      const away = vi.fn();
      const started = performance.now();
      expect(await clientOn(source, { hooks: { onCoordinatorAway: away } }).next()).toHaveLength(8);
      expect(performance.now() - started).toBeGreaterThanOrEqual(19);
      expect(away).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ error: code(refused), attempt: 1 }));
    },
  );

  const FINAL = ["namespace_not_initialised", "run_space_exhausted", "store_corrupt", "invalid_request"];
  test.each([...FINAL, "unauthorized", "forbidden"])(
    "tells callers at once of %s, asks no more by itself, and stays usable",
    async (refused) => {
      const source = new ScriptedSource().answer(refusal(refused));
      const client = clientOn(source);
      const waiting = [client.next(), client.take(5)];
      for (const caller of waiting) await expect(caller).rejects.toEqual(code(refused));
      expect(source.requests).toHaveLength(1);
      expect(await client.next()).toHaveLength(8);
    },
  );

  test("gives up after the time budget, with the last reason, and its cause", async () => {
    const client = clientOn(new ScriptedSource().always(refusal("store_unavailable")), { waitTimeoutMs: 20 });
    const failure = await client.next().catch((error: unknown) => error);
    expect(failure).toEqual(code("store_unavailable"));
    expect((failure as Error).message).toContain("within 20 ms: refused: store_unavailable");
    expect((failure as Error).cause).toBeInstanceOf(ClientError);
  });

  test("leaves no timer that keeps a process alive once a run has come", async () => {
    holdTimers();
    const client = clientOn(new ScriptedSource());
    await client.take(2 * SEQUENCE_COUNT + 1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(vi.getTimerCount()).toBe(0);
  });

  test("keeps the pause of a refusal only where it is a number", async () => {
    const source = new ScriptedSource().answer(refusal("store_corrupt", "5" as never), refusal("store_corrupt", 5));
    const client = clientOn(source);
    for (const retryAfterMs of [undefined, 5]) await expect(client.next()).rejects.toMatchObject({ retryAfterMs });
  });

  test.each([
    ["nothing", undefined, "undefined"],
    ["a text", "no luck", "no luck"],
    ["a fault of its own", new TypeError("x is undefined"), "x is undefined"],
    ["a code of its own", Object.assign(new Error("odd"), { code: "ODD" }), "odd"],
  ])("a source that throws %s fails the call with internal_error", async (_, thrown, message) => {
    const source = new ScriptedSource().answer(() => {
      throw thrown;
    });
    const error = await clientOn(source)
      .next()
      .catch((failed: unknown) => failed);
    expect(error).toMatchObject({ name: "ClientError", code: "internal_error", message, cause: thrown });
  });

  test("gives up with wait_timed_out when nothing was answered at all", async () => {
    holdTimers();
    const client = clientOn(new ScriptedSource().always(never), { waitTimeoutMs: 50, requestTimeoutMs: 10_000 });
    const failure = client.next().catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(50);
    expect(await failure).toEqual(code("wait_timed_out"));
  });

  describe("the warning", () => {
    const unreachable = () => {
      throw new ClientError("coordinator_unreachable", "connection refused");
    };
    test.each<[string, Answer, object, string[]]>([
      ["once after two seconds without a response", never, {}, ["the coordinator has not answered yet"]],
      ["once when each try failed to reach the coordinator", unreachable, {}, ["connection refused"]],
      ["not when a run came", (lease) => lease, {}, []],
      ["not when the coordinator answers that the client must wait", refusal("store_silent"), {}, []],
      ["not when a hook reports it", never, { onCoordinatorAway: () => {} }, []],
    ])("is emitted %s", async (_, answer, hooks, said) => {
      holdTimers();
      const emitted = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
      onTestFinished(() => emitted.mockRestore());
      const client = clientOn(new ScriptedSource().always(answer), { hooks });
      client.next().catch(() => {});
      await vi.advanceTimersByTimeAsync(1_999);
      expect(emitted).not.toHaveBeenCalled();
      await vi.advanceTimersByTimeAsync(20_000);
      const texts = emitted.mock.calls.map(([text]) => text);
      expect(texts).toEqual(said.map((words) => expect.stringContaining(words)));
    });
  });

  test("does not give an old refusal as the reason of a new wait", async () => {
    holdTimers();
    const source = new ScriptedSource().answer(refusal("namespace_not_initialised")).always(never);
    const client = clientOn(source, { waitTimeoutMs: 50 });
    await expect(client.next()).rejects.toEqual(code("namespace_not_initialised"));
    const failure = client.next().catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(50);
    expect(await failure).toEqual(code("wait_timed_out"));
  });

  test("asks again when an answer takes too long, and burns the late one", async () => {
    let letGo = () => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    let signal: AbortSignal | undefined;
    const source = new ScriptedSource().answer(async (lease, _, options) => {
      signal = options?.signal;
      await held;
      return lease;
    });
    const client = clientOn(source, { requestTimeoutMs: 20 });
    const made = [await client.next()];
    expect(signal?.aborted).toBe(true);
    letGo();
    made.push(...(await client.take(3 * SEQUENCE_COUNT)));
    expect(runsOf(made)).not.toContain(1);
    expect(source.requests[1]?.nonce).not.toBe(source.requests[0]?.nonce);
  });

  test("an outage in the background keeps no process alive", async () => {
    const { execFile } = await import("node:child_process");
    const { promisify } = await import("node:util");
    const program = `
      import { createClient } from "@callnumber/client";
      const source = { lease: async () => { throw Object.assign(new Error("away"), { code: "store_unavailable", retryAfterMs: 600000 }) }, report: async () => {} };
      const client = createClient({ source, holder: { name: "x" } });
      try { client.nextSync() } catch (error) { console.log(error.code) }
      setTimeout(() => console.log("ends"), 50);
    `;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], {
      cwd: import.meta.dirname,
    });
    expect(stdout).toBe("no_run_ready\nends\n");
  });
});

describe("answers that can't be", () => {
  test.each<[string, object]>([
    ["it does not echo the nonce of the request", { nonce: "nonce-of-another" }],
    ["it is for another namespace", { namespace: "other" }],
    ["it names no store", { storeId: 7 }],
    ["it names no store", { storeId: " store-1" }],
    ["it names no store", { storeId: "store-1 " }],
    ["it bears no receipt", { receipt: "short" }],
    ["it bears no receipt", { receipt: [receiptFor(1)] }],
    ["its version is 8, not a whole number from 0 to 7", { version: VERSION_MAX + 1 }],
    ["its runCount is 0, not a whole number from 1 to 1", { runCount: 0 }],
    ["its runCount is 2, not a whole number from 1 to 1", { runCount: 2 }],
    ["its firstRun is -1, not", { firstRun: -1 }],
    ["its firstRun is 0.5, not", { firstRun: 0.5 }],
    [`its firstRun is ${RUN_MAX + 1}, not a whole number from 0 to ${RUN_MAX}`, { firstRun: RUN_MAX + 1 }],
    ["its leasedAtMs is -1, not", { leasedAtMs: -1 }],
  ])("%s: next() rejects a lease with %j", async (reason, wrong) => {
    const client = clientOn(new ScriptedSource().answer((lease) => ({ ...lease, ...wrong })));
    await expect(client.next()).rejects.toMatchObject({
      code: "answer_not_understood",
      message: expect.stringContaining(reason),
    });
    expect(await client.next()).toHaveLength(8);
  });

  test.each([0, RUN_MAX])("the client uses run %i", async (firstRun) => {
    const client = clientOn(new ScriptedSource().always((lease) => ({ ...lease, firstRun })));
    expect(decodeCallNumber(await client.next()).run).toBe(firstRun);
  });

  test("what stands there is told cut short", async () => {
    const source = new ScriptedSource().answer((lease) => ({ ...lease, runCount: "9".repeat(1_000_000) }));
    const error = (await clientOn(source)
      .next()
      .catch((thrown: unknown) => thrown)) as Error;
    expect(error.message).toMatch(/its runCount is "9{40}…", not a whole number from 1 to 1$/);
  });

  test("a lease from another store stops the client, in the middle of its run", async () => {
    const source = new ScriptedSource();
    const client = clientOn(source);
    await client.next();
    expect(client.storeId).toBe("store-1");
    source.storeId = "store-2";
    await client.take(SEQUENCE_COUNT / 2 + 1);
    await vi.waitFor(() => expect(() => client.nextSync()).toThrow(code("other_store")), PATIENT);
    await expect(client.next()).rejects.toThrow(/store-2.*store-1/s);
  });

  test("an answer that changes after it was checked changes nothing", async () => {
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

  test("a pinned store id refuses any other store before the first number", async () => {
    const client = clientOn(new ScriptedSource(), { expectedStoreId: "store-0" });
    await expect(client.next()).rejects.toEqual(code("other_store"));
    const right = clientOn(new ScriptedSource(), { expectedStoreId: "store-1" });
    expect(await right.next()).toHaveLength(8);
  });
});

describe("closing", () => {
  test("reports how far the run got and that the spare runs were never used", async () => {
    const source = new ScriptedSource();
    const client = clientOn(source, { spareRuns: 3 });
    await client.take(10);
    await expect.poll(() => source.mark).toBe(4);
    const before = source.reports.length;
    await client.close();
    expect(source.reports.slice(before)).toEqual([
      expect.objectContaining({ run: 1, lastSequence: 9, state: "closed" }),
    ]);
    expect(source.reports[0]?.nonce).toBe(source.requests[0]?.nonce);
  });

  test("reports a lease that is used up once, with its last run", async () => {
    const source = new ScriptedSource();
    const client = clientOn(source, { spareRuns: 3, refill: "when_empty" });
    await client.take(5 * SEQUENCE_COUNT);
    await client.next();
    expect(source.leasedRunCounts.slice(0, 2)).toEqual([4, 4]);
    expect(source.reports).toEqual([
      expect.objectContaining({ run: 4, lastSequence: SEQUENCE_MAX, state: "exhausted" }),
    ]);
  });

  test("reports leases that were never begun", async () => {
    const source = new ScriptedSource();
    const client = clientOn(source);
    await client.take(SEQUENCE_COUNT / 2 + 2);
    await expect.poll(() => source.mark).toBe(2);
    await new Promise((resolve) => setImmediate(resolve));
    await client.close();
    expect(source.reports).toEqual([
      expect.objectContaining({ run: 1, lastSequence: SEQUENCE_COUNT / 2 + 1, state: "closed" }),
      expect.objectContaining({ run: 2, lastSequence: null, state: "closed" }),
    ]);
  });

  test("makes no number afterwards, whatever the form, and asks for nothing", async () => {
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

  test("refuses those who wait, burns the lease that is under way and reports it, and may be called twice", async () => {
    const source = new ScriptedSource();
    const client = clientOn(source);
    const waiting = [client.next(), client.take(3)].map((caller) => caller.catch((error: unknown) => error));
    const closings = [client.close(), client.close()];
    for (const caller of waiting) expect(await caller).toEqual(code("client_closed"));
    await Promise.all(closings);
    expect(source.reports).toEqual([expect.objectContaining({ run: 1, lastSequence: null, state: "closed" })]);
    await client.close();
  });

  test("does not wait for an answer that does not come", async () => {
    holdTimers();
    const client = clientOn(new ScriptedSource().always(never), { requestTimeoutMs: 600_000 });
    const waiting = client.next().catch((error: unknown) => error);
    const closed = client.close();
    expect(await waiting).toEqual(code("client_closed"));
    await vi.advanceTimersByTimeAsync(1_000);
    await closed;
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

  test("called by a source while it is asked for a refill, leaves a closed client", async () => {
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

  test("a caller that was promised a number as the client closes gets none that is used again", async () => {
    const source = new ScriptedSource();
    const client = clientOn(source);
    await client.next();
    const racing = Array.from({ length: 50 }, () => client.next().catch((error: ClientError) => error.code));
    await client.close();
    const outcomes = await Promise.all(racing);
    const made = outcomes.filter((outcome) => outcome !== "client_closed");
    const lastSequence = source.reports[0]?.lastSequence ?? -1;
    expect(made.map((text) => decodeCallNumber(text).sequence).every((sequence) => sequence <= lastSequence)).toBe(
      true,
    );
    expect(new Set(made).size).toBe(made.length);
  });

  test("never rejects when the report fails, and tells the hook", async () => {
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

  test("`await using` closes", async () => {
    const source = new ScriptedSource();
    {
      await using client = createClient({ source, holder: { name: "test" } });
      await client.next();
    }
    expect(source.reports).toEqual([expect.objectContaining({ run: 1, lastSequence: 0, state: "closed" })]);
  });
});

describe("options", () => {
  const source = new ScriptedSource();
  const labels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`l${index}`, "x"]));
  test.each<[string, object, string]>([
    ["no holder", { holder: undefined }, "holder must say who asks"],
    ["an empty name", { holder: { name: "" } }, "holder.name"],
    ["a bad label", { holder: { name: "x", labels: { A: "b" } } }, '"A"'],
    ["a misspelt option", { expectedStoreID: "x" }, '"expectedStoreID"'],
    ["a bad namespace", { namespace: "Main" }, '"Main"'],
    ["an empty pin", { expectedStoreId: "" }, "expectedStoreId"],
    ["too many spares", { spareRuns: 65 }, "65"],
    ["half a run", { leaseRunCountMax: 1.5 }, "1.5"],
    ["no time to wait", { waitTimeoutMs: 0 }, "waitTimeoutMs"],
    ["an unknown refill", { refill: "sometimes" }, '"sometimes"'],
    ["both a source and an address", { coordinator: "http://127.0.0.1:1" }, "not both"],
    ["spare runs for one run", { onExhausted: "stop", spareRuns: 1 }, "spareRuns"],
    ["a source and a token", { token: "x" }, "not both"],
    ["a source and a fetch", { fetch: () => {} }, "not both"],
    ["a source that is none", { source: {} }, "`lease`"],
    ["a source that leases only", { source: { lease: () => {} } }, "`report`"],
    ["a source that reports only", { source: { report: () => {} } }, "`lease`"],
    ["a holder that is null", { holder: null }, "holder must say who asks"],
    ["a name that is none", { holder: { name: 7 } }, "holder.name must have 1 to 64 printable characters, not 7"],
    ["a name that is too long", { holder: { name: "x".repeat(HOLDER_NAME_LENGTH_MAX + 1) } }, "holder.name"],
    ["too many labels", { holder: { name: "x", labels: labels(LABEL_COUNT_MAX + 1) } }, `not ${LABEL_COUNT_MAX + 1}`],
    ["an empty value", { holder: { name: "x", labels: { a: "" } } }, "holder.labels.a"],
    ["no spare runs", { spareRuns: -1 }, "spareRuns must be a whole number from 0 to 64, not -1"],
    ["no run to ask for", { leaseRunCountMax: 0 }, "leaseRunCountMax"],
    ["a wait beyond an hour", { waitTimeoutMs: 3_600_001 }, "3600001"],
    ["a request beyond ten minutes", { requestTimeoutMs: 600_001 }, "600001"],
    ["a pin that is no text", { expectedStoreId: 7 }, "expectedStoreId must be a store id, not 7"],
    ["an unknown end", { onExhausted: "never" }, '"never"'],
  ])("%s is refused, with its name and value", (_, options, said) => {
    expect(() => createClient({ source, holder: { name: "x" }, ...options } as never)).toThrow(said);
  });

  test("createClient takes each option at its bounds", () => {
    const holder = { name: "x".repeat(HOLDER_NAME_LENGTH_MAX), pid: PID_MAX, labels: labels(LABEL_COUNT_MAX) };
    const [least, most] = [
      { spareRuns: 0, leaseRunCountMax: 1 },
      { spareRuns: 64, leaseRunCountMax: 64 },
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
      onRefillLate: undefined,
      onCoordinatorAway: undefined,
      onAlarm: undefined,
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
      leaseRunCountMax: undefined,
      refill: undefined,
      onExhausted: undefined,
      waitTimeoutMs: undefined,
      requestTimeoutMs: undefined,
    };
    const holder = { name: "x", host: undefined, pid: undefined, labels: undefined };
    expect(createClient({ holder, hooks, ...unset })).toBeInstanceOf(Client);
    expect(createClient({ holder, hooks: undefined })).toBeInstanceOf(Client);
  });

  test.each(["", "coordinator", "ftp://x", "http://user:pw@host", "http://host?x=1"])(
    "the address %j is refused",
    (coordinator) => {
      expect(() => createClient({ coordinator, holder: { name: "x" } })).toThrow(TypeError);
    },
  );

  test("an address that is refused does not show its password", () => {
    expect(() => createClient({ coordinator: "http://user:geheim@host", holder: { name: "x" } })).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining("geheim") }),
    );
  });
});
