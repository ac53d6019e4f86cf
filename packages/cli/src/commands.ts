/** The table of sub-commands. The help of the program lists them without loading any of their modules. */
import type { Command } from "commander";

export const LOOK_UP = "Look up:";

/** An imperative verb and its object, at most 60 characters; and the module, which is loaded when the command is run or explained. */
type Entry = readonly [summary: string, load: () => Promise<{ readonly makeCommand: () => Command }>];

/** By group, in the order of the help. */
const GROUPS: Readonly<Record<string, Readonly<Record<string, Entry>>>> = {
  "Run:": {
    serve: ["Run a coordinator", () => import("./commands/serve.js")],
    init: ["Make a namespace in a store", () => import("./commands/init.js")],
    next: ["Generate call numbers", () => import("./commands/next.js")],
  },
  [LOOK_UP]: {
    inspect: ["Show what a call number is and who made it", () => import("./commands/inspect.js")],
    runs: ["List the newest leases, or show one run", () => import("./commands/runs.js")],
    status: ["Show usage, forecasts and alarms", () => import("./commands/status.js")],
    export: ["Write the ledger as NDJSON or CSV", () => import("./commands/export.js")],
    decode: ["Decode call numbers to version, run and sequence (offline)", () => import("./commands/decode.js")],
    encode: ["Encode version, run and sequence as a call number (offline)", () => import("./commands/encode.js")],
    explain: ["Explain an error code, and how to fix it", () => import("./commands/explain.js")],
    conformance: ["Check whether a client of your own keeps the rules", () => import("./commands/conformance.js")],
    complete: ["Complete commands and options in a shell", () => import("./commands/complete.js")],
  },
  "Maintain:": {
    doctor: ["Check whether a store could lose or repeat runs", () => import("./commands/doctor.js")],
    recover: ["Recover a store that was lost or rolled back", () => import("./commands/recover.js")],
    backup: ["Copy the embedded store, also while it is in use", () => import("./commands/backup.js")],
    token: ["Create, list and revoke access tokens", () => import("./commands/token.js")],
    retention: ["Set how long leases stay in the store", () => import("./commands/retention.js")],
    move: ["Move namespaces to another store", () => import("./commands/move.js")],
    "advance-version": [
      "Continue in the next version when a run space ends",
      () => import("./commands/advance-version.js"),
    ],
  },
  "Other schemes:": {
    schemes: ["Compare, parse and generate other schemes' numbers (offline)", () => import("./commands/schemes.js")],
  },
};

interface CommandEntry {
  readonly group: string;
  readonly summary: string;
  readonly load: Entry[1];
}

export const COMMANDS: Readonly<Record<string, CommandEntry>> = Object.fromEntries(
  Object.entries(GROUPS).flatMap(([group, entries]) =>
    Object.entries(entries).map(([name, [summary, load]]) => [name, { group, summary, load }]),
  ),
);
