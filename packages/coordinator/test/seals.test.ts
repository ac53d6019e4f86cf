/** The seal of a store that was moved: it names the new place, is permanent, and may be set again for the quorum. */
import { afterEach, describe, expect, test } from "vitest";
import { FORKED_SEAL } from "../src/guard/record.js";
import {
  isMovedSeal,
  MOVED_SEAL,
  MOVED_TEXT_LENGTH_MAX,
  movedSeal,
  movedToIn,
  nextStoreId,
  textOfMove,
} from "../src/guard/store-id.js";
import { NAMESPACE } from "./commands-for-test.js";
import { claim, init, lease, recentStoreId, recover, seal } from "./steps-for-move.js";
import { HAS_REDIS, openRedis, STORES } from "./stores-for-test.js";

const PLACE = "redis://10.0.0.7:6379/0?prefix=mail:";
const MOVED_ID = nextStoreId(recentStoreId(), 1, Date.now());
const PLACE_LENGTH_MAX = MOVED_TEXT_LENGTH_MAX - MOVED_ID.length - 1;

function sealOf(place: string): string {
  return movedSeal({ storeId: MOVED_ID, place });
}

describe.each(STORES)("the seal of a moved store, in the %s store", (_, open) => {
  const toRemove: (() => Promise<void>)[] = [];

  async function sealed() {
    const { store, reopen, remove } = await open();
    toRemove.push(remove);
    const storeId = recentStoreId();
    await init(store, storeId);
    await lease(store, storeId);
    await seal(store, storeId, sealOf(PLACE));
    return { store, storeId, reopen };
  }

  afterEach(async () => {
    for (const remove of toRemove.splice(0)) await remove();
  });

  test("the seal of a moved store names the place and the new store id in each rejected lease, and in the record", async () => {
    const { store, storeId } = await sealed();
    await expect(lease(store, storeId)).rejects.toMatchObject({
      code: "namespace_moved",
      message: expect.stringContaining(`was moved to ${PLACE} as store ${MOVED_ID};`),
    });
    const { seal: kept } = await store.readNamespace(NAMESPACE);
    expect(movedToIn(textOfMove(kept))).toEqual({ storeId: MOVED_ID, place: PLACE });
  });

  test("the seal of a moved store holds a place of 400 characters and more", async () => {
    const { store, remove } = await open();
    toRemove.push(remove);
    const [storeId, text] = [recentStoreId(), sealOf("~".repeat(PLACE_LENGTH_MAX))];
    await init(store, storeId);
    await seal(store, storeId, text);
    await seal(store, storeId, text);
    expect(await store.readNamespace(NAMESPACE)).toMatchObject({ phase: 2, seal: text });
  });

  test("the seal of a moved store is removed by neither a recovery nor a claim", async () => {
    const { store, storeId } = await sealed();
    await expect(recover(store, storeId)).rejects.toMatchObject({ code: "namespace_moved" });
    await expect(claim(store, storeId)).rejects.toMatchObject({ code: "namespace_moved" });
    expect(await store.readNamespace(NAMESPACE)).toMatchObject({ phase: 2, highWaterMark: 1 });
  });

  test("the seal of a moved store may be set again, also in another epoch; the mark and the generation stay", async () => {
    const { store, storeId, reopen } = await sealed();
    const before = await store.readNamespace(NAMESPACE);
    const again = store.kind === "memory" ? store : await reopen();
    const { after } = await seal(again, storeId, sealOf(PLACE));
    const { changedAtMs } = after;
    expect(await again.readNamespace(NAMESPACE)).toEqual({ ...before, changedAtMs });
  });

  test("the seal of a moved store is not set again for another place, or by another store", async () => {
    const { store, storeId } = await sealed();
    const before = await store.readNamespace(NAMESPACE);
    for (const other of [sealOf("redis://10.0.0.8:6379/0"), MOVED_SEAL, FORKED_SEAL]) {
      await expect(seal(store, storeId, other)).rejects.toMatchObject({
        code: "namespace_moved",
        message: expect.stringContaining(PLACE),
      });
    }
    await expect(seal(store, recentStoreId(), sealOf(PLACE))).rejects.toMatchObject({ code: "store_id_mismatch" });
    expect(await store.readNamespace(NAMESPACE)).toEqual(before);
  });
});

test("a moved seal holds a store id and one printable place", () => {
  for (const place of ["x", "sqlite:/var/lib/a%20b@c.db", "~".repeat(PLACE_LENGTH_MAX)]) {
    expect(isMovedSeal(sealOf(place))).toBe(true);
    expect(movedToIn(textOfMove(sealOf(place)))).toEqual({ storeId: MOVED_ID, place });
  }
  for (const place of ["a b", "a\n", "é", "~".repeat(PLACE_LENGTH_MAX + 1)]) {
    expect(isMovedSeal(sealOf(place))).toBe(false);
  }
  expect([isMovedSeal("moved"), textOfMove("moved"), isMovedSeal("forked"), isMovedSeal("movedx")]).toEqual([
    true,
    "",
    false,
    false,
  ]);
  expect([movedToIn(""), movedToIn("redis://10.0.0.7:6379/0"), movedToIn("x@y")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test.runIf(HAS_REDIS)(
  "the script takes no place that is longer, or that no reader of the record would take",
  async () => {
    const { store, remove } = await openRedis();
    try {
      const storeId = recentStoreId();
      await init(store, storeId);
      for (const place of ["~".repeat(PLACE_LENGTH_MAX + 1), "a b", "é"]) {
        await expect(seal(store, storeId, sealOf(place))).rejects.toMatchObject({ code: "internal_error" });
      }
      expect(await store.readNamespace(NAMESPACE)).toMatchObject({ phase: 0 });
    } finally {
      await remove();
    }
  },
);
