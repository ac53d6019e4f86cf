/** The state of a namespace: what ends it, what keeps its time, and when it is logged. */
import { RUN_MAX } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { CoordinatorError } from "../src/errors.js";
import type { RecordAfter } from "../src/guard/commands.js";
import { StateMonitor } from "../src/guard/guard-state.js";

function monitorOn() {
  const clock = { timeMs: 1_000 };
  const logged: unknown[] = [];
  const note = (level: string) => (fields: object, event: string) => void logged.push([level, event, fields]);
  const log = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };
  return { clock, logged, monitor: new StateMonitor({ namespace: "main", log, now: () => clock.timeMs }) };
}
const recovering = (reason: "epoch_changed" | "claimed") => new CoordinatorError("store_recovering", "why", { reason });
const after = (highWaterMark: number) => ({ highWaterMark }) as RecordAfter;

test("a state keeps its time while its cause is the same; another reason of the same code is another state", () => {
  const { clock, logged, monitor } = monitorOn();
  for (const [timeMs, reason] of [
    [2_000, "claimed"],
    [3_000, "claimed"],
    [4_000, "epoch_changed"],
  ] as const) {
    clock.timeMs = timeMs;
    monitor.noteRefusal(recovering(reason));
  }
  expect(monitor.state).toMatchObject({ state: "recovering", reason: "epoch_changed", sinceMs: 4_000 });
  const fields = { namespace: "main", code: "store_recovering", explanation: "why" };
  expect(logged).toEqual([
    ["warn", "recovering", { ...fields, reason: "claimed" }],
    ["warn", "recovering", { ...fields, reason: "epoch_changed" }],
  ]);
});

test("a rejection at the run ceiling shows an active guard", () => {
  const { clock, logged, monitor } = monitorOn();
  const ceiling = new CoordinatorError("run_ceiling_reached", "wait", { retryAfterMs: 5 });
  clock.timeMs = 2_000;
  monitor.noteRefusal(ceiling);
  expect(monitor.state).toMatchObject({ state: "active", sinceMs: 1_000 });
  monitor.noteRefusal(new CoordinatorError("store_unavailable", "away"));
  monitor.noteRefusal(ceiling);
  expect(monitor.state).toMatchObject({ state: "active", sinceMs: 2_000 });
  const fields = { namespace: "main", code: null, reason: null, explanation: "runs are leased" };
  expect(logged.at(-1)).toEqual(["info", "active", fields]);
});

test("a heartbeat after the last run ends every state but run_space_exhausted", () => {
  const { monitor } = monitorOn();
  monitor.noteRefusal(new CoordinatorError("store_unavailable", "away"));
  monitor.noteSuccess(after(RUN_MAX));
  expect(monitor.state.state).toBe("active");
  monitor.noteRefusal(new CoordinatorError("run_space_exhausted", "the end"));
  monitor.noteSuccess(after(RUN_MAX));
  expect(monitor.state).toMatchObject({ state: "stopped", code: "run_space_exhausted" });
  monitor.noteSuccess(after(RUN_MAX - 1));
  expect(monitor.state.state).toBe("active");
});
