/**
 * The moves that checkpoints have: those to a place, by any command that notes them, and those of a store, however old their file.
 * Guarantees: G8, G13 (docs/guarantees.md).
 */
import { readdirSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { CoordinatorError } from "../src/errors.js";
import { type Checkpoint, type CheckpointFile } from "../src/guard/checkpoint.js";
import { checkpointsAt, openCheckpointFile } from "../src/guard/checkpoint-file.js";
import { asMoveUnfinished, moveUnfinished, strayStore, whyMissing } from "../src/guard/guard-state.js";
import { nextStoreId } from "../src/guard/store-id.js";
import { NAMESPACE, storeIdFrom } from "./commands-for-test.js";

const [HERE, ELSEWHERE] = ["redis://here/0", "redis://elsewhere/0"];

let folder = "";
beforeEach(async () => {
  folder = await folderForTest();
});

function fileAt(url: string, namespace = NAMESPACE): CheckpointFile {
  const { hostname } = new URL(url);
  return openCheckpointFile({ folder, namespace, place: { group: hostname, addresses: [hostname], url } });
}

function note(url: string, own: Partial<Checkpoint>, namespace = NAMESPACE): void {
  fileAt(url, namespace).note({ storeId: storeIdFrom(1), ledgerId: 7, generation: 0, nodeCount: 1, ...own });
}

/** A store, and its move to a place as the seal has it. */
function moveTo(url: string) {
  const storeId = storeIdFrom(1);
  const next = nextStoreId(storeId, 1, Date.now());
  return { storeId, next, text: `${next}@${url}` };
}

const paths = () => readdirSync(folder).map((name) => join(folder, name));

describe("the moves to a place", () => {
  test("are those of its namespace, begun or done, from wherever; a damaged file shows none", () => {
    const [begun, done, other] = [moveTo(HERE), moveTo(HERE), moveTo(ELSEWHERE)];
    note("redis://one/0", { storeId: begun.storeId, movesTo: begun.text });
    note("redis://two/0", { storeId: done.storeId, movedTo: done.text });
    note("redis://three/0", { storeId: other.storeId, movedTo: other.text });
    note("redis://four/0", {});
    const [one = ""] = paths();
    writeFileSync(one.replace(/\.[^.]+\.checkpoint$/, ".00000000-0000-4000-8000-000000000000.checkpoint"), "damaged");
    const byStore = (each: { readonly storeId: string }) => each.storeId;
    const moves = fileAt(HERE).movesHere();
    expect(new Map(moves.map(({ from, storeId }) => [from, storeId]))).toEqual(
      new Map([
        ["redis://one/0", begun.next],
        ["redis://two/0", done.next],
      ]),
    );
    expect(fileAt(ELSEWHERE).movesHere().map(byStore)).toEqual([other.next]);
    expect(fileAt(HERE, `${NAMESPACE}.old`).movesHere()).toEqual([]);
    expect(
      openCheckpointFile({ folder, namespace: NAMESPACE, place: { group: "here", addresses: ["here"] } }).movesHere(),
    ).toEqual([]);
  });

  test("are not those that only began, once the source has moved elsewhere", () => {
    const begun = moveTo(HERE);
    note("redis://one/0", { storeId: begun.storeId, movesTo: begun.text });
    note("redis://moved/0", { storeId: begun.storeId, movedTo: begun.text });
    expect(
      new Set(
        fileAt(HERE)
          .movesHere()
          .map(({ from }) => from),
      ),
    ).toEqual(new Set(["redis://one/0", "redis://moved/0"]));
    const later = `${nextStoreId(begun.storeId, 2, Date.now())}@${ELSEWHERE}`;
    note("redis://copy/0", { storeId: begun.storeId, movedTo: later });
    expect(fileAt(HERE).movesHere()).toEqual([]);
  });

  test("are no checkpoint of the place, though its namespace is missed there", () => {
    const begun = moveTo(HERE);
    note("redis://one/0", { storeId: begun.storeId, movesTo: begun.text });
    expect(checkpointsAt(folder, { group: "here", addresses: ["here"], url: HERE }).size).toBe(0);
    const file = fileAt(HERE);
    const finish = "`callnumber move --store redis://one/0 --namespace main --to STORE_URL --apply`";
    const lost = { code: "namespace_lost", message: expect.stringContaining(`To finish it, run ${finish}`) };
    expect(moveUnfinished(NAMESPACE, file)).toMatchObject(lost);
    expect(whyMissing(NAMESPACE, file)).toMatchObject(lost);
    const missing = new CoordinatorError("namespace_not_found", "none");
    expect(asMoveUnfinished(missing, NAMESPACE, file)).toMatchObject(lost);
    for (const other of [
      new CoordinatorError("store_unavailable", "away"),
      Object.assign(new Error("x"), { code: "namespace_not_found" }),
    ])
      expect(asMoveUnfinished(other, NAMESPACE, file)).toBe(other);
    expect(asMoveUnfinished(missing, NAMESPACE, fileAt(ELSEWHERE))).toBe(missing);
    expect(strayStore(NAMESPACE, storeIdFrom(1), file)).toMatchObject({
      code: "store_id_mismatch",
      message: expect.stringContaining(`then run ${finish}`),
    });
  });

  test("make every store there a stray one, but those that they name", () => {
    const [one, two] = [moveTo(HERE), moveTo(HERE)];
    note("redis://one/0", { storeId: one.storeId, movesTo: one.text });
    note("redis://two/0", { storeId: two.storeId, movesTo: two.text });
    for (const { next } of [one, two]) expect(strayStore(NAMESPACE, next, fileAt(HERE))).toBeUndefined();
    expect(strayStore(NAMESPACE, one.storeId, fileAt(HERE))?.code).toBe("store_id_mismatch");
    expect(strayStore(NAMESPACE, one.storeId, fileAt(ELSEWHERE))).toBeUndefined();
  });
});

describe("a checkpoint with the move of its store", () => {
  test("replaces its file at each note, so that it is on the disk before the new store is made", () => {
    const { storeId, text } = moveTo(HERE);
    const file = fileAt("redis://one/0");
    const checkpoint = { storeId, ledgerId: 7, generation: 0, nodeCount: 1 };
    const inode = () => statSync(paths()[0] as string).ino;
    file.note(checkpoint);
    for (const move of [{ movesTo: text }, { movedTo: text }]) {
      const before = inode();
      file.note({ ...checkpoint, ...move });
      expect(inode()).not.toBe(before);
    }
    expect(paths()).toHaveLength(1);
  });

  test("keeps an abandoned file until another one has the move, too", () => {
    const { storeId, text } = moveTo(HERE);
    note("redis://one/0", { storeId, movedTo: text });
    const [abandoned = ""] = paths();
    const hourAgo = new Date(Date.now() - 3_660_000);
    utimesSync(abandoned, hourAgo, hourAgo);
    note("redis://one/0", { storeId });
    expect(paths()).toContain(abandoned);
    expect(fileAt("redis://one/0").movesOf(storeId)).toEqual([text]);
    note("redis://one/0", { storeId, movedTo: text });
    expect(paths()).not.toContain(abandoned);
    expect(fileAt("redis://one/0").movesOf(storeId)).toEqual([text]);
  });
});
