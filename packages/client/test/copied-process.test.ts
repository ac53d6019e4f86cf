/**
 * A process whose pid is another than when it made its client: played here by a changed `process.pid`.
 * The real copy, a startup snapshot, has a test of its own.
 */
import process from "node:process";
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { afterEach, expect, test, vi } from "vitest";
import { type Client, createClient } from "../src/index.js";
import type { ClientOptions } from "../src/options.js";
import { refusal, ScriptedSource } from "./scripted-source.js";

const pid = Object.getOwnPropertyDescriptor(process, "pid") as PropertyDescriptor;
const becomeCopy = () => Object.defineProperty(process, "pid", { ...pid, value: process.pid + 1 });
const becomeOriginal = () => Object.defineProperty(process, "pid", pid);

afterEach(() => {
  becomeOriginal();
});

const copied = expect.objectContaining({ name: "ClientError", code: "process_cloned" });
const clientOn = (source: ScriptedSource, options: Partial<ClientOptions> = {}) =>
  createClient({ source, holder: { name: "test" }, ...options });

const FORMS: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
  "next()": (client) => client.next(),
  "take()": (client) => client.take(2),
  "ready()": (client) => client.ready(1),
  "a loop": (client) => client[Symbol.asyncIterator]().next(),
};

test.each(Object.entries(FORMS))(
  "%s generates no number in a copied process, in the middle of a run, and none ever again",
  async (_, call) => {
    const source = new ScriptedSource();
    const onStopped = vi.fn();
    const client = clientOn(source, { spareRuns: 1, hooks: { onStopped } });
    await client.take(10);
    becomeCopy();
    await expect(call(client)).rejects.toEqual(copied);
    becomeOriginal();
    for (const again of Object.values(FORMS)) await expect(again(client)).rejects.toEqual(copied);
    expect(() => client.nextSync()).toThrow(copied);
    const requestCount = source.requests.length;
    await client.close();
    expect(source.requests).toHaveLength(requestCount);
    expect(source.reports).toEqual([]);
    expect(onStopped).toHaveBeenCalledExactlyOnceWith(copied);
  },
);

test("a client without a run requests none in a copied process", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source);
  becomeCopy();
  expect(() => client.nextSync()).toThrow(copied);
  await expect(client.next()).rejects.toEqual(copied);
  await new Promise((resolve) => setImmediate(resolve));
  expect(source.requests).toEqual([]);
});

test("nextSync() detects a copied process at the latest when half of the run is left", async () => {
  const client = clientOn(new ScriptedSource());
  await client.next();
  becomeCopy();
  const generate = () => {
    for (let count = 0; count <= SEQUENCE_COUNT / 2 + 1; count++) client.nextSync();
  };
  expect(generate).toThrow(copied);
});

test("close() reports nothing in a copied process: the current run is the original's", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source);
  await client.take(10);
  becomeCopy();
  await client.close();
  expect(source.reports).toEqual([]);
});

test("close() does not report a used-up lease in a copied process either", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source);
  await client.take((SEQUENCE_COUNT * 3) / 4 + 2);
  await expect.poll(() => source.mark).toBe(2);
  await client.take(SEQUENCE_COUNT / 4);
  becomeCopy();
  await client.close();
  expect(source.reports).toEqual([]);
});

test("a copied process rejects waiting callers at once, requests nothing more, and calls onStopped once", async () => {
  const onStopped = vi.fn();
  const source = new ScriptedSource().always(refusal("store_unavailable", 1));
  const client = clientOn(source, { hooks: { onStopped } });
  const waiting = client.next().catch((error: unknown) => error);
  await expect.poll(() => source.requests).toHaveLength(1);
  becomeCopy();
  expect(() => client.nextSync()).toThrow(copied);
  expect(await waiting).toEqual(copied);
  await new Promise((resolve) => setTimeout(resolve, 110));
  expect(source.requests).toHaveLength(1);
  expect(onStopped).toHaveBeenCalledExactlyOnceWith(copied);
  await client.close();
});

test("a lease that arrives in a copied process is neither used nor reported", async () => {
  const source = new ScriptedSource().answer((lease) => {
    becomeCopy();
    expect(() => client.nextSync()).toThrow(copied);
    becomeOriginal();
    return lease;
  });
  const onLease = vi.fn();
  const client: Client = clientOn(source, { hooks: { onLease } });
  await expect(client.next()).rejects.toEqual(copied);
  await client.close();
  expect(onLease).not.toHaveBeenCalled();
  expect(source.reports).toEqual([]);
});
