/** How the client retries: which errors, after which delay, and what its callers learn meanwhile. */
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { ClientError } from "../src/index.js";
import { warned } from "../src/lease-buffer.js";
import type { ClientOptions } from "../src/options.js";
import { retryDelayMs } from "../src/requests.js";
import { clientsForTest, code, holdTimers, never, runsOf } from "./clients-for-test.js";
import { type Answer, refusal, ScriptedSource } from "./scripted-source.js";

const clientOn = clientsForTest();

describe("rejections and outages", () => {
  test("the client retries after a temporary rejection, with a new nonce, not before Retry-After", async () => {
    const source = new ScriptedSource().answer(refusal("store_unavailable", 20), refusal("shutting_down", 20));
    const away = vi.fn();
    const started = performance.now();
    const client = clientOn(source, { hooks: { onRetry: away } });
    expect(await client.next()).toHaveLength(8);
    expect(performance.now() - started).toBeGreaterThanOrEqual(39);
    expect(new Set(source.requests.map(({ nonce }) => nonce)).size).toBe(3);
    expect(away.mock.calls.map(([{ attempt }]) => attempt)).toEqual([1, 2]);
    expect(runsOf([client.nextSync()])).toEqual([3]);
  });

  test.each(["rate_limited", "overloaded"])(
    "the client waits as long as the response to %s demands, and goes on",
    async (refused) => {
      const source = new ScriptedSource().answer(refusal(refused, 20));
      const away = vi.fn();
      const started = performance.now();
      expect(await clientOn(source, { hooks: { onRetry: away } }).next()).toHaveLength(8);
      expect(performance.now() - started).toBeGreaterThanOrEqual(19);
      expect(away).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ error: code(refused), attempt: 1 }));
    },
  );

  const FINAL = ["namespace_not_found", "run_space_exhausted", "store_corrupt", "invalid_request"];
  test.each([...FINAL, "unauthorized", "forbidden"])(
    "the client passes %s to its callers immediately, requests no more without a call, and stays usable",
    async (refused) => {
      const source = new ScriptedSource().answer(refusal(refused));
      const client = clientOn(source);
      const waiting = [client.next(), client.take(5)];
      for (const caller of waiting) await expect(caller).rejects.toEqual(code(refused));
      expect(source.requests).toHaveLength(1);
      expect(await client.next()).toHaveLength(8);
    },
  );

  test("next() rejects after waitTimeoutMs with the last reason and its cause", async () => {
    const client = clientOn(new ScriptedSource().always(refusal("store_unavailable")), { waitTimeoutMs: 20 });
    const failure = await client.next().catch((error: unknown) => error);
    expect(failure).toEqual(code("store_unavailable"));
    expect((failure as Error).message).toContain("within 0.02 s: refused: store_unavailable");
    expect((failure as Error).cause).toBeInstanceOf(ClientError);
  });

  test("the client leaves no timer that keeps a process alive once a run has come", async () => {
    holdTimers();
    const client = clientOn(new ScriptedSource());
    await client.take(2 * SEQUENCE_COUNT + 1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(vi.getTimerCount()).toBe(0);
  });

  test("an error keeps retryAfterMs and reason of a rejection only where their types are right", async () => {
    const source = new ScriptedSource().answer(refusal("store_corrupt", "5" as never), refusal("store_corrupt", 5));
    const client = clientOn(source);
    for (const retryAfterMs of [undefined, 5]) await expect(client.next()).rejects.toMatchObject({ retryAfterMs });
    for (const [reason, kept] of [
      ["moved", "moved"],
      [7, undefined],
    ] as const) {
      source.answer(() => {
        throw Object.assign(new Error("refused"), { code: "store_corrupt", reason });
      });
      await expect(client.next()).rejects.toMatchObject({ reason: kept });
    }
  });

  test.each([
    ["nothing", undefined, "undefined"],
    ["a text", "no luck", "no luck"],
    ["an error of its own", new TypeError("x is undefined"), "x is undefined"],
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

  test("next() rejects with wait_timeout when no response came at all", async () => {
    holdTimers();
    const client = clientOn(new ScriptedSource().always(never), { waitTimeoutMs: 50, requestTimeoutMs: 10_000 });
    const failure = client.next().catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(50);
    expect(await failure).toEqual(code("wait_timeout"));
  });

  describe("the warning", () => {
    beforeEach(() => void (warned.once = false));
    const unreachable = () => {
      throw new ClientError("coordinator_unreachable", "connection refused");
    };
    test.each<[string, Answer, object, string[]]>([
      ["once after two seconds without a response", never, {}, ["the coordinator has not answered yet"]],
      ["once when each try failed to reach the coordinator", unreachable, {}, ["connection refused"]],
      ["not when a run came", (lease) => lease, {}, []],
      ["not when the coordinator answers that the client must wait", refusal("store_recovering"), {}, []],
      ["not when a hook reports it", never, { onRetry: () => {} }, []],
    ])("the warning is emitted %s", async (_, answer, hooks, said) => {
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

  test("fifty clients of a process emit one warning, and none in a second outage", async () => {
    warned.once = false;
    holdTimers();
    const emitted = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => emitted.mockRestore());
    for (let count = 1; count < 50; count++) {
      const other = clientOn(new ScriptedSource().always(never));
      other.next().catch(() => {});
    }
    const source = new ScriptedSource().answer(never, (lease) => lease).always(never);
    const client = clientOn(source, { prefetch: false });
    const made = client.take(SEQUENCE_COUNT);
    // The first request times out; then only real time passes, until the second is answered.
    await vi.advanceTimersByTimeAsync(5_001);
    await made;
    client.next().catch(() => {});
    await vi.advanceTimersByTimeAsync(20_000);
    expect(source.requests.length).toBeGreaterThan(2);
    expect(emitted).toHaveBeenCalledOnce();
  });

  test("next() does not give an old rejection as the reason of a new wait", async () => {
    holdTimers();
    const source = new ScriptedSource().answer(refusal("namespace_not_found")).always(never);
    const client = clientOn(source, { waitTimeoutMs: 50 });
    await expect(client.next()).rejects.toEqual(code("namespace_not_found"));
    const failure = client.next().catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(50);
    expect(await failure).toEqual(code("wait_timeout"));
  });

  test("the client retries when a response takes too long, and discards the late one", async () => {
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

  describe("the time limit of a request", () => {
    /** Lets the client's time pass, and sources answer in between. */
    async function pass(seconds: number): Promise<void> {
      for (let second = 0; second <= seconds; second++) {
        for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
        if (second < seconds) await vi.advanceTimersByTimeAsync(1_000);
      }
    }

    /** A client, and the time limits of its attempts so far, in seconds. */
    function limitedOn(source: ScriptedSource, options: Partial<ClientOptions>) {
      const limits: number[] = [];
      const onRetry = ({ error }: { error: ClientError }) =>
        void limits.push(Number(/did not answer within (\d+) s/.exec(error.message)?.[1]));
      return { client: clientOn(source, { ...options, hooks: { onRetry } }), limits };
    }

    test("next() returns a number from a source that answers after 6 s, at the second attempt", async () => {
      holdTimers();
      const after6s: Answer = (lease) => new Promise((resolve) => setTimeout(() => resolve(lease), 6_000));
      const source = new ScriptedSource().always(after6s);
      const number = clientOn(source).next();
      await pass(12);
      expect(runsOf([await number])).toEqual([2]);
      expect(source.requests).toHaveLength(2);
    });

    test.each([
      ["within a wait of 30 s", {}, [5, 10, 20, 30, 30]],
      ["up to eight times", { waitTimeoutMs: 600_000 }, [5, 10, 20, 40, 40]],
      ["not beyond a wait that is shorter than the first one", { waitTimeoutMs: 1 }, [5, 5, 5]],
      ["from the one that was given", { requestTimeoutMs: 2_000 }, [2, 4, 8, 16]],
    ])("the time limit doubles with each attempt, %s", async (_, options, seconds) => {
      holdTimers();
      const { client, limits } = limitedOn(new ScriptedSource().always(never), options);
      client.next().catch(() => {});
      await pass(seconds.reduce((sum, one) => sum + one, 1));
      expect(limits).toEqual(seconds);
    });

    test.each([
      ["no longer when the process comes to its end in time", 5, 0],
      ["as much longer as the process came to its end late", 6, 1],
      ["at most as long again", 60, 5],
    ])("a time limit of 5 s lasts %s", async (_, cameAfter, longer) => {
      holdTimers();
      const now = vi.spyOn(performance, "now").mockReturnValue(0);
      const source = new ScriptedSource().always(never);
      clientOn(source)
        .next()
        .catch(() => {});
      await pass(0);
      now.mockReturnValue(1000 * cameAfter);
      await pass(4.9 + longer);
      expect(source.requests).toHaveLength(1);
      await pass(0.3);
      expect(source.requests).toHaveLength(2);
    });

    test("the time limit begins again after a lease", async () => {
      holdTimers();
      const source = new ScriptedSource().answer(never, never, (lease) => lease).always(never);
      const { client, limits } = limitedOn(source, { prefetch: false });
      const made = client.take(SEQUENCE_COUNT);
      await pass(16);
      await made;
      client.next().catch(() => {});
      await pass(16);
      expect(limits).toEqual([5, 10, 5, 10]);
    });
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
    expect(stdout).toBe("no_run_available\nends\n");
  });

  test("callers that give up and call again cause no request of their own", async () => {
    const source = new ScriptedSource().always(refusal("rate_limited", 60_000));
    const client = clientOn(source, { waitTimeoutMs: 5 });
    for (let index = 0; index < 30; index++) await expect(client.next()).rejects.toThrow(/no run came/);
    expect(source.requests).toHaveLength(1);
  });
});

const delays = (attempt: number, retryAfterMs?: number) =>
  Array.from({ length: 1000 }, () => retryDelayMs(attempt, retryAfterMs));

describe("the delay before the next try", () => {
  beforeEach(() => void vi.restoreAllMocks());

  test("the delay before a retry is random between 0 and a bound that doubles, up to ten seconds", () => {
    for (const [attempt, boundMs] of [
      [1, 100],
      [2, 200],
      [5, 1600],
      [8, 10_000],
      [1000, 10_000],
    ] as const) {
      const drawn = delays(attempt);
      expect(Math.max(...drawn)).toBeLessThanOrEqual(boundMs);
      // Full jitter: a thousand draws that all miss the outer tenths would be no chance.
      expect(Math.max(...drawn)).toBeGreaterThan(0.9 * boundMs);
      expect(Math.min(...drawn)).toBeLessThan(0.1 * boundMs);
    }
  });

  test("the delay before a retry is added to retryAfterMs, of which a minute at most counts", () => {
    expect(Math.min(...delays(1, 2_000))).toBeGreaterThanOrEqual(2_000);
    expect(Math.max(...delays(1, 2_000))).toBeLessThanOrEqual(4_000);
    expect(Math.min(...delays(1, 2 ** 31))).toBeGreaterThanOrEqual(60_000);
    expect(Math.max(...delays(1, 2 ** 31))).toBeLessThanOrEqual(70_000);
  });

  test("the delay before a retry is a whole number of milliseconds, never less than retryAfterMs", () => {
    for (const delayMs of delays(1, 0.25)) expect(delayMs).toSatisfy((value) => Number.isInteger(value) && value >= 1);
  });

  test("the delay before a retry spreads clients with the same Retry-After over as long again, a second at most", () => {
    expect(Math.max(...delays(1, 4_000))).toBeLessThanOrEqual(5_000);
    const drawn = delays(1, 1_000);
    for (const fromMs of [1_000, 1_250, 1_500, 1_750]) {
      const inQuarter = drawn.filter((delayMs) => delayMs >= fromMs && delayMs < fromMs + 250).length;
      expect(inQuarter).toBeGreaterThan(150);
      expect(inQuarter).toBeLessThan(350);
    }
  });
});
