/** The guards of all namespaces of one coordinator: when each is made, kept and closed. */
import { expect, test } from "vitest";
import { CoordinatorError } from "../src/errors.js";
import type { CheckpointFile } from "../src/guard/checkpoint.js";
import { NamespaceGuards } from "../src/guard/namespace-guards.js";
import type { Log } from "../src/log.js";
import { commandsFor, storeIdFrom } from "./commands-for-test.js";
import { Clock, SettableStore } from "./settable-store.js";
import { stepOn } from "./steps-for-test.js";

async function guardsOn({ names = ["a", "b"], remembered = [] as readonly string[] } = {}) {
  const clock = new Clock();
  const store = new SettableStore(clock);
  for (const name of names) {
    await stepOn(store, name, commandsFor(storeIdFrom(1, { initializedAtMs: clock.timeMs, rate: 16 })).init());
  }
  store.steps.length = 0;
  const logged: unknown[][] = [];
  const note =
    (level: string) =>
    ({ namespace, code, reason }: Record<string, unknown>, event: string): void =>
      void logged.push([level, event, namespace, code ?? reason]);
  const log = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") } as unknown as Log;
  const closed: string[] = [];
  const unclosable = new Set<string>();
  const checkpointFileOf = (namespace: string): CheckpointFile => ({
    read: () => undefined,
    readable: () => undefined,
    note: () => {},
    movesHere: () => [],
    movesOf: () => [],
    laterStoresOf: () => [],
    recoveredMin: () => 0,
    noteRecoveredMin: () => {},
    close: () => {
      closed.push(namespace);
      if (unclosable.has(namespace)) throw new CoordinatorError("checkpoint_unavailable", namespace);
    },
  });
  const common = {
    store,
    coordinator: "one",
    bounds: store.boundsOf(),
    now: clock.now,
    log,
    pause: clock.pause,
    random: () => 0.5,
  };
  const guards = new NamespaceGuards({ ...common, checkpointed: new Set(remembered) }, checkpointFileOf);
  return { guards, store, clock, logged, closed, unclosable };
}

test("the guards of all namespaces are made on first use, and kept", async () => {
  const { guards } = await guardsOn();
  expect(guards.opened()).toEqual([]);
  const opening = guards.of("a");
  expect(guards.opened()).toEqual([]);
  const guard = await opening;
  expect(await guards.of("a")).toBe(guard);
  expect(await guards.ifInitialized("a")).toBe(guard);
  expect(guards.opened()).toEqual([guard]);
});

test("a namespace without a record has no guard until it has one, and its checkpoint is closed", async () => {
  const { guards, store, closed } = await guardsOn();
  await expect(guards.of("c")).rejects.toMatchObject({ code: "namespace_not_found" });
  expect([await guards.ifInitialized("c"), closed]).toEqual([undefined, ["c", "c"]]);
  await stepOn(store, "c", commandsFor(storeIdFrom(1)).init());
  expect((await guards.ifInitialized("c"))?.namespace).toBe("c");
  store.readNamespace = () => Promise.reject(new CoordinatorError("store_unavailable", "away"));
  await expect(guards.ifInitialized("b")).rejects.toMatchObject({ code: "store_unavailable" });
});

test("the guards know the names in the store, of open guards, and in the checkpoint directory", async () => {
  const { guards, store } = await guardsOn({ remembered: ["lost"] });
  await guards.of("a");
  store.restore(new Map([...store.backup()].filter(([name]) => name !== "a")));
  expect([...(await guards.names())].sort()).toEqual(["a", "b", "lost"]);
});

test("the guards heartbeat every namespace, also those known when the list can't be read", async () => {
  const { guards, store, logged } = await guardsOn();
  await guards.heartbeatAll();
  expect(store.stepNames()).toEqual(["heartbeat", "heartbeat"]);
  expect(logged.filter(([, event]) => event === "heartbeat")).toEqual([
    ["debug", "heartbeat", "a", undefined],
    ["debug", "heartbeat", "b", undefined],
  ]);
  store.listNamespaces = () => Promise.reject(new Error("away"));
  await guards.heartbeatAll();
  expect(store.stepNames()).toEqual(["heartbeat", "heartbeat"]);
  expect(logged).toContainEqual(["warn", "heartbeat_failed", undefined, "away"]);
});

test("the guards show why a namespace has none, log a change of it once, and forget it when there is one", async () => {
  const { guards, store, clock, logged } = await guardsOn({ names: ["a"] });
  const read = store.readNamespace.bind(store);
  let code: "store_unavailable" | "store_corrupt" | "namespace_not_found" = "store_unavailable";
  store.readNamespace = () => Promise.reject(new CoordinatorError(code, "why"));
  const sinceMs = clock.timeMs;
  await guards.heartbeatAll();
  clock.timeMs += 5;
  await guards.heartbeatAll();
  const away = { state: "recovering", code: "store_unavailable", reason: null, sinceMs, explanation: "why" };
  expect(guards.refused()).toEqual([{ namespace: "a", guard: away }]);
  code = "store_corrupt";
  await guards.heartbeatAll();
  expect(logged.filter(([level]) => level === "warn")).toEqual([
    ["warn", "recovering", "a", "store_unavailable"],
    ["warn", "stopped", "a", "store_corrupt"],
  ]);
  expect(logged.filter(([, event]) => event === "heartbeat_rejected")).toEqual([
    ["debug", "heartbeat_rejected", "a", "store_unavailable"],
    ["debug", "heartbeat_rejected", "a", "store_unavailable"],
    ["debug", "heartbeat_rejected", "a", "store_corrupt"],
  ]);
  code = "namespace_not_found";
  await guards.heartbeatAll();
  expect(guards.refused()).toEqual([]);
  code = "store_unavailable";
  await guards.heartbeatAll();
  expect(guards.refused()).toHaveLength(1);
  store.readNamespace = read;
  await guards.heartbeatAll();
  expect(guards.refused()).toEqual([]);
});

test("the guards log a heartbeat that fails by mistake, and leave a guard's own rejection in its state", async () => {
  const { guards, store, logged } = await guardsOn({ names: ["a"] });
  await guards.of("a");
  store.before = () => {
    throw new CoordinatorError("store_unavailable", "away");
  };
  await guards.heartbeatAll();
  expect([guards.refused(), (await guards.of("a")).state.code]).toEqual([[], "store_unavailable"]);
  store.before = () => {
    throw new TypeError("a mistake");
  };
  await guards.heartbeatAll();
  expect(logged.at(-1)).toEqual(["warn", "heartbeat_failed", undefined, "a mistake"]);
});

test("the guards close every checkpoint, also when one can't be closed", async () => {
  const { guards, closed, unclosable } = await guardsOn();
  await Promise.all([guards.of("a"), guards.of("b"), guards.of("none").catch(() => {})]);
  closed.length = 0;
  unclosable.add("b");
  await expect(guards.close()).rejects.toMatchObject({ code: "checkpoint_unavailable" });
  expect(closed).toEqual(["a", "b"]);
});
