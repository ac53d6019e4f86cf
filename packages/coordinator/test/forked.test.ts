/**
 * Two copies of a store: detected when a holder proves a run that this one never leased, and only then.
 * Guarantees: G7 (docs/guarantees.md).
 */
import { expect, test } from "vitest";
import { ProofKey } from "../src/guard/lease-proof.js";
import type { Log } from "../src/log.js";
import { commandsFor, NAMESPACE, PROOF_KEY } from "./commands-for-test.js";
import { guardOn, lastRunOf, leaseAfterSkip, leaseOf, newWorld, type World } from "./guard-in-hand.js";
import { SettableStore } from "./settable-store.js";
import { stepOn } from "./steps-for-test.js";

/** A store, a copy of it that lives on its own, and a holder of run 10 of the first; the copy has leased up to 5. */
async function twoCopies() {
  const world = await newWorld();
  const guard = await guardOn(world);
  await leaseOf(guard, { runCount: 5 });
  const copy: World = { ...world, store: new SettableStore(world.clock) };
  copy.store.restore(world.store.backup());
  const held = await leaseOf(guard, { runCount: 5 });
  return { world, guard, copy, held: { lastRun: lastRunOf(held), proof: held.proof } };
}

function listening(): { log: Log; logged: [string, object][] } {
  const logged: [string, object][] = [];
  const note = (fields: object, event: string) => void logged.push([event, fields]);
  return { logged, log: { debug: note, info: note, warn: note, error: note } };
}

test("a run above the mark with the proof of its lease stops the store: it leases nothing more", async () => {
  const { copy, held } = await twoCopies();
  const guard = await guardOn(copy);
  await expect(leaseOf(guard, held)).rejects.toMatchObject({
    code: "store_forked",
    message: expect.stringContaining("run 10"),
  });
  expect(guard.state).toMatchObject({ state: "stopped", code: "store_forked" });
  for (const request of [{}, held, { lastRun: 5 }]) {
    await expect(leaseOf(guard, request)).rejects.toMatchObject({ code: "store_forked" });
  }
  await expect(guard.heartbeat()).rejects.toMatchObject({ code: "store_forked" });
  expect(await copy.store.readNamespace(NAMESPACE)).toMatchObject({ highWaterMark: 5, phase: 2 });
});

test("a run above the mark with the proof of its lease stops every other coordinator, and every later one", async () => {
  const { copy, held } = await twoCopies();
  const [guard, other] = [await guardOn(copy), await guardOn(copy)];
  await expect(leaseOf(guard, held)).rejects.toMatchObject({ code: "store_forked" });
  await expect(leaseOf(other)).rejects.toMatchObject({ code: "store_forked" });
  await expect(leaseOf(await guardOn(copy))).rejects.toMatchObject({ code: "store_forked" });
});

test("a run above the mark with the proof of its lease stops this coordinator even when the seal can't be written", async () => {
  const { copy, held } = await twoCopies();
  const { log, logged } = listening();
  const guard = await guardOn(copy, { log });
  copy.store.before = ({ step }) => {
    if (step === "seal") throw new Error("no way to the store");
  };
  await expect(leaseOf(guard, held)).rejects.toMatchObject({ code: "store_forked" });
  expect(logged).toContainEqual(["seal_failed", { namespace: NAMESPACE, reason: "no way to the store" }]);
  await expect(leaseOf(guard)).rejects.toMatchObject({ code: "store_forked" });
  const before = await copy.store.readNamespace(NAMESPACE);
  copy.clock.timeMs += 1_000;
  await expect(guard.heartbeat()).rejects.toMatchObject({ code: "store_forked" });
  expect(guard.state).toMatchObject({ state: "stopped", code: "store_forked" });
  expect(await copy.store.readNamespace(NAMESPACE)).toEqual({ ...before, phase: 0 });
});

test("a forked store leases again when an operator has recovered it, above the run ceiling", async () => {
  const { copy, held } = await twoCopies();
  const guard = await guardOn(copy);
  await expect(leaseOf(guard, held)).rejects.toMatchObject({ code: "store_forked" });
  const { after } = await stepOn(copy.store, NAMESPACE, commandsFor(copy.storeId).recover({ floor: held.lastRun }));
  const lease = await leaseAfterSkip(copy, guard, held);
  expect(lease.firstRun).toBeGreaterThan(after.highWaterMark);
  expect(guard.state).toMatchObject({ state: "active" });
});

test("a run above the mark without a proof is rejected as the holder's fault, is logged, and stops nothing", async () => {
  const { copy, held } = await twoCopies();
  const { log, logged } = listening();
  const guard = await guardOn(copy, { log });
  await expect(leaseOf(guard, { lastRun: held.lastRun })).rejects.toMatchObject({
    code: "run_above_high_water_mark",
  });
  expect(logged).toMatchObject([
    ["checkpoint_created", {}],
    ["run_above_high_water_mark", { mark: 5, lastRun: 10 }],
  ]);
  expect(guard.state).toMatchObject({ state: "active" });
  expect(copy.store.stepNames()).toEqual([]);
  expect((await leaseOf(guard)).firstRun).toBe(6);
});

test.each<[string, (of: { storeId: string; proof: string }) => string]>([
  ["made up", () => "r".repeat(43)],
  ["cut", ({ proof }) => proof.slice(1)],
  ["of another run", ({ storeId }) => new ProofKey(PROOF_KEY).proofOf(storeId, 5)],
  ["of another store", () => new ProofKey(PROOF_KEY).proofOf("another-store", 10)],
  ["by another key", ({ storeId }) => new ProofKey("ee".repeat(32)).proofOf(storeId, 10)],
])(
  "a run above the mark with a proof that is %s stops nothing: any client could stop every coordinator",
  async (_, forge) => {
    const { copy, held } = await twoCopies();
    const guard = await guardOn(copy);
    const proof = forge({ storeId: copy.storeId, proof: held.proof });
    await expect(leaseOf(guard, { lastRun: held.lastRun, proof })).rejects.toMatchObject({
      code: "run_above_high_water_mark",
    });
    expect(copy.store.stepNames()).toEqual([]);
    expect((await leaseOf(guard)).firstRun).toBe(6);
    expect((await copy.store.readNamespace(NAMESPACE)).phase).toBe(0);
  },
);

test("a run up to the mark needs no lease proof, and is no evidence", async () => {
  const { world, guard, held } = await twoCopies();
  for (const lastRun of [1, 5, 10]) await leaseOf(guard, { lastRun });
  await leaseOf(guard, held);
  await leaseOf(guard, { lastRun: 10, proof: "r".repeat(43) });
  expect((await world.store.readNamespace(NAMESPACE)).highWaterMark).toBe(15);
});

test("a run that another coordinator leased a moment ago is no evidence of a fork", async () => {
  const { world, held } = await twoCopies();
  const guard = await guardOn(world);
  const other = await guardOn(world);
  const later = await leaseOf(other);
  expect(later.firstRun).toBe(held.lastRun + 1);
  expect((await leaseOf(guard, { lastRun: later.firstRun })).firstRun).toBe(later.firstRun + 1);
});

test("each lease includes a proof that its own store verifies", async () => {
  const { world, guard } = await twoCopies();
  const lease = await leaseOf(guard, { runCount: 3 });
  expect(lease.proof).toBe(new ProofKey(PROOF_KEY).proofOf(world.storeId, lastRunOf(lease)));
  expect(lease.proof).toMatch(/^[A-Za-z0-9_-]{43}$/);
});
