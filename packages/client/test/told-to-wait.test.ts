/** A client that was told to wait waits, and asks once, however many callers it has and however often they ask it. */
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { type Client, createClient } from "../src/index.js";
import { refusal, ScriptedSource } from "./scripted-source.js";

const clients: Client[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

test.each(["rate_limited", "overloaded"])("after %s it asks no sooner than it was told, and once", async (code) => {
  const askedAtMs: number[] = [];
  const waitMs = 200;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const source = new ScriptedSource().answer(refusal(code, waitMs), refusal(code, waitMs));
  const leaseOnce = source.lease.bind(source);
  source.lease = (...parameters) => {
    askedAtMs.push(performance.now());
    return leaseOnce(...parameters);
  };
  const client = createClient({ source, holder: { name: "letters", host: "mail-1", pid: 1, labels: {} } });
  clients.push(client);
  const making = Promise.all(Array.from({ length: 500 }, () => client.next()));
  while (source.requests.length < 3) await vi.advanceTimersByTimeAsync(1);
  const numbers = await making;
  expect(new Set(numbers).size).toBe(500);
  expect(askedAtMs).toHaveLength(3);
  expect(source.greatestConcurrency).toBe(1);
  for (const [index, atMs] of askedAtMs.slice(1).entries()) {
    expect(atMs - (askedAtMs[index] as number)).toBeGreaterThanOrEqual(waitMs);
  }
});

test("callers that give up and ask again make no request of their own", async () => {
  const source = new ScriptedSource().always(refusal("rate_limited", 60_000));
  const holder = { name: "letters", host: "mail-1", pid: 1, labels: {} };
  const client = createClient({ source, holder, waitTimeoutMs: 5 });
  clients.push(client);
  for (let index = 0; index < 30; index++) await expect(client.next()).rejects.toThrow(/no run came/);
  expect(source.requests).toHaveLength(1);
});
