/** The client's part in keeping runs apart: what it sends with each request, and what makes it stop permanently. */

import { ERROR_RULES } from "@callnumber/protocol/api";
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Client, createClient } from "../src/index.js";
import type { ClientOptions } from "../src/options.js";
import { type Answer, proofFor, refusal, ScriptedSource } from "./scripted-source.js";

const clients: Client[] = [];

function clientOn(source: ScriptedSource, options: Partial<ClientOptions> = {}): Client {
  const client = createClient({ source, holder: { name: "test" }, prefetch: false, ...options });
  clients.push(client);
  return client;
}

/** No pause before a retry, where the coordinator asks for none. */
beforeEach(() => void vi.spyOn(Math, "random").mockReturnValue(0));
afterEach(async () => {
  vi.restoreAllMocks();
  for (const client of clients.splice(0)) await client.close();
});

const code = (expected: string) => expect.objectContaining({ name: "ClientError", code: expected });
const evidenceIn = (source: ScriptedSource) => source.requests.map(({ lastRun, proof }) => ({ lastRun, proof }));

test("each lease request sends the last run received, with the proof of that lease", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source, { spareRuns: 2, prefetch: true });
  for (let run = 0; run < 12; run++) await client.take(SEQUENCE_COUNT);
  const [first, ...later] = evidenceIn(source);
  expect(first).toEqual({ lastRun: null, proof: null });
  expect(later.length).toBeGreaterThan(2);
  expect(Math.max(...source.leasedRunCounts)).toBeGreaterThan(1);
  let lastRun = 0;
  for (const [index, evidence] of later.entries()) {
    lastRun += source.leasedRunCounts[index] as number;
    expect(evidence).toEqual({ lastRun, proof: proofFor(lastRun) });
  }
});

test("a lease request sends nothing of runs that were rejected, lost or invalid", async () => {
  const source = new ScriptedSource().answer(
    (lease) => lease,
    refusal("store_unavailable"),
    (lease) => ({ ...lease, nonce: "nonce-of-another-request" }),
  );
  const client = clientOn(source);
  await client.take(SEQUENCE_COUNT);
  await expect(client.next()).rejects.toEqual(code("invalid_response"));
  await client.next();
  const ofFirst = { lastRun: 1, proof: proofFor(1) };
  expect(evidenceIn(source)).toEqual([{ lastRun: null, proof: null }, ofFirst, ofFirst, ofFirst]);
});

test("a lease request has the time at which it was sent, also when it is a retry", async () => {
  let nowMs = 1_795_000_000_000;
  vi.spyOn(Date, "now").mockImplementation(() => nowMs);
  const late: Answer = (lease, request, options) => {
    nowMs += 7_000;
    return refusal("store_unavailable")(lease, request, options);
  };
  const source = new ScriptedSource().answer(late, late);
  await clientOn(source).next();
  expect(source.requests.map(({ sentAtMs }) => sentAtMs - 1_795_000_000_000)).toEqual([0, 7_000, 14_000]);
});

test("a lease request sends the proof that was checked, even when the response changes afterwards", async () => {
  const source = new ScriptedSource().answer((lease) => {
    const proofs = [lease.proof];
    return Object.defineProperty({ ...lease }, "proof", { get: () => proofs.pop() ?? proofFor(999) });
  });
  const client = clientOn(source);
  await client.take(SEQUENCE_COUNT);
  await client.next();
  expect(evidenceIn(source)[1]?.proof).toBe(proofFor(1));
});

const STOPS: Readonly<Record<string, Answer>> = {
  store_mismatch: (lease) => ({ ...lease, storeId: "store-2" }),
  run_not_increasing: (lease) => ({ ...lease, firstRun: 1 }),
  run_above_high_water_mark: refusal("run_above_high_water_mark"),
  store_id_mismatch: refusal("store_id_mismatch"),
  store_forked: refusal("store_forked"),
};

test.each(Object.entries(STOPS))(
  "onStopped is called once for %s, without a waiting caller, and the current run is given up",
  async (stop, answer) => {
    const onStopped = vi.fn();
    const source = new ScriptedSource().answer((lease) => lease, answer);
    const client = clientOn(source, { prefetch: true, hooks: { onStopped } });
    await client.take((SEQUENCE_COUNT * 3) / 4 + 2);
    await expect.poll(() => onStopped).toHaveBeenCalled();
    expect(() => client.nextSync()).toThrow(code(stop));
    await expect(client.next()).rejects.toEqual(code(stop));
    await client.close();
    expect(onStopped).toHaveBeenCalledExactlyOnceWith(code(stop));
    expect(source.requests).toHaveLength(2);
  },
);

test("onStopped is called once however many callers wait, and each of them is rejected", async () => {
  const onStopped = vi.fn();
  const client = clientOn(new ScriptedSource().always(refusal("store_forked")), { hooks: { onStopped } });
  const waiting = [client.next(), client.take(3), client.next()];
  for (const caller of waiting) await expect(caller).rejects.toEqual(code("store_forked"));
  expect(onStopped).toHaveBeenCalledExactlyOnceWith(code("store_forked"));
});

test("onStopped may close the client", async () => {
  const source = new ScriptedSource().always(refusal("store_forked"));
  const closed = new Promise<void>((resolve) => {
    const onStopped = () => void client.close().then(resolve);
    const client = clientOn(source, { hooks: { onStopped } });
    client.next().catch(() => {});
  });
  await closed;
  expect(source.requests).toHaveLength(1);
});

test.each(Object.keys(ERROR_RULES).filter((refused) => !(refused in STOPS)))(
  "%s leaves the leased runs usable, and does not call onStopped",
  async (refused) => {
    const onStopped = vi.fn();
    const source = new ScriptedSource().answer((lease) => lease, refusal(refused));
    const client = clientOn(source, { prefetch: true, hooks: { onStopped } });
    const made = await client.take((SEQUENCE_COUNT * 3) / 4 + 2);
    await expect.poll(() => source.requests.length).toBeGreaterThanOrEqual(2);
    await new Promise((resolve) => setImmediate(resolve));
    while (made.length < SEQUENCE_COUNT) made.push(client.nextSync());
    made.push(await client.next());
    expect(new Set(made).size).toBe(SEQUENCE_COUNT + 1);
    expect(onStopped).not.toHaveBeenCalled();
  },
);
