/** Which findings about a store's servers stop leasing, and when they are logged. */
import { expect, onTestFinished, test, vi } from "vitest";
import { CoordinatorError } from "../src/errors.js";
import { activeSince, type GuardState } from "../src/guard/guard-state.js";
import { PREFLIGHT_EVERY_MS, PreflightWatch } from "../src/guard/preflight.js";
import { runCommand } from "../src/guard/refusals.js";
import type { Finding, PreflightScope } from "../src/guard/step-store.js";
import type { Log } from "../src/log.js";
import { asStoreError } from "../src/stores/redis/errors.js";
import { failed } from "../src/stores/sqlite/errors.js";

const EVERY_MS = 50;
const ACTIVE = activeSince(0);
const evicts: Finding = { code: "store_eviction_enabled", what: "it evicts", remedy: "set it", override: "evicts" };
const warning: Finding = { what: "one node", remedy: "add two" };

/** A watch over what `look` finds, with what it logs as `level event text`. */
function watchOn(
  look: (scope?: PreflightScope) => readonly Finding[],
  overrides: readonly string[] = [],
  everyMs = EVERY_MS,
) {
  vi.useFakeTimers({ now: 1_000 });
  const logged: string[] = [];
  const logAt =
    (level: string) =>
    (fields: object, event: string): void => {
      const { what, reason, err, code } = fields as { what?: string; reason?: string; err?: Error; code?: string };
      logged.push([level, event, code ?? "-", what ?? reason ?? err?.message].join(" "));
    };
  const log = {
    debug: logAt("debug"),
    info: logAt("info"),
    warn: logAt("warn"),
    error: logAt("error"),
  } as unknown as Log;
  const store = { preflight: async (scope?: PreflightScope) => look(scope) };
  const watch = new PreflightWatch({ store, log, now: () => Date.now(), overrides, everyMs });
  onTestFinished(async () => {
    await watch.stop();
    vi.useRealTimers();
  });
  return { watch, logged };
}

test("the watch rejects no lease before it is started, and waits for the first check once it is", async () => {
  const { watch } = watchOn(() => [evicts]);
  await watch.assertPassed("main");
  expect(watch.effectiveState("main", ACTIVE)).toBe(ACTIVE);
  watch.start();
  await expect(watch.assertPassed("main")).rejects.toMatchObject({
    code: "store_eviction_enabled",
    message: "it evicts. Nothing is leased until that is fixed: set it (or accept it: --ignore-findings evicts)",
  });
});

test("the message of a finding without an override names none", async () => {
  const { watch } = watchOn(() => [{ code: "store_version_unsupported", what: "it is old", remedy: "update it" }]);
  watch.start();
  const message = "it is old. Nothing is leased until that is fixed: update it";
  await expect(watch.assertPassed("main")).rejects.toMatchObject({ code: "store_version_unsupported", message });
  expect(watch.effectiveState("main", ACTIVE)).toEqual({
    state: "stopped",
    code: "store_version_unsupported",
    reason: null,
    sinceMs: 1_000,
    explanation: message,
  });
  const moved: GuardState = { ...ACTIVE, state: "stopped", code: "namespace_moved" };
  expect(watch.effectiveState("main", moved)).toBe(moved);
});

test("a finding stops only the namespaces that it names, and none for a warning or an accepted finding", async () => {
  const other: Finding = { ...evicts, what: "of one", override: "one", namespaces: ["lists"] };
  const { watch, logged } = watchOn(() => [warning, evicts, other], ["evicts"]);
  watch.start();
  await watch.assertPassed("main");
  await expect(watch.assertPassed("lists")).rejects.toMatchObject({ code: "store_eviction_enabled" });
  expect(logged).toEqual([
    "warn preflight_finding - one node",
    "error preflight_finding store_eviction_enabled of one",
  ]);
});

test("the watch checks repeatedly, and reports a finding once, with its begin, and its end", async () => {
  let found: readonly Finding[] = [evicts];
  let looks = 0;
  const { watch, logged } = watchOn(() => {
    looks++;
    return found;
  });
  watch.start();
  watch.start();
  await vi.advanceTimersByTimeAsync(2 * EVERY_MS);
  expect([looks, watch.effectiveState("main", ACTIVE).sinceMs]).toEqual([3, 1_000]);
  expect(logged).toEqual(["error preflight_finding store_eviction_enabled it evicts"]);
  found = [];
  await vi.advanceTimersByTimeAsync(EVERY_MS);
  expect(logged.slice(1)).toEqual(["info preflight_finding_resolved store_eviction_enabled it evicts"]);
  await watch.assertPassed("main");
  await watch.stop();
  await vi.advanceTimersByTimeAsync(5 * EVERY_MS);
  expect(looks).toBe(4);
  watch.start();
  await watch.assertPassed("main");
  expect(looks).toBe(5);
});

test("the watch checks every 5 s while a finding stops leasing, so that who has fixed it need not wait for a minute", async () => {
  let found: readonly Finding[] = [evicts];
  let looks = 0;
  const look = () => {
    looks++;
    return found;
  };
  const { watch } = watchOn(look, [], PREFLIGHT_EVERY_MS);
  watch.start();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(looks).toBe(3);
  found = [warning];
  await vi.advanceTimersByTimeAsync(5_000);
  await watch.assertPassed("main");
  await vi.advanceTimersByTimeAsync(PREFLIGHT_EVERY_MS - 1);
  expect(looks).toBe(4);
  await vi.advanceTimersByTimeAsync(1);
  expect(looks).toBe(5);
});

test("the watch keeps the last findings when a check fails, whatever it fails with", async () => {
  let failure: Error | undefined;
  const { watch, logged } = watchOn(() => {
    if (failure !== undefined) throw failure;
    return [evicts];
  });
  watch.start();
  await vi.advanceTimersByTimeAsync(0);
  failure = new CoordinatorError("store_unavailable", "it is away");
  await vi.advanceTimersByTimeAsync(EVERY_MS);
  failure = new TypeError("a mistake");
  await vi.advanceTimersByTimeAsync(EVERY_MS);
  await expect(watch.assertPassed("main")).rejects.toMatchObject({ code: "store_eviction_enabled" });
  expect(logged.slice(1)).toEqual([
    "warn preflight_failed store_unavailable it is away",
    "error preflight_failed - a mistake",
  ]);
});

test("what an operator is shown is asked with the rights of one, accepted or not; an unreachable store is shown, too", async () => {
  let failure: Error | undefined;
  const { watch } = watchOn(
    (scope) => {
      if (failure !== undefined) throw failure;
      return scope?.asOperator === true ? [evicts, warning] : [];
    },
    ["evicts"],
  );
  expect(await watch.findings()).toEqual([evicts, warning]);
  const full = Object.assign(new Error("database or disk is full"), { errcode: 13 });
  const misconfigured = Object.assign(new Error("MISCONF Redis can't save"), { name: "ReplyError" });
  for (const [what, remedy] of [
    ["it is away", "let the coordinator reach it and write to it"],
    [failed(full, "/store.db").message, "Free space on its disk, then start it again"],
    [asStoreError(misconfigured, "main", "redis:6379").message, "Free space there, or see its log"],
    ["it has gone. Nothing was changed. Its runs were discarded. Start it again", "Start it again"],
    [
      `it has gone. See why, then ${runCommand("doctor", "main")}`,
      "`callnumber doctor --store STORE_URL --namespace main`",
    ],
  ] as const) {
    failure = new CoordinatorError("store_unavailable", what);
    expect(await watch.findings()).toEqual([{ code: "store_unavailable", what, remedy }]);
  }
  failure = new TypeError("a mistake");
  await expect(watch.findings()).rejects.toBe(failure);
});

test("a namespace may count more nodes than one only where no finding about it is left that is not accepted", async () => {
  const fewer: Finding = { code: "quorum_missing", what: "no replica", remedy: "add one", override: "fewer" };
  let found: readonly Finding[] = [];
  const scopes: unknown[] = [];
  const { watch } = watchOn(
    (scope) => {
      scopes.push(scope);
      return found;
    },
    ["evicts"],
  );
  const planned = { namespace: "main", nodeCount: 2 };
  const namespaces = ["lists", "main"];
  for (found of [[], [evicts], [fewer], [{ ...fewer, namespaces: ["lists"] }], [{ ...warning, namespaces }]])
    await watch.assertFitFor(planned);
  found = [{ ...evicts, namespaces }];
  await watch.assertFitFor(planned);
  expect(scopes).toEqual(Array.from({ length: 6 }, () => ({ planned })));
  found = [{ ...fewer, namespaces }];
  await watch.assertFitFor({ ...planned, nodeCount: 1 });
  expect(scopes).toHaveLength(6);
  await expect(watch.assertFitFor(planned)).rejects.toMatchObject({
    code: "quorum_missing",
    message: "no replica. Nothing is leased until that is fixed: add one (or accept it: --ignore-findings fewer)",
  });
});
