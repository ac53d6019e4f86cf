/**
 * What a coordinator says of a text beyond the five answers: what it may have been meant for, what else its process got, and
 * whether a message can have it at all.
 */
import { randomUUID } from "node:crypto";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import type { Holder, Lease } from "@callnumber/protocol/wire";
import { beforeEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { CoordinatorError } from "../src/errors.js";
import { canExist as isPossible } from "../src/inspect/verdicts.js";
import { findLease } from "../src/ledger/read-ledger.js";
import { MemoryStore } from "../src/stores/memory.js";
import { type Store } from "../src/stores/store.js";
import { commandsFor, NAMESPACE } from "./commands-for-test.js";

const importer: Holder = { name: "importer", host: "mail-1", pid: 1, labels: {} };
const other: Holder = { ...importer, pid: 2 };

let store: Store;
let coordinator: Coordinator;

beforeEach(async () => {
  store = new MemoryStore();
  coordinator = new Coordinator({ store, name: "test" });
  await coordinator.initNamespace(NAMESPACE, { firstRun: 90 });
});

async function lease(holder = importer, runCount = 1): Promise<Lease> {
  const request = { runCount, nonce: randomUUID(), holder, lastRun: null, receipt: null, sentAtMs: Date.now() };
  return coordinator.lease(NAMESPACE, request);
}

const number = (run: number, sequence: number, version = 0) => encodeCallNumber({ version, run, sequence });

describe("hints", () => {
  test("name a leased number, what it takes to get there, its holder and what is known of it; the verdict stays", async () => {
    await lease(importer, 20);
    expect(await coordinator.inspect(NAMESPACE, "2VznWE2!")).toMatchObject({ verdict: "malformed", hints: [] });
    expect(await coordinator.inspect(NAMESPACE, "'2VznWE2i'")).toMatchObject({
      verdict: "malformed",
      problem: "wrong_length",
      callNumber: "'2VznWE2i'",
      hints: [
        { callNumber: "2VznWE2i", slip: "surrounding", positions: [], holder: "importer", verdict: "unreported" },
      ],
    });
    expect(await coordinator.inspect(NAMESPACE, "2VznWE2l")).toMatchObject({
      verdict: "never_leased",
      hints: [{ callNumber: "2VznWE2i", slip: "look_alike", positions: [7] }],
    });
    const neverLeased = await coordinator.inspect(NAMESPACE, "2vznWE2i");
    expect(["never_leased", "other_version"]).toContain(neverLeased.verdict);
    expect(neverLeased).toMatchObject({ hints: [{ callNumber: "2VznWE2i", slip: "case", positions: [1] }] });
  });

  test("stand also beside a number of another version", async () => {
    await lease(importer, 64);
    const leased = Array.from({ length: 64 }, (_, offset) => number(90 + offset, 7));
    const typed = leased.flatMap((callNumber) =>
      [...callNumber].map((letter, at) => {
        const slipped = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
        return { callNumber, at, text: callNumber.slice(0, at) + slipped + callNumber.slice(at + 1) };
      }),
    );
    const verdicts = new Set<string>();
    for (const { callNumber, at, text } of typed) {
      if (text === callNumber) continue;
      const answer = await coordinator.inspect(NAMESPACE, text);
      verdicts.add(answer.verdict);
      if ("hints" in answer) {
        expect(answer.hints).toContainEqual(expect.objectContaining({ callNumber, slip: "case", positions: [at] }));
      }
    }
    expect(verdicts).toContain("other_version");
  });

  test("are never runs that are not leased: not below the first run, not above the mark, not passed over", async () => {
    // Run 99 is the one that the text may have been meant for.
    const hintsFor = async () => {
      const answer = await coordinator.inspect(NAMESPACE, "2VznWE2l");
      return "hints" in answer ? answer.hints : expect.fail("it is malformed");
    };
    await lease(importer, 9);
    expect(await hintsFor()).toEqual([]);
    await lease(importer, 1);
    expect(await hintsFor()).toHaveLength(1);
    const skipping = new MemoryStore();
    await new Coordinator({ store: skipping, name: "test" }).initNamespace(NAMESPACE);
    const { storeId } = await skipping.readNamespace(NAMESPACE);
    const { claim, confirm } = commandsFor(storeId);
    const { after } = await skipping.step(NAMESPACE, claim(0));
    await skipping.step(NAMESPACE, confirm(after.generation));
    expect((await skipping.readNamespace(NAMESPACE)).highWaterMark).toBeGreaterThan(99);
    expect(await new Coordinator({ store: skipping, name: "test" }).inspect(NAMESPACE, "2VznWE2l")).toMatchObject({
      hints: [],
    });
  });

  test("are left out when nobody asked for them", async () => {
    await lease(importer, 20);
    expect(await coordinator.inspect(NAMESPACE, "'2VznWE2i'", { withHints: false })).toMatchObject({ hints: [] });
  });
});

describe("neighbors", () => {
  const neighborsOf = async (run: number) => {
    const answer = await coordinator.inspect(NAMESPACE, number(run, 0), { withNeighbors: true });
    if (!("neighbors" in answer) || answer.neighbors === null) expect.fail("the run is leased");
    return answer.neighbors;
  };

  test("are the nearest leases of the same process, whoever leased in between", async () => {
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
  });

  test("of another host or another name are none of its", async () => {
    for (const holder of [{ ...importer, host: "mail-2" }, importer, { ...importer, name: "other" }])
      await lease(holder);
    expect(await neighborsOf(91)).toMatchObject({ previous: null, next: null });
  });

  test("are looked for among a thousand leases on each side, and the words say when that was not all", async () => {
    await lease(importer);
    for (let count = 0; count < 1_000; count++) await lease(other);
    await lease(importer);
    for (let count = 0; count < 999; count++) await lease(other);
    await lease(importer);
    const { previous, next, explanation } = await neighborsOf(1_091);
    expect(previous).toBeNull();
    expect(next).toMatchObject({ firstRun: 2_091 });
    expect(explanation).toMatch(/^the same process got none of the 1,000 leases before it .*, and run 2091 after it$/);
  });

  test("are left out when nobody asked for them", async () => {
    await lease();
    expect(await coordinator.inspect(NAMESPACE, number(90, 0))).toMatchObject({
      neighbors: null,
    });
  });
});

describe("whether a number can exist", () => {
  const canExist = (text: string) => coordinator.canExist(NAMESPACE, text);

  test("is denied only when no message can have it", async () => {
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

  test("is not denied below the first run: an older system may have made it", async () => {
    expect(await canExist(number(89, 0))).toBe(true);
    expect(isPossible(await coordinator.inspect(NAMESPACE, number(89, 0)))).toBe(true);
  });

  test("is not denied for a run that was passed over: its lease may be what the store has forgotten", async () => {
    const { highWaterMark } = await store.readNamespace(NAMESPACE);
    const { storeId } = await store.readNamespace(NAMESPACE);
    const { claim, confirm } = commandsFor(storeId);
    const { after } = await store.step(NAMESPACE, claim(0));
    await store.step(NAMESPACE, confirm(after.generation));
    const skipped = await coordinator.inspect(NAMESPACE, number(highWaterMark + 1, 0));
    expect(skipped).toMatchObject({ reason: "skipped" });
    expect(isPossible(skipped)).toBe(true);
    expect(await canExist(number(highWaterMark + 1, 0))).toBe(true);
  });

  test("is not denied above the mark while the store is in doubt", async () => {
    await lease(importer, 3);
    expect(await canExist(number(93, 0))).toBe(false);
    store.step = async () => {
      throw new CoordinatorError("store_recovering", "the store was restarted", {
        reason: "epoch_changed",
        generation: 0,
      });
    };
    await expect(lease()).rejects.toMatchObject({ reason: "epoch_changed" });
    expect(await canExist(number(93, 0))).toBe(true);
    // It may have forgotten that its version advanced, too.
    expect(await canExist(number(93, 0, 1))).toBe(true);
    expect(await canExist("nonsense!")).toBe(false);
  });

  test("is told by its lease where the record has forgotten that the version advanced", async () => {
    const { nonce } = await lease(importer, 3);
    const found = await findLease(store, NAMESPACE, 90);
    const answersWith = (lease: typeof found) => {
      store.leases = async () => (lease === undefined ? [] : [lease]);
    };
    answersWith(found && { ...found, version: 1, firstRun: 5 });
    expect(await coordinator.inspect(NAMESPACE, number(5, 0, 1))).toMatchObject({
      verdict: "unreported",
      lease: { nonce },
    });
    answersWith(undefined);
    expect(await coordinator.inspect(NAMESPACE, number(5, 0, 1))).toMatchObject({ verdict: "other_version" });
    expect(await canExist(number(5, 0, 1))).toBe(false);
  });

  test("is not denied by a store that went back behind what this coordinator remembers", async () => {
    await lease(importer, 3);
    const before = store.readNamespace.bind(store);
    store.readNamespace = async (namespace) => ({ ...(await before(namespace)), highWaterMark: 90 });
    store.leases = async () => [];
    expect(await canExist(number(92, 0))).toBe(true);
    expect(await canExist(number(93, 0))).toBe(false);
  });
});
