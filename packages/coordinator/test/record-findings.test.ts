/** What `doctor` finds in the records of a store: all that only an operator ends, and nothing that the next coordinator recovers by itself. */
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { NO_CHECKPOINT_FILE } from "../src/guard/checkpoint.js";
import { checksumOf, type StoredFields } from "../src/guard/record.js";
import { newStoreId } from "../src/guard/store-id.js";
import { recordFindings } from "../src/operator/record-findings.js";
import { NAMESPACE, SHORT_BOUNDS } from "./commands-for-test.js";
import { newWorld, type World } from "./guard-in-hand.js";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

function rest({ clock }: World, restMs: number): void {
  clock.timeMs += restMs;
}

function edit({ store }: World, own: Partial<StoredFields>): void {
  const fields = { ...(store.backup().get(NAMESPACE) as StoredFields), ...own };
  store.restore(new Map([[NAMESPACE, { ...fields, k: checksumOf(fields) }]]));
}

async function findingsIn({ clock, store }: World, { ledgerId = 0, aheadMs = 0, recoveredMin = 0 } = {}) {
  const { storeId } = await store.readNamespace(NAMESPACE);
  const checkpoint = { storeId, ledgerId, generation: 0, nodeCount: 1 };
  const noted = { read: () => checkpoint, readable: () => checkpoint, recoveredMin: () => recoveredMin };
  const checkpointFileOf = () => ({ ...NO_CHECKPOINT_FILE, ...noted });
  const now = () => clock.timeMs + aheadMs;
  return await recordFindings(store, { checkpointFileOf, namespaces: () => new Set() }, { now, bounds: SHORT_BOUNDS });
}

test.each<[string, (world: World) => unknown]>([
  ["leases", () => {}],
  ["rested for ten minutes", (world) => rest(world, 10 * MINUTE_MS)],
  ["was restarted", ({ store }) => Object.assign(store.server, { epoch: "second:life:0" })],
  ["was recovered, and has its mark a little above the ceiling", (world) => edit(world, { c: "65600" })],
])("a store that %s has no finding", async (_, change) => {
  const world = await newWorld();
  change(world);
  expect(await findingsIn(world)).toEqual([]);
});

test("a store that lost runs has no finding: the next coordinator recovers it", async () => {
  expect(await findingsIn(await newWorld(), { ledgerId: 7 })).toEqual([]);
});

test("the remedy of a record is what its refusal says where that names no command", async () => {
  const world = await newWorld();
  edit(world, { v: "3" });
  const checkpoints = { checkpointFileOf: () => NO_CHECKPOINT_FILE, namespaces: () => new Set<string>() };
  expect(await recordFindings(world.store, checkpoints)).toMatchObject([
    { code: "store_schema_unsupported", remedy: "Use the release that wrote it" },
  ]);
});

const LAST_RUNS = RUN_MAX - 100;

test.each<[string, number, (world: World) => unknown, object]>([
  [
    "rested for 31 days",
    1,
    (world) => rest(world, 31 * DAY_MS),
    {
      code: "manual_recovery_required",
      what: expect.stringMatching(/^namespace main: the store had no heartbeat for more than 30 days/),
      remedy: "`callnumber recover --store STORE_URL --namespace main --confirm-clock`",
    },
  ],
  [
    "has its mark far above the ceiling",
    1,
    (world) => edit(world, { c: "900000000" }),
    {
      code: "manual_recovery_required",
      what: expect.stringMatching(/^namespace main: the mark .* Nothing is leased before 20/),
    },
  ],
  [
    "has its mark far above the ceiling, and was restarted",
    1,
    (world) => {
      edit(world, { c: "900000000" });
      Object.assign(world.store.server, { epoch: "second:life:0" });
    },
    { code: "manual_recovery_required" },
  ],
  [
    "has leased all runs",
    LAST_RUNS,
    (world) => edit(world, { c: String(RUN_MAX) }),
    {
      code: "run_space_exhausted",
      remedy: "`callnumber advance-version --store STORE_URL --namespace main`",
    },
  ],
  [
    "can't be recovered, since its ceiling is at its end",
    LAST_RUNS,
    (world) => rest(world, 10 * MINUTE_MS),
    { code: "run_space_exhausted", remedy: expect.stringContaining("callnumber advance-version") },
  ],
  [
    "has leased all runs of the last version",
    1,
    (world) => {
      const [initializedAtMs, firstRun] = [world.clock.timeMs, LAST_RUNS];
      const sid = newStoreId({ firstVersion: VERSION_MAX, firstRun, initializedAtMs, rate: 16 });
      edit(world, { sid, ver: String(VERSION_MAX), c: String(RUN_MAX) });
    },
    { code: "run_space_exhausted", remedy: "use another namespace" },
  ],
  ["began a recovery", 1, (world) => edit(world, { p: "1" }), { code: "store_recovering" }],
  [
    "has its last write in the future",
    1,
    (world) => rest(world, -10 * MINUTE_MS),
    { code: "clock_moved_backward", remedy: "set the clocks right" },
  ],
])("a store that %s has a finding with its remedy", async (_, firstRun, change, finding) => {
  const world = await newWorld({ firstRun });
  change(world);
  const before = world.store.backup();
  expect(await findingsIn(world)).toMatchObject([finding]);
  expect(world.store.backup()).toEqual(before);
});

test("another node that only the checkpoint directory has is found", async () => {
  expect(await findingsIn(await newWorld(), { recoveredMin: 1 })).toMatchObject([
    { code: "manual_recovery_required", remedy: "`callnumber recover --store STORE_URL --namespace main`" },
  ]);
});

test("a clock an hour ahead of the store's is found", async () => {
  expect(await findingsIn(await newWorld(), { aheadMs: 60 * MINUTE_MS })).toMatchObject([
    { code: "clock_skew", remedy: "set the clocks right" },
  ]);
});
