/** The table of sub-commands. The help of the program lists them without loading any of their modules. */
import type { Command } from "commander";

export interface CommandEntry {
  readonly group: string;
  /** An imperative verb and its object, at most 60 characters. */
  readonly summary: string;
  /** `decode` needs no store, and only `serve` an HTTP server. */
  readonly load: () => Promise<Command>;
}

export const LOOK_UP = "Look up:";

/** In the order of the help. */
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  serve: {
    group: "Run:",
    summary: "Run a coordinator",
    load: async () => (await import("./commands/serve.js")).serveCommand(),
  },
  init: {
    group: "Run:",
    summary: "Make a namespace in a store",
    load: async () => (await import("./commands/init.js")).initCommand(),
  },
  next: {
    group: "Run:",
    summary: "Make call numbers",
    load: async () => (await import("./commands/next.js")).nextCommand(),
  },
  inspect: {
    group: LOOK_UP,
    summary: "Show what a call number is and who made it",
    load: async () => (await import("./commands/inspect.js")).inspectCommand(),
  },
  runs: {
    group: LOOK_UP,
    summary: "List the newest leases, or show one run",
    load: async () => (await import("./commands/runs.js")).runsCommand(),
  },
  status: {
    group: LOOK_UP,
    summary: "Show usage, forecasts and alarms",
    load: async () => (await import("./commands/status.js")).statusCommand(),
  },
  export: {
    group: LOOK_UP,
    summary: "Write the ledger as NDJSON or CSV",
    load: async () => (await import("./commands/export.js")).exportCommand(),
  },
  decode: {
    group: LOOK_UP,
    summary: "Decode call numbers to version, run and sequence (offline)",
    load: async () => (await import("./commands/decode.js")).decodeCommand(),
  },
  encode: {
    group: LOOK_UP,
    summary: "Encode version, run and sequence as a call number (offline)",
    load: async () => (await import("./commands/encode.js")).encodeCommand(),
  },
  explain: {
    group: LOOK_UP,
    summary: "Explain an error code, and how to fix it",
    load: async () => (await import("./commands/explain.js")).explainCommand(),
  },
  complete: {
    group: LOOK_UP,
    summary: "Complete commands and options in a shell",
    load: async () => (await import("./commands/complete.js")).completeCommand(),
  },
  doctor: {
    group: "Maintain:",
    summary: "Check whether a store could lose or repeat runs",
    load: async () => (await import("./commands/doctor.js")).doctorCommand(),
  },
  recover: {
    group: "Maintain:",
    summary: "Recover a store that was lost or rolled back",
    load: async () => (await import("./commands/recover.js")).recoverCommand(),
  },
  backup: {
    group: "Maintain:",
    summary: "Copy the embedded store, also while it is in use",
    load: async () => (await import("./commands/backup.js")).backupCommand(),
  },
  token: {
    group: "Maintain:",
    summary: "Create, list and revoke access tokens",
    load: async () => (await import("./commands/token.js")).tokenCommand(),
  },
  retention: {
    group: "Maintain:",
    summary: "Set how long leases stay in the store",
    load: async () => (await import("./commands/retention.js")).retentionCommand(),
  },
  move: {
    group: "Maintain:",
    summary: "Move namespaces to another store",
    load: async () => (await import("./commands/move.js")).moveCommand(),
  },
  "advance-version": {
    group: "Maintain:",
    summary: "Continue in the next version when a run space ends",
    load: async () => (await import("./commands/advance-version.js")).advanceVersionCommand(),
  },
  schemes: {
    group: "Other schemes:",
    summary: "Compare, parse and mint other schemes' numbers (offline)",
    load: async () => (await import("./commands/schemes.js")).schemesCommand(),
  },
};
