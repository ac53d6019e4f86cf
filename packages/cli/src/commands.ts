/** The table of sub-commands. The help of the program lists them without loading any of their modules. */
import type { Command } from "commander";

export interface CommandEntry {
  readonly group: string;
  /** An imperative verb and its object, at most 60 characters. */
  readonly summary: string;
  /** `decode` needs no store, and only `serve` an HTTP server. */
  readonly load: () => Promise<{ readonly makeCommand: () => Command }>;
}

export const LOOK_UP = "Look up:";

/** In the order of the help. */
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  serve: { group: "Run:", summary: "Run a coordinator", load: () => import("./commands/serve.js") },
  init: { group: "Run:", summary: "Make a namespace in a store", load: () => import("./commands/init.js") },
  next: { group: "Run:", summary: "Make call numbers", load: () => import("./commands/next.js") },
  inspect: {
    group: LOOK_UP,
    summary: "Show what a call number is and who made it",
    load: () => import("./commands/inspect.js"),
  },
  runs: {
    group: LOOK_UP,
    summary: "List the newest leases, or show one run",
    load: () => import("./commands/runs.js"),
  },
  status: { group: LOOK_UP, summary: "Show usage, forecasts and alarms", load: () => import("./commands/status.js") },
  export: { group: LOOK_UP, summary: "Write the ledger as NDJSON or CSV", load: () => import("./commands/export.js") },
  decode: {
    group: LOOK_UP,
    summary: "Decode call numbers to version, run and sequence (offline)",
    load: () => import("./commands/decode.js"),
  },
  encode: {
    group: LOOK_UP,
    summary: "Encode version, run and sequence as a call number (offline)",
    load: () => import("./commands/encode.js"),
  },
  explain: {
    group: LOOK_UP,
    summary: "Explain an error code, and how to fix it",
    load: () => import("./commands/explain.js"),
  },
  complete: {
    group: LOOK_UP,
    summary: "Complete commands and options in a shell",
    load: () => import("./commands/complete.js"),
  },
  doctor: {
    group: "Maintain:",
    summary: "Check whether a store could lose or repeat runs",
    load: () => import("./commands/doctor.js"),
  },
  recover: {
    group: "Maintain:",
    summary: "Recover a store that was lost or rolled back",
    load: () => import("./commands/recover.js"),
  },
  backup: {
    group: "Maintain:",
    summary: "Copy the embedded store, also while it is in use",
    load: () => import("./commands/backup.js"),
  },
  token: {
    group: "Maintain:",
    summary: "Create, list and revoke access tokens",
    load: () => import("./commands/token.js"),
  },
  retention: {
    group: "Maintain:",
    summary: "Set how long leases stay in the store",
    load: () => import("./commands/retention.js"),
  },
  move: { group: "Maintain:", summary: "Move namespaces to another store", load: () => import("./commands/move.js") },
  "advance-version": {
    group: "Maintain:",
    summary: "Continue in the next version when a run space ends",
    load: () => import("./commands/advance-version.js"),
  },
  schemes: {
    group: "Other schemes:",
    summary: "Compare, parse and mint other schemes' numbers (offline)",
    load: () => import("./commands/schemes.js"),
  },
};
