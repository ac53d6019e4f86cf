/** The log of `serve` on a terminal. */
import { expect, test } from "vitest";
import { terminalLog } from "../src/serve/log.js";

function linesOf(level: "info" | "warn" | "error", fields: object, event: string): string[] {
  const lines: string[] = [];
  terminalLog((text) => lines.push(text))[level](fields, event);
  return lines;
}

test.each<[what: string, level: "info" | "warn" | "error", fields: object, event: string, expected: string[]]>([
  ["nothing of an event that is no warning", "info", { namespace: "main", runCount: 1 }, "lease", []],
  [
    "nothing of a state that a recovery ends at once",
    "warn",
    { namespace: "main", code: "store_recovering", reason: "heartbeat_expired", explanation: "x" },
    "recovering",
    [],
  ],
  [
    "a recovery as its one line",
    "warn",
    { namespace: "main", mark: 9, explanation: "Idle for 2 h: skipped 690 runs, leasing in 4 s" },
    "jump",
    ["Idle for 2 h: skipped 690 runs, leasing in 4 s"],
  ],
  [
    "the namespace of a recovery when it is not the default one",
    "warn",
    { namespace: "lists", explanation: "Idle for 2 h: skipped 690 runs, leasing in 4 s" },
    "jump",
    ["Idle for 2 h: skipped 690 runs, leasing in 4 s (namespace lists)"],
  ],
  [
    "what ends leasing",
    "warn",
    { namespace: "main", code: "store_unavailable", explanation: "The store does not answer" },
    "recovering",
    ["Warning, namespace main: The store does not answer (recovering)"],
  ],
  [
    "the cause of a failure",
    "warn",
    { reason: "no\nline" },
    "heartbeat_failed",
    ["Warning: no\\u{a}line (heartbeat_failed)"],
  ],
  [
    "a finding with its remedy",
    "error",
    { code: "store_eviction_enabled", what: "It evicts", remedy: "Set noeviction" },
    "preflight_finding",
    ["Error: It evicts. Set noeviction (preflight_finding)"],
  ],
  [
    "the fields of an event without a cause, and no nonce",
    "warn",
    { namespace: "main", nonce: "secret", aheadMs: 5000, holder: { name: "importer" } },
    "clock_skew",
    ['Warning, namespace main: aheadMs 5000, holder {"name":"importer"} (clock_skew)'],
  ],
  ["nothing of an event without fields", "warn", {}, "sighup_ignored", []],
])("the terminal shows %s", (_, level, fields, event, expected) => {
  expect(linesOf(level, fields, event)).toEqual(expected);
});
