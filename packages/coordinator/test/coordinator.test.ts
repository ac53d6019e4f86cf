/** The rules that stand above every store, seen with a store that goes back in time. */

import { RUN_MAX } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import type { Log } from "../src/log.js";
import type { GrantedRuns, LeaseCommand } from "../src/store.js";
import { MemoryStore } from "../src/stores/memory-store.js";

const holder = { name: "importer", host: "mail-1", pid: 4711, labels: {} };
const request = { runCount: 1, nonce: "nonce-0123456789", holder, lastRun: null };

/** Ignores what the caller knows, as a careless store would. */
class ForgetfulStore extends MemoryStore {
  grantFrom: number | undefined;
  override async lease(namespace: string, command: LeaseCommand): Promise<GrantedRuns> {
    const granted = await super.lease(namespace, { ...command, floor: 0 });
    return this.grantFrom === undefined ? granted : { ...granted, firstRun: this.grantFrom };
  }
}

async function coordinatorOn(store: MemoryStore, log?: Log): Promise<Coordinator> {
  const coordinator = new Coordinator({ store, name: "test", ...(log ? { log } : {}) });
  await coordinator.initNamespace("main");
  return coordinator;
}

describe("a coordinator", () => {
  test("burns what a store grants below a run that was leased already", async () => {
    const store = new ForgetfulStore();
    const coordinator = await coordinatorOn(store);
    await coordinator.lease("main", { ...request, runCount: 10 });
    store.grantFrom = 10;
    await expect(coordinator.lease("main", request)).rejects.toMatchObject({ code: "store_went_back" });
    store.grantFrom = 12;
    expect((await coordinator.lease("main", request)).firstRun).toBe(12);
  });

  test("burns a run that a store grants to two at the same time", async () => {
    const store = new ForgetfulStore();
    const coordinator = await coordinatorOn(store);
    store.grantFrom = 7;
    const outcomes = await Promise.allSettled([coordinator.lease("main", request), coordinator.lease("main", request)]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  });

  test("burns what comes from another store than before", async () => {
    const store = new MemoryStore();
    const coordinator = await coordinatorOn(store);
    await coordinator.lease("main", request);
    const lease = store.lease.bind(store);
    store.lease = async (namespace, command) => ({ ...(await lease(namespace, command)), storeId: "another" });
    await expect(coordinator.lease("main", request)).rejects.toMatchObject({ code: "store_replaced" });
  });

  test("tells the store what it knows, so that a store which went back refuses by itself", async () => {
    const store = new MemoryStore();
    const floors: number[] = [];
    const lease = store.lease.bind(store);
    store.lease = (namespace, command) => {
      floors.push(command.floor);
      return lease(namespace, command);
    };
    const coordinator = await coordinatorOn(store);
    await coordinator.lease("main", { ...request, runCount: 10 });
    await coordinator.lease("main", request);
    await coordinator.lease("main", request);
    expect(floors).toEqual([0, 10, 11]);
  });

  test("counts as known what a holder has only up to the mark", async () => {
    const events: string[] = [];
    const note = (_: object, event: string) => void events.push(event);
    const coordinator = await coordinatorOn(new MemoryStore(), { debug: note, info: note, warn: note, error: note });
    await coordinator.lease("main", { ...request, runCount: 5 });
    await expect(coordinator.lease("main", { ...request, lastRun: 6 })).rejects.toMatchObject({
      code: "run_beyond_mark",
    });
    expect((await coordinator.lease("main", { ...request, lastRun: 5 })).firstRun).toBe(6);
    expect(events).toEqual(["init", "lease", "run_beyond_mark", "lease"]);
  });

  test("two on one store are as safe as one", async () => {
    const store = new MemoryStore();
    const pair = [await coordinatorOn(store), new Coordinator({ store, name: "other" })];
    const leases = await Promise.all(
      Array.from({ length: 100 }, (_, index) => pair[index % 2]!.lease("main", request)),
    );
    expect(new Set(leases.map(({ firstRun }) => firstRun)).size).toBe(100);
  });

  test.each([0, RUN_MAX + 1, 1.5, Number.NaN])("refuses to begin at run %s", async (firstRun) => {
    const coordinator = new Coordinator({ store: new MemoryStore(), name: "test" });
    await expect(coordinator.initNamespace("main", { firstRun })).rejects.toThrow(RangeError);
  });

  test("refuses misuse before it asks the store", async () => {
    const coordinator = await coordinatorOn(new MemoryStore());
    for (const runCount of [0, 65, 1.5, Number.NaN]) {
      await expect(coordinator.lease("main", { ...request, runCount })).rejects.toThrow(RangeError);
    }
    await expect(coordinator.lease("Main", request)).rejects.toThrow(TypeError);
    for (const bad of [{ nonce: undefined }, { nonce: "short" }, { holder: undefined }]) {
      await expect(coordinator.lease("main", { ...request, ...bad } as never)).rejects.toThrow(TypeError);
    }
    const report = { nonce: request.nonce, lastSequence: 0, state: "open" } as const;
    await expect(coordinator.report("main", 1, { ...report, lastSequence: 16_384 })).rejects.toThrow(RangeError);
    await expect(coordinator.report("main", 1, { ...report, state: "shut" as never })).rejects.toThrow(TypeError);
    await expect(coordinator.run("main", -1)).rejects.toThrow(RangeError);
    expect((await coordinator.status("main")).runsLeased).toBe(0);
  });
});
