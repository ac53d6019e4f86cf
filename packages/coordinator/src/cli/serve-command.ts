/** `serve`: what may be set, and how it is called. What it does is in serve.ts. */
import { hostname } from "node:os";
import { PRINTABLE_PATTERN } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { z } from "zod";
import { holdsToken } from "../tokens-in-text.js";
import { commandContextOf } from "./command-context.js";
import { keepDaysOption, keepLeasesOption, ledgerFolderOption } from "./ledger-option.js";
import {
  acceptOption,
  checkedOption,
  DEFAULT_PORT,
  namespaceOption,
  storeOption,
  switchOption,
  wholeNumber,
} from "./options.js";
import type { ServeOptions } from "./serve.js";
import { connectionsOption } from "./serve-connections.js";
import { limitOptions } from "./serve-limits.js";
import { tlsOptions } from "./serve-tls.js";
import { allowHostOption } from "./serve-tokens.js";
import { settingsIn } from "./settings.js";
import { tokensFileOption } from "./tokens-file-option.js";
import { witnessFolderOption } from "./witness-option.js";

const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;

export function serveCommand(): Command {
  const command = new Command("serve")
    .summary("run a coordinator")
    .description(
      "Leases runs to importers over HTTP until it is told to stop (Ctrl-C, SIGTERM). What it says for people goes to standard " +
        "error, its log (JSON, a line for each event) to standard output.",
    )
    .addOption(storeOption())
    .addOption(namespaceOption())
    .addOption(checkedOption("--host <address>", "address to listen on", z.string().min(1)).default("127.0.0.1"))
    .addOption(
      checkedOption("--port <port>", "port to listen on; 0 takes any free one", wholeNumber(0, 65_535)).default(
        DEFAULT_PORT,
      ),
    )
    .addOption(
      checkedOption("--name <name>", "how this coordinator is called in the ledger", nameSchema()).default(hostname()),
    )
    .addOption(
      checkedOption("--log-level <level>", `one of ${LOG_LEVELS.join(", ")}`, z.enum(LOG_LEVELS)).default(
        undefined,
        "info; on a terminal, warnings as text and no JSON",
      ),
    )
    .addOption(witnessFolderOption())
    .addOption(ledgerFolderOption())
    .addOption(keepLeasesOption())
    .addOption(keepDaysOption())
    .addOption(acceptOption())
    .addOption(connectionsOption())
    .addOption(
      switchOption(
        "allow-network-file-system",
        "keep an embedded store on a file system that other machines could use too: none of them ever may",
      ),
    )
    .addOption(switchOption("create", "make an embedded store where there is none yet (a terminal needs no flag)"))
    .addOption(tokensFileOption())
    .addOption(
      switchOption(
        "listen-without-tokens",
        "ask nobody for a token, on any address: whoever reaches the port may do everything",
      ),
    )
    .addOption(allowHostOption())
    .addOption(
      switchOption(
        "public-inspect",
        "answer under /v1/public/ whether a call number can exist, and nothing else: for an archive's page about missing messages",
      ),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber serve\n  $ callnumber serve --store redis://127.0.0.1:6379 --port 7300\n  $ callnumber serve --store sqlite:/var/lib/callnumber/store.db",
    )
    .action(async (options: ServeOptions, command: Command) => {
      // `doctor` and the help ask what may be set, and need no server for it.
      const { serve } = await import("./serve.js");
      const mustServeNamespace = command.getOptionValueSource("namespace") !== "default";
      return serve(options, { mustServeNamespace, settings: settingsIn(command), commands: commandContextOf(command) });
    });
  for (const option of [...tlsOptions(), ...limitOptions()]) command.addOption(option);
  return command;
}

function nameSchema(): z.ZodType<string> {
  const schema = z.string().min(1).max(64).regex(PRINTABLE_PATTERN, "holds an unprintable character");
  return schema.refine((name) => !holdsToken(name), "must hold no token: it stands in the ledger");
}
