/**
 * What an inspection reports of a call number in addition to its verdict: what a mistyped one may have been meant for, the other leases of
 * its process, and whether a message can have it.
 */
import { randomUUID } from "node:crypto";
import type { Holder, Lease } from "@callnumber/protocol/api";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { beforeEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { CoordinatorError } from "../src/errors.js";
import { canExist as canExistBy } from "../src/inspect/verdicts.js";
import { findLease } from "../src/ledger/read-ledger.js";
import { MemoryStore } from "../src/stores/memory.js";
import { NAMESPACE } from "./commands-for-test.js";
import { inHand } from "./store-in-hand.js";

const importer: Holder = { name: "importer", host: "mail-1", pid: 1, labels: {} };
const other: Holder = { ...importer, pid: 2 };
const number = (run: number, sequence: number, version = 0) => encodeCallNumber({ version, run, sequence });
/** Of run 99. */
const NUMBER = "2VznWE2i";

let store: MemoryStore;
let coordinator: Coordinator;

beforeEach(async () => {
  store = new MemoryStore();
  coordinator = new Coordinator({ store, name: "test" });
  await coordinator.initNamespace(NAMESPACE, { firstRun: 90 });
});

async function lease(holder = importer, runCount = 1): Promise<Lease> {
  const request = { runCount, nonce: randomUUID(), holder, lastRun: null, proof: null, sentAtMs: Date.now() };
  return coordinator.lease(NAMESPACE, request);
}

/** A recovery, which skips runs. */
async function recover(): Promise<void> {
  await inHand(store, await store.readNamespace(NAMESPACE)).skipAhead();
}

describe("hints", () => {
  const hint = { callNumber: NUMBER, holder: "importer", verdict: "unreported" };

  test.each<[text: string, answer: object]>([
    ["2VznWE2!", { verdict: "malformed", hints: [] }],
    [
      `'${NUMBER}'`,
      {
        verdict: "malformed",
        problem: "wrong_length",
        callNumber: `'${NUMBER}'`,
        hints: [{ ...hint, slip: "surrounding", positions: [] }],
      },
    ],
    ["2VznWE2l", { verdict: "never_leased", hints: [{ ...hint, slip: "look_alike", positions: [7] }] }],
    // Run 90, and with one letter in another case version 2.
    ["2uw15hoH", { verdict: "other_version", hints: [{ callNumber: "2Uw15hoH", slip: "case", positions: [1] }] }],
  ])("hints of %j name the leased number, its holder and its verdict", async (text, answer) => {
    await lease(importer, 20);
    expect(await coordinator.inspect(NAMESPACE, text)).toMatchObject(answer);
    expect(await coordinator.inspect(NAMESPACE, text, { withHints: false })).toMatchObject({ hints: [] });
  });

  test("hints name no run that is not leased: below the first run, above the mark, or skipped", async () => {
    const hintsFor = async (of = coordinator) => await of.inspect(NAMESPACE, "2VznWE2l");
    await lease(importer, 9);
    expect(await hintsFor()).toMatchObject({ hints: [] });
    await lease(importer, 1);
    expect(await hintsFor()).toMatchObject({ hints: [{ callNumber: NUMBER }] });
    store = new MemoryStore();
    const skipping = new Coordinator({ store, name: "test" });
    await skipping.initNamespace(NAMESPACE);
    await recover();
    expect((await store.readNamespace(NAMESPACE)).highWaterMark).toBeGreaterThan(99);
    expect(await hintsFor(skipping)).toMatchObject({ hints: [] });
  });
});

describe("neighbors", () => {
  const neighborsOf = async (run: number) => {
    const answer = await coordinator.inspect(NAMESPACE, number(run, 0), { withNeighbors: true });
    if (!("neighbors" in answer) || answer.neighbors === null) expect.fail("the run is leased");
    return answer.neighbors;
  };

  test("neighbors are the nearest leases of the same process, whatever was leased in between", async () => {
    for (const holder of [importer, other, importer, other, importer]) await lease(holder, 2);
    expect(await neighborsOf(95)).toMatchObject({
      previous: { firstRun: 90, runCount: 2, holder: importer },
      next: { firstRun: 98, runCount: 2, holder: importer },
      explanation: "the same process got runs 90-91 before it, and runs 98-99 after it",
    });
    expect(await neighborsOf(90)).toMatchObject({
      previous: null,
      next: { firstRun: 94 },
      explanation: "the same process got nothing before it, and runs 94-95 after it",
    });
    expect(await neighborsOf(98)).toMatchObject({ previous: { firstRun: 94 }, next: null });
    expect(await coordinator.inspect(NAMESPACE, number(90, 0))).toMatchObject({ neighbors: null });
  });

  test("neighbors are not leases of another host or another name", async () => {
    for (const holder of [{ ...importer, host: "mail-2" }, importer, { ...importer, name: "other" }])
      await lease(holder);
    expect(await neighborsOf(91)).toMatchObject({ previous: null, next: null });
  });

  test("neighbors are searched among a thousand leases on each side, and the explanation says when there are more", async () => {
    for (const count of [1_000, 999]) {
      await lease(importer);
      for (let more = 0; more < count; more++) await lease(other);
    }
    await lease(importer);
    const { previous, next, explanation } = await neighborsOf(1_091);
    expect(previous).toBeNull();
    expect(next).toMatchObject({ firstRun: 2_091 });
    expect(explanation).toMatch(/^the same process got none of the 1,000 leases before it .*, and run 2091 after it$/);
  });
});

describe("a call number can exist", () => {
  const canExist = (text: string) => coordinator.canExist(NAMESPACE, text);

  test("a call number can exist unless its sequence is above a closed run's last one, or its run was not leased", async () => {
    const { nonce } = await lease(importer, 3);
    expect(await canExist("2VznWE2!")).toBe(false);
    expect(await canExist(number(90, 0, 1))).toBe(false);
    expect(await canExist(number(93, 0))).toBe(false);
    expect(await canExist(number(90, 16_383))).toBe(true);
    await coordinator.report(NAMESPACE, 91, { nonce, lastSequence: 5, state: "open" });
    expect(await canExist(number(91, 6))).toBe(true);
    await coordinator.report(NAMESPACE, 91, { nonce, lastSequence: 5, state: "closed" });
    expect(await canExist(number(90, 16_383))).toBe(true);
    expect(await canExist(number(91, 5))).toBe(true);
    expect(await canExist(number(91, 6))).toBe(false);
    expect(await canExist(number(92, 0))).toBe(false);
  });

  test("a call number can exist below the first run, and in a skipped run, whose lease the store may have lost", async () => {
    await recover();
    for (const run of [89, 90]) {
      const answer = await coordinator.inspect(NAMESPACE, number(run, 0));
      expect(answer).toMatchObject({ verdict: run === 89 ? "never_leased" : "unknown" });
      expect(canExistBy(answer)).toBe(true);
      expect(await canExist(number(run, 0))).toBe(true);
    }
  });

  test("a call number can exist above the mark while the store may have rolled back, also in a later version", async () => {
    await lease(importer, 3);
    expect(await canExist(number(93, 0))).toBe(false);
    store.apply = async () => {
      const why = { reason: "epoch_changed", generation: 0 } as const;
      throw new CoordinatorError("store_recovering", "the store was restarted", why);
    };
    await expect(lease()).rejects.toMatchObject({ reason: "epoch_changed" });
    expect(await canExist(number(93, 0))).toBe(true);
    expect(await canExist(number(93, 0, 1))).toBe(true);
    expect(await canExist("nonsense!")).toBe(false);
  });

  test("a call number can be inspected in a version that only a lease shows, because the record has forgotten it", async () => {
    const { nonce } = await lease(importer, 3);
    const found = (await findLease(store, NAMESPACE, 90)) as LedgerEntry;
    store.leases = async () => [{ ...found, version: 1, firstRun: 5 }];
    const leased = { verdict: "unreported", lease: { nonce } };
    expect(await coordinator.inspect(NAMESPACE, number(5, 0, 1))).toMatchObject(leased);
    store.leases = async () => [];
    expect(await coordinator.inspect(NAMESPACE, number(5, 0, 1))).toMatchObject({ verdict: "other_version" });
    expect(await canExist(number(5, 0, 1))).toBe(false);
  });

  test("a call number can exist up to the run in the checkpoint, when the store's mark is below it", async () => {
    await lease(importer, 3);
    const before = store.readNamespace.bind(store);
    store.readNamespace = async (namespace) => ({ ...(await before(namespace)), highWaterMark: 90 });
    store.leases = async () => [];
    expect(await canExist(number(92, 0))).toBe(true);
    expect(await canExist(number(93, 0))).toBe(false);
  });
});
