/** What each refusal of a step becomes: the code for programs, and the message that gives the value and the remedy. */
import { VERSION_MAX } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import {
  isRefusalCode,
  notLeased,
  notTheHolder,
  REFUSAL_RULES,
  type RefusalCode,
  refused,
} from "../src/guard/refusals.js";
import { movedSeal, textOfMove } from "../src/guard/store-id.js";
import { storeIdFrom } from "./commands-for-test.js";

const RECOVER = "run `callnumber recover --store STORE_URL --namespace main`";
const recovering = (reason: string) => ({ code: "store_recovering", reason, generation: 7 });
const stops = (code: string, more: object = {}) => ({ code, reason: undefined, ...more });

const TABLE: readonly [RefusalCode, string, object, readonly string[]][] = [
  [
    "EMPTY",
    "",
    stops("namespace_not_found"),
    ['no namespace "main"', "`callnumber init --store STORE_URL --namespace main`"],
  ],
  ["CORRUPT", "mark is x", stops("store_corrupt", { fault: "mark is x" }), [": mark is x.", RECOVER]],
  ["VERSION", "3", stops("store_schema_unsupported", { fault: undefined }), ["has schema version 3;", "version 2"]],
  ["FOREIGN", "another-id", stops("store_id_mismatch"), ["(id another-id)", "Restore the right store"]],
  ["FOREIGN", "", stops("store_id_mismatch"), ["(id missing)"]],
  ["NOEPOCH", "", stops("store_epoch_unreadable"), ["Grant what `callnumber doctor` names"]],
  [
    "REPLICA",
    "slave",
    stops("store_is_replica"),
    ["is a replica, not a master.", "Point the store's URL at the master"],
  ],
  ["REPLICA", "sentinel", stops("store_is_replica"), ["is a sentinel, not a master."]],
  [
    "NODES",
    "1",
    stops("unexpected_replicas"),
    ["fewer data nodes than the 2 ", "`callnumber recover --store STORE_URL --namespace main --nodes 2 --apply`"],
  ],
  ["UNCOUNTED", "1", stops("unexpected_replicas"), ["fewer data nodes than the 2 ", "or pass --nodes 2"]],
  ["QUORUM", "0 of 1", stops("quorum_missing"), ["(0 of 1). Nothing was changed", "--nodes 1 only if they are wiped"]],
  ["CLOCK", "-250", stops("clock_skew"), ["is 250 ms behind the coordinator's", "NTP"]],
  ["CLOCK", "250", stops("clock_skew"), ["is 250 ms ahead of the coordinator's", "NTP"]],
  ["CLOCK", "0", stops("clock_skew"), ["before this release was made. Set them right"]],
  ["MOVED", "", stops("namespace_moved"), ["was moved to another store; use that store"]],
  ["MOVED", "sqlite:/new", stops("namespace_moved"), ["was moved to sqlite:/new; use that store", "(--store)"]],
  ["FORKED", "12", stops("store_forked"), ["are running: a holder has run 12,", RECOVER, "on the other"]],
  ["FORKED", "0", stops("store_forked"), ["are running. Nothing is leased"]],
  [
    "CLOCKBACK",
    "1500",
    stops("clock_moved_backward", { retryAfterMs: 1500 }),
    ["last write is 2 s in the future", "Set them right. Leasing continues when they have passed it"],
  ],
  [
    "CLOCKBACK",
    "290323918120",
    stops("clock_moved_backward", { retryAfterMs: 290_323_918_120 }),
    ["is 3,360 days in the future", "`callnumber move --store STORE_URL --namespace main --to NEW_STORE_URL`"],
  ],
  ["OPERATOR", "epoch", stops("manual_recovery_required"), ["the server followed another one", RECOVER]],
  ["OPERATOR", "replica", stops("manual_recovery_required"), ["an uncounted replica was attached"]],
  [
    "OPERATOR",
    "silence",
    stops("manual_recovery_required"),
    ["more than 30 days", "--namespace main --confirm-clock`"],
  ],
  ["OPERATOR", "line", stops("manual_recovery_required"), ["above the run ceiling"]],
  [
    "OPERATOR",
    "line 1800000000000",
    stops("manual_recovery_required"),
    ["above the run ceiling", "Nothing is leased before 2027-01-15T08:00:00.000Z"],
  ],
  ["OPERATOR", "of a later release", stops("manual_recovery_required"), ["of a later release. Nothing"]],
  ["STALEGEN", "7", recovering("generation_stale"), ["at generation 7, and a later one"]],
  ["EPOCH", "7", recovering("epoch_changed"), ["restarted, promoted or restored"]],
  ["PENDING", "7", recovering("claimed"), ["by `recover` or by another coordinator"]],
  ["GAP", "7", recovering("heartbeat_expired"), ["no heartbeat for too long"]],
  ["ROLLBACK", "7", recovering("rolled_back"), ["below a run that was leased"]],
  ["AHEAD", "1500", stops("run_ceiling_reached", { retryAfterMs: 1500 }), ["is free in 2 s", "start fewer"]],
  ["AHEAD", "0", stops("run_ceiling_reached", { retryAfterMs: 1 }), ["is free in 0 s"]],
  [
    "EXHAUSTED",
    "4",
    stops("run_space_exhausted"),
    ["all runs of version 4", "`callnumber advance-version --store STORE_URL --namespace main`"],
  ],
  ["EARLY", "900", stops("version_still_active", { retryAfterMs: 900 }), ["in 1 s", "Nothing was changed"]],
  ["RACED", "7", recovering("conflict"), ["another coordinator was faster"]],
  ["ALREADY", "", stops("namespace_exists"), ['"main" exists already; nothing was changed']],
  ["NOTLEASED", "9", stops("run_not_leased"), ["has run 9", "never leased, skipped, or lost by the store"]],
  ["NOTHOLDER", "9", stops("holder_mismatch"), ["report on run 9 ", "nothing was changed"]],
  ["MISUSE", "step x", stops("internal_error"), ["broken invariant", "step x"]],
];

const MESSAGE_LENGTH_MAX = 200;

test.each(TABLE)("the refusal %s becomes %j", (code, detail, fields, fragments) => {
  const error = refused(code, detail, "main");
  const absent = { retryAfterMs: undefined, generation: undefined, fault: undefined };
  expect(error).toMatchObject({ ...absent, ...fields });
  for (const fragment of fragments) expect(error.message).toContain(fragment);
  // Commands are as long as their values.
  expect(error.message.replaceAll(/`[^`]*`/g, "").length).toBeLessThanOrEqual(MESSAGE_LENGTH_MAX);
});

test("the table has every refusal", () => {
  expect(new Set(TABLE.map(([code]) => code))).toEqual(new Set(Object.keys(REFUSAL_RULES)));
});

test("only a known code is a refusal", () => {
  expect(["EMPTY", "ERR", "constructor", ""].map(isRefusalCode)).toEqual([true, false, false, false]);
});

test("a silence alone asks the operator to confirm the clock, and the last version has no next one", () => {
  expect(refused("OPERATOR", "epoch", "main").message).not.toContain("--confirm-clock");
  const last = refused("EXHAUSTED", String(VERSION_MAX), "main").message;
  expect(last).toContain("It is the last version");
  expect(refused("EXHAUSTED", String(VERSION_MAX - 1), "main").message).toContain("advance-version");
});

test("a move names where the new store is, and its id", () => {
  const storeId = storeIdFrom(1);
  const seal = movedSeal({ storeId, place: "sqlite:/new" });
  expect(refused("MOVED", textOfMove(seal), "main").message).toContain(
    `moved to sqlite:/new as store ${storeId}; use that`,
  );
});

test("a run that isn't leased, and one of another holder, are rejected by their number", () => {
  expect(notLeased("main", 12)).toMatchObject({
    code: "run_not_leased",
    message: expect.stringContaining("run 12:"),
  });
  expect(notTheHolder(12)).toMatchObject({ code: "holder_mismatch", message: expect.stringContaining("run 12 ") });
});

test("text of a store is shortened, so that the remedy is still there", () => {
  const { message, fault } = refused("CORRUPT", `${"x".repeat(5_000)}\n`, "main");
  expect(message).toContain(RECOVER);
  expect(fault).not.toContain("\n");
  expect(String(fault).length).toBeLessThan(1_000);
});
