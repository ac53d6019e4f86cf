/** One small contract for the two ways to a coordinator: over HTTP and in the same process. */
import { createClient, httpSource, type LeaseSource } from "@callnumber/client";
import { Coordinator, createServer, openStore } from "@callnumber/coordinator";
import { PROOF_PATTERN } from "@callnumber/protocol/api";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { afterEach, describe, expect, test } from "vitest";

interface Way {
  readonly source: LeaseSource;
  readonly close: () => Promise<unknown>;
}

const WAYS: Readonly<Record<string, (coordinator: Coordinator) => Promise<Way>>> = {
  "in process": async (coordinator) => ({ source: coordinator, close: async () => {} }),
  "over HTTP": async (coordinator) => {
    const server = createServer({ coordinator, release: "0.0.0" });
    const address = await server.listen({ host: "127.0.0.1", port: 0 });
    return { source: httpSource({ coordinator: address }), close: () => server.stop() };
  },
};

const holder = { name: "importer", host: "mail-1", pid: 4711, labels: { archive: "lists" } };
const request = {
  runCount: 2,
  nonce: "nonce-0123456789",
  holder,
  lastRun: null,
  proof: null,
  sentAtMs: Date.now(),
};

describe.each(Object.entries(WAYS))("a lease source %s", (_, open) => {
  let way: Way | undefined;

  async function source(): Promise<{ source: LeaseSource; coordinator: Coordinator }> {
    const { store } = await openStore({ kind: "memory" }, { create: true });
    const coordinator = new Coordinator({ store, name: "test" });
    await coordinator.initNamespace("main", { firstRun: 10 });
    way = await open(coordinator);
    return { source: way.source, coordinator };
  }

  afterEach(() => way?.close());

  test("a lease source leases runs upwards, echoes the nonce, and never repeats a response, not even for one nonce", async () => {
    const { source: leases } = await source();
    const first = await leases.lease("main", request);
    const evidence = { lastRun: 11, proof: first.proof };
    const second = await leases.lease("main", { ...request, ...evidence });
    expect(first).toMatchObject({ namespace: "main", version: 0, firstRun: 10, runCount: 2, nonce: request.nonce });
    expect(first.proof).toMatch(PROOF_PATTERN);
    expect(second.proof).not.toBe(first.proof);
    expect(second).toMatchObject({ firstRun: 12, nonce: request.nonce, storeId: first.storeId });
    const both = await Promise.all([leases.lease("main", request), leases.lease("main", request)]);
    expect(both.map(({ firstRun }) => firstRun).sort()).toEqual([14, 16]);
  });

  test("a lease source rejects with the codes of the protocol", async () => {
    const { source: leases } = await source();
    await expect(leases.lease("other", request)).rejects.toMatchObject({ code: "namespace_not_found" });
    for (const proof of [null, "r".repeat(43)]) {
      const forged = { ...request, lastRun: 10, proof };
      await expect(leases.lease("main", forged)).rejects.toMatchObject({ code: "run_above_high_water_mark" });
    }
    const ahead = { ...request, sentAtMs: Date.now() + 60_000 };
    await expect(leases.lease("main", ahead)).rejects.toMatchObject({ code: "clock_skew" });
    const report = { nonce: request.nonce, lastSequence: 3, state: "open" } as const;
    await expect(leases.report("main", 10, report)).rejects.toMatchObject({ code: "run_not_leased" });
  });

  test("a lease source serves a client, from the first number to the report at the end", async () => {
    const { source: leases, coordinator } = await source();
    const client = createClient({ source: leases, holder: { name: "test" } });
    expect(decodeCallNumber(await client.next())).toEqual({ version: 0, run: 10, sequence: 0 });
    await client.take(20_000);
    await client.close();
    expect(await coordinator.inspect("main", "00000000")).toMatchObject({
      verdict: "never_leased",
      reason: "below_first_run",
    });
    const { leases: ledger } = await coordinator.runs("main", { limit: 10 });
    const [newest, oldest] = [ledger[0], ledger.at(-1)];
    expect(oldest).toMatchObject({ firstRun: 10, progress: { run: 10, lastSequence: 16_383, state: "exhausted" } });
    expect(newest?.progress?.state).toBe("closed");
  });
});
