/**
 * Every operation on the files of a coordinator fails once, in every way: no descriptor is used after it is closed, and the next start has
 * what was noted, or finds it damaged.
 * Guarantees: G8, G11 (docs/guarantees.md).
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { drawn } from "../../../test/size-of-run.js";
import { type CheckpointFile, CORRUPT } from "../src/guard/checkpoint.js";
import { orUnusable } from "../src/guard/checkpoint-directory.js";
import { openCheckpointFile } from "../src/guard/checkpoint-file.js";
import { thisMachine } from "../src/stores/sqlite/machine.js";
import { RestartMarker } from "../src/stores/sqlite/restart-marker.js";
import { SqliteStore } from "../src/stores/sqlite/store.js";
import { commandsFor, SMALL_BOUNDS, storeIdFrom } from "./commands-for-test.js";
import { memoryFolder, temporaryFolder } from "./embedded-place.js";
import { type Fault, faultsOf, withFault } from "./faulty-fs.js";
import { stepOn } from "./steps-for-test.js";

/** With none of the ways and codes in common: each part has all of them. */
const PARTS = 3;

function refusalOf(act: () => void): unknown {
  try {
    act();
    return undefined;
  } catch (error) {
    return error;
  }
}

function namesIn(folder: string): readonly string[] {
  return refusalOf(() => readdirSync(folder)) === undefined ? readdirSync(folder) : [];
}

test("another checkpoint directory, which knows no lease, is named only where this one lacks more than space or a right", () => {
  const remedyOf = (code: string) => {
    const cause = Object.assign(new Error(`${code}: it fails`), { code });
    const refusal = refusalOf(() =>
      orUnusable("/checkpoints", () => {
        throw cause;
      }),
    );
    expect(refusal).toMatchObject({ code: "checkpoint_unavailable", cause });
    const [before, remedy] = (refusal as Error).message.split("it fails. ");
    expect(before).toBe(`the checkpoint directory /checkpoints can't be used: ${code}: `);
    return remedy;
  };
  for (const code of ["EACCES", "EPERM"]) expect(remedyOf(code)).toBe("Let this user read and write it");
  expect(remedyOf("EROFS")).toBe("Mount it for reading and writing");
  for (const code of ["ENOSPC", "EDQUOT"]) expect(remedyOf(code)).toContain("Free space there");
  expect(remedyOf("ENOTDIR")).toContain("--checkpoint-dir");
});

describe("the checkpoints of several namespaces", () => {
  /** The name of the second begins with the first one's. */
  const NAMESPACES = ["lists", "lists.old"];
  const STORE_IDS = new Map(NAMESPACES.map((namespace) => [namespace, storeIdFrom(1)]));
  const place = { group: "store", addresses: ["here"] };
  const HOUR_MS = 3_600_000;

  const checkpointOf = (namespace: string, ledgerId: number) => {
    return { storeId: STORE_IDS.get(namespace) as string, ledgerId, generation: 0, nodeCount: 1 };
  };

  /** Two lives of a coordinator that serves all namespaces by turns; the second one takes over the files of the first. */
  async function lives(folder: string, fault: Fault | undefined, isKilled: boolean) {
    const acknowledged = new Map<string, number>();
    let ledgerId = 0;
    let timeMs = Date.now();
    const life = () => {
      const checkpoints = new Map<string, CheckpointFile>();
      for (const namespace of NAMESPACES) {
        const checkpointFile = openCheckpointFile({ folder, place, namespace, now: () => timeMs });
        if (refusalOf(() => checkpointFile.read()) === undefined) checkpoints.set(namespace, checkpointFile);
      }
      for (const passedMs of [0, 5_001, 1]) {
        timeMs += passedMs;
        for (const [namespace, checkpointFile] of checkpoints) {
          ledgerId++;
          if (refusalOf(() => checkpointFile.note(checkpointOf(namespace, ledgerId))) === undefined) {
            acknowledged.set(namespace, ledgerId);
          }
        }
      }
      if (!isKilled) for (const checkpointFile of checkpoints.values()) refusalOf(() => checkpointFile.close());
    };
    const traced = await withFault([folder], fault, () => {
      life();
      timeMs += 2 * HOUR_MS;
      life();
    });
    return { ...traced, acknowledged };
  }

  test("the checkpoints of several namespaces have the note, or are corrupt, when any file operation fails", async () => {
    const folder = join(await temporaryFolder(memoryFolder()), "checkpoints");
    const { callCount, misuses } = await lives(folder, undefined, false);
    expect(misuses).toEqual([]);
    for (const fault of drawn([...faultsOf(callCount)], PARTS, inject("seed"))) {
      for (const isKilled of [false, true]) {
        rmSync(folder, { recursive: true, force: true });
        const injected = JSON.stringify({ ...fault, isKilled });
        const { acknowledged, misuses } = await lives(folder, fault, isKilled);
        expect(misuses, injected).toEqual([]);
        // On a full disk each start that fails would leave one more.
        if (!fault.isLasting) expect(namesIn(folder).filter((name) => name.endsWith(".new"))).toEqual([]);
        for (const namespace of NAMESPACES) {
          const storeId = STORE_IDS.get(namespace);
          for (const text of textsOf(folder, namespace)) expect(text, injected).toContain(storeId);
          const found = openCheckpointFile({ folder, place, namespace }).read();
          if (found === CORRUPT) continue;
          expect(found?.ledgerId ?? 0, injected).toBeGreaterThanOrEqual(acknowledged.get(namespace) ?? 0);
          expect(found?.storeId ?? storeId, injected).toBe(storeId);
        }
      }
    }
  });

  /** Of whole files: half of one is damaged in any case. */
  function textsOf(folder: string, namespace: string): readonly string[] {
    const prefix = new RegExp(`^[0-9a-f]{16}\\.${namespace.replace(".", "\\.")}\\.[0-9a-f-]{36}\\.checkpoint$`);
    const names = namesIn(folder).filter((name) => prefix.test(name));
    const texts = names.map((name) => readFileSync(join(folder, name), "utf8"));
    return texts.filter((text) => text.endsWith("\n"));
  }
});

describe("the files of an embedded store", () => {
  const NAMESPACES = ["lists", "mail"];
  const commands = commandsFor(storeIdFrom(1));

  async function prepared() {
    const folder = await temporaryFolder(memoryFolder());
    const [markers = "", otherMarkers = ""] = ["markers", "other-markers"].map((name) => join(folder, name));
    const path = join(folder, "store", "store.db");
    const open = () => {
      const { epsMs } = SMALL_BOUNDS;
      return new SqliteStore({ path, create: true, epsMs, machine: { markerFolders: [markers, otherMarkers] } });
    };
    for (const made of [markers, otherMarkers]) mkdirSync(made);
    const store = open();
    for (const namespace of NAMESPACES) {
      await stepOn(store, namespace, commands.init());
      await stepOn(store, namespace, commands.lease());
    }
    await store.close();
    const bytes = readFileSync(path);
    const machine = { ...thisMachine(), markerFolders: [markers, otherMarkers] };
    const { marks } = new RestartMarker(path, machine).found;
    /** The store as it was, in the same file. */
    const putBack = () => {
      for (const part of ["-wal", "-shm"]) rmSync(`${path}${part}`, { force: true });
      writeFileSync(path, bytes);
    };
    /** A marker of that state, as if no process had leased since. */
    const putMarkBack = () => {
      for (const made of [markers, otherMarkers]) for (const name of readdirSync(made)) rmSync(join(made, name));
      const lockChangedNs = String(statSync(`${path}.lock`, { bigint: true }).ctimeNs);
      const marker = new RestartMarker(path, machine);
      marker.write(Array.from(marks.values(), (mark) => ({ ...mark, lockChangedNs })));
      marker.close();
    };
    return { folder, markers, otherMarkers, open, putBack, putMarkBack };
  }

  /** Raises the mark in any case: after a skip the next lease would have to wait. */
  async function leaseOrSkip(store: SqliteStore, namespace: string): Promise<void> {
    try {
      await stepOn(store, namespace, commands.lease());
    } catch {
      const { generation } = await store.readNamespace(namespace);
      await stepOn(store, namespace, commands.claim(generation));
      await stepOn(store, namespace, commands.confirm(generation + 1));
    }
  }

  test("an embedded store that was rolled back never leases without a recovery, when any file operation fails", async () => {
    const { folder, markers, otherMarkers, open, putBack, putMarkBack } = await prepared();
    const answered = async (folders: readonly string[], fault: Fault | undefined) => {
      const leased = new Set<string>();
      const traced = await withFault(folders, fault, async () => {
        let store: SqliteStore | undefined;
        if (refusalOf(() => (store = open())) !== undefined || store === undefined) return;
        for (const namespace of NAMESPACES) {
          await leaseOrSkip(store, namespace).then(
            () => leased.add(namespace),
            () => {},
          );
        }
        await store.close().catch(() => {});
      });
      return { ...traced, leased };
    };
    expect((await answered([folder], undefined)).leased.size).toBe(2);
    putBack();
    putMarkBack();
    const control = open();
    expect([...control.restarts.values()], "the control").toEqual(["unbroken", "unbroken"]);
    await control.close();
    const faults: string[] = [];
    for (const folders of [[folder], [markers], [otherMarkers]]) {
      putBack();
      putMarkBack();
      const { callCount, misuses } = await answered(folders, undefined);
      expect(misuses).toEqual([]);
      for (const fault of drawn([...faultsOf(callCount)], PARTS, inject("seed"))) {
        putBack();
        putMarkBack();
        const injected = JSON.stringify({ ...fault, folders });
        const { leased, misuses } = await answered(folders, fault);
        faults.push(...misuses.map((misuse) => `${misuse}: ${injected}`));
        putBack();
        const next = open();
        const unskipped = [...leased].filter((namespace) => next.restarts.get(namespace) === "unbroken");
        await next.close();
        faults.push(...unskipped.map((namespace) => `${namespace} goes on without a skip: ${injected}`));
      }
    }
    expect(faults).toEqual([]);
  });
});
