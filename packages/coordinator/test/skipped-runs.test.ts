/**
 * What the ledger has of a recovery after a pause. Where nothing can have been lost, the skipped runs are an entry: their numbers do not
 * exist. Everywhere else they may.
 */
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { ledgerEntrySchema } from "@callnumber/protocol/schemas";
import { beforeEach, describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { openCheckpointFile } from "../src/guard/checkpoint-file.js";
import { DEFAULT_BOUNDS } from "../src/guard/clocks.js";
import { importLeases } from "../src/ledger/ledger-changes.js";
import { MemoryStore } from "../src/stores/memory.js";
import { SqliteStore } from "../src/stores/sqlite/store.js";
import { NAMESPACE } from "./commands-for-test.js";
import { leaseRequest, newPlace, type Place } from "./embedded-place.js";

const START_MS = Date.now();
const PAUSE_MS = DEFAULT_BOUNDS.gapMs + 60_000;
/** Of a number that a recovery after the pause skips. */
const SKIPPED = { version: 0, run: 1_000, sequence: 7 };

let place: Place;
beforeEach(async () => {
  place = await newPlace();
});

interface Life {
  readonly atMs: number;
  readonly create?: boolean;
  readonly hasCheckpoint?: boolean;
}

/** A coordinator of its own at an instant, whose clock stands still until `act` sets it. */
async function during<T>(
  { atMs, create = false, hasCheckpoint = true }: Life,
  act: (coordinator: Coordinator, setClock: (nowMs: number) => void) => Promise<T>,
): Promise<T> {
  let nowMs = atMs;
  const now = () => nowMs;
  const store = new SqliteStore({ path: place.path, create, now, machine: place.machine });
  const checkpointFileOf = (namespace: string) =>
    openCheckpointFile({ folder: place.markerFolder, place: { group: "sqlite", addresses: [place.path] }, namespace });
  const coordinator = new Coordinator({
    store,
    name: "test",
    now,
    bounds: DEFAULT_BOUNDS,
    ...(hasCheckpoint ? { checkpointFileOf } : {}),
  });
  try {
    return await act(coordinator, (setMs) => {
      nowMs = setMs;
    });
  } finally {
    await coordinator.stopHeartbeat();
    await store.close();
  }
}

async function leaseAt(coordinator: Coordinator, atMs: number): Promise<number> {
  return (await coordinator.lease(NAMESPACE, { ...leaseRequest(), sentAtMs: atMs })).firstRun;
}

/** Makes the namespace and leases run 1. */
async function firstLife(): Promise<void> {
  await during({ atMs: START_MS, create: true }, async (coordinator) => {
    await coordinator.initNamespace(NAMESPACE);
    expect(await leaseAt(coordinator, START_MS)).toBe(1);
  });
}

/** Recovers after the pause, and leases again as soon as the run ceiling allows. */
async function afterPause<T>(life: Partial<Life>, act: (coordinator: Coordinator) => Promise<T>): Promise<T> {
  const atMs = START_MS + PAUSE_MS;
  return await during({ atMs, ...life }, async (coordinator, setClock) => {
    await expect(leaseAt(coordinator, atMs)).rejects.toMatchObject({ code: "run_ceiling_reached" });
    setClock(atMs + 10_000);
    expect(await leaseAt(coordinator, atMs + 10_000)).toBeGreaterThan(SKIPPED.run);
    return await act(coordinator);
  });
}

const inspect = (coordinator: Coordinator) => coordinator.inspect(NAMESPACE, encodeCallNumber(SKIPPED));

describe("a recovery after a pause, of a store that has what the checkpoint has", () => {
  beforeEach(firstLife);

  test("the skipped runs are one entry of the ledger, between the leases", async () => {
    await afterPause({}, async (coordinator) => {
      const { leases } = await coordinator.runs(NAMESPACE, { limit: 10 });
      expect(leases.map(({ progress }) => progress?.state)).toEqual([undefined, "skipped", undefined]);
      const [newest, skip, first] = leases.map((entry) => ledgerEntrySchema.parse(entry));
      expect(first).toMatchObject({ firstRun: 1, runCount: 1 });
      expect(skip).toMatchObject({ firstRun: 2, coordinator: "test", holder: { name: "recovery" } });
      expect(newest).toMatchObject({ firstRun: 2 + (skip?.runCount ?? 0) });
    });
  });

  test("a skipped number is known not to exist", async () => {
    await afterPause({}, async (coordinator) => {
      expect(await inspect(coordinator)).toMatchObject({
        verdict: "never_leased",
        reason: "skipped",
        explanation: expect.stringMatching(/^run 1000 was skipped by a recovery at .*: this number does not exist$/),
      });
      expect(await coordinator.canExist(NAMESPACE, encodeCallNumber(SKIPPED))).toBe(false);
      expect(await coordinator.canExist(NAMESPACE, encodeCallNumber({ ...SKIPPED, run: 1 }))).toBe(true);
      expect(await coordinator.run(NAMESPACE, SKIPPED.run)).toMatchObject({ state: "skipped", lastSequence: null });
    });
  });

  test("an entry is found by a run within it, and by its state", async () => {
    await afterPause({}, async (coordinator) => {
      for (const filter of [{ fromRun: SKIPPED.run, toRun: SKIPPED.run }, { state: "skipped" } as const]) {
        const { leases } = await coordinator.runs(NAMESPACE, { ...filter, limit: 10 });
        expect(leases.map(({ firstRun }) => firstRun)).toEqual([2]);
      }
    });
  });

  test("skipped runs are no use of the namespace, and no lease", async () => {
    await afterPause({}, async (coordinator) => {
      const { rates, lastLeaseAtMs } = await coordinator.status(NAMESPACE);
      expect(rates[0]).toMatchObject({ runs: 2 });
      expect(lastLeaseAtMs).toBe(START_MS + PAUSE_MS + 10_000);
      expect((await coordinator.capacity.capacity(NAMESPACE)).holders).toHaveLength(1);
    });
  });

  test("the last lease is found below entries of recoveries", async () => {
    for (const pauses of [1, 2]) {
      const atMs = START_MS + pauses * PAUSE_MS;
      await during({ atMs }, async (coordinator) => {
        coordinator.startHeartbeat();
        await expect.poll(async () => (await coordinator.status(NAMESPACE)).guard.lastRecovery).not.toBeNull();
        expect((await coordinator.status(NAMESPACE)).lastLeaseAtMs).toBe(START_MS);
      });
    }
  });

  test("an entry is copied with the ledger", async () => {
    const leases = await afterPause(
      {},
      async (coordinator) => (await coordinator.runs(NAMESPACE, { limit: 10 })).leases,
    );
    const copy = new MemoryStore();
    await importLeases(copy, NAMESPACE, leases.toReversed());
    expect(await copy.leases(NAMESPACE, { direction: "newest_first", limit: 10 })).toEqual(leases);
  });
});

describe("a recovery that may have lost something", () => {
  beforeEach(firstLife);

  async function expectUnknown(coordinator: Coordinator): Promise<void> {
    expect(await inspect(coordinator)).toMatchObject({ verdict: "unknown" });
    expect(await coordinator.canExist(NAMESPACE, encodeCallNumber(SKIPPED))).toBe(true);
  }

  test("a skipped number may exist without a checkpoint", async () => {
    await afterPause({ hasCheckpoint: false }, expectUnknown);
  });

  test("a skipped number may exist where the checkpoint has a later run", async () => {
    const checkpoint = openCheckpointFile({
      folder: place.markerFolder,
      place: { group: "sqlite", addresses: [place.path] },
      namespace: NAMESPACE,
    });
    const known = checkpoint.read();
    if (known === undefined || known === "corrupt") throw new Error("broken invariant: there is a checkpoint");
    checkpoint.note({ ...known, ledgerId: known.ledgerId + 1 });
    await afterPause({}, expectUnknown);
  });

  test("a skipped number may exist where the restart marker is another one", async () => {
    place = { ...place, machine: { markerFolders: [] } };
    await afterPause({}, expectUnknown);
  });
});
