/** How many runs a client leases for what its callers use: as few as they need, and never after the last number of a run. */
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { expect, test, vi } from "vitest";
import type { Client } from "../src/index.js";
import { clientsForTest, runsOf } from "./clients-for-test.js";
import { ScriptedSource } from "./scripted-source.js";

const clientOn = clientsForTest();

async function loop(client: Client, count: number): Promise<void> {
  for (let made = 0; made < count; made++) await client.next();
}

async function batches(client: Client, count: number): Promise<void> {
  for (let made = 0; made < count; made += 1_000) await client.take(Math.min(1_000, count - made));
}

const FOR_200_000 = [1, 1, 1, 1, 2, 2, 3, 4];

test.each<[string, (client: Client, count: number) => Promise<unknown>, number, number[]]>([
  ["next() in a loop", loop, 9_000, [1]],
  ["next() in a loop", loop, SEQUENCE_COUNT, [1, 1]],
  ["next() in a loop", loop, 50_000, [1, 1, 1, 1]],
  ["next() in a loop", loop, 200_000, FOR_200_000],
  ["take(1000) in a loop", batches, 9_000, [1]],
  ["take(1000) in a loop", batches, 200_000, FOR_200_000],
  ["one take()", (client, count) => client.take(count), 50_000, [4]],
  ["one take()", (client, count) => client.take(count), 200_000, [13]],
  ["one fillBytes()", (client, count) => client.fillBytes(new Uint8Array(8 * count)), 200_000, [13]],
  ["one fillNumbers()", (client, count) => client.fillNumbers(new Float64Array(count)), 200_000, [13]],
])("%s: a client leases, for %i numbers, as many runs as it needs, and reports each lease once", async (...given) => {
  const [, use, count, leases] = given;
  const source = new ScriptedSource();
  const client = clientOn(source);
  await use(client, count);
  await client.close();
  expect(source.leasedRunCounts).toEqual(leases);
  expect(source.reports).toHaveLength(leases.length);
});

test("take() requests what is missing at once, before the numbers at hand are used", async () => {
  const source = new ScriptedSource();
  const client = clientOn(source);
  await client.take(5_000);
  await client.take(200_000);
  expect(source.leasedRunCounts).toEqual([1, 12]);
  expect(runsOf(await client.take(1))).toEqual([13]);
});

test("a caller that never pauses has at most half as many runs leased again as it used, and one", async () => {
  const source = new ScriptedSource();
  const onLease = vi.fn();
  const client = clientOn(source, { hooks: { onLease } });
  for (let used = 1; used <= 150; used++) {
    for (let batch = 0; batch < 8; batch++) await client.take(SEQUENCE_COUNT / 8);
    expect(source.mark).toBeLessThanOrEqual(1.5 * used + 1);
  }
  // Fewer requests than runs all the same.
  expect(onLease.mock.calls.length).toBeLessThan(30);
});

test("after a pause the client leases less ahead, and more again only with what is used since", async () => {
  let nowMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  const source = new ScriptedSource();
  const client = clientOn(source);
  await loop(client, 200_000);
  nowMs += 600_000;
  const leaseCount = source.requests.length;
  await loop(client, 8 * SEQUENCE_COUNT);
  expect(source.leasedRunCounts.slice(leaseCount)).toEqual([3, 3, 3]);
});

test('take() leases one run with onExhausted "stop", however many numbers are wanted', async () => {
  const source = new ScriptedSource();
  const client = clientOn(source, { onExhausted: "stop" });
  await expect(client.take(2 * SEQUENCE_COUNT)).rejects.toMatchObject({ code: "sequence_exhausted" });
  expect(source.leasedRunCounts).toEqual([1]);
});

test("onStall is called with prefetch: false, too, and not for the first run", async () => {
  const onStall = vi.fn();
  const client = clientOn(new ScriptedSource(), { prefetch: false, hooks: { onStall } });
  await client.take(SEQUENCE_COUNT);
  expect(onStall).not.toHaveBeenCalled();
  await client.next();
  expect(onStall).toHaveBeenCalledOnce();
  await loop(client, 2 * SEQUENCE_COUNT);
  expect(onStall).toHaveBeenCalledTimes(3);
});
