/** `serve`: what may be set, and how it is called. What it does is in serve.ts. */
import { hostname } from "node:os";
import type { Setting } from "@callnumber/protocol/operator";
import { PRINTABLE_PATTERN } from "@callnumber/protocol/wire";
import { Command, type Option } from "commander";
import { z } from "zod";
import { holdsToken } from "../text.js";
import { commandContextOf } from "./command-context.js";
import { withoutPasswords } from "./hidden-passwords.js";
import {
  acceptOption,
  checkedOption,
  DEFAULT_PORT,
  namespaceOption,
  setting,
  storeOption,
  switchOption,
  wholeNumber,
} from "./options.js";
import type { ServeOptions } from "./serve.js";
import { limitOptions } from "./serve-limits.js";
import { tlsOptions } from "./serve-tls.js";
import { allowHostOption } from "./serve-tokens.js";
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
  for (const option of settings()) command.addOption(setting(option));
  return command.addOption(
    switchOption("create", "make an embedded store where there is none yet (a terminal needs no flag)"),
  );
}

function settings(): readonly Option[] {
  return [
    storeOption(),
    namespaceOption(),
    checkedOption("--host <address>", "address to listen on", z.string().min(1)).default("127.0.0.1"),
    checkedOption("--port <port>", "port to listen on; 0 takes any free one", wholeNumber(0, 65_535)).default(
      DEFAULT_PORT,
    ),
    checkedOption("--name <name>", "how this coordinator is called in the ledger", nameSchema()).default(hostname()),
    checkedOption("--log-level <level>", `one of ${LOG_LEVELS.join(", ")}`, z.enum(LOG_LEVELS)).default(
      undefined,
      "info; on a terminal, warnings as text and no JSON",
    ),
    witnessFolderOption(),
    checkedOption(
      "--ledger-dir <path>",
      "where leases go that are trimmed from the store (see retention); must exist",
      z.string().min(1),
    ),
    acceptOption(),
    switchOption(
      "allow-network-file-system",
      "keep an embedded store on a file system that other machines could use too: none of them ever may",
    ),
    tokensFileOption(),
    switchOption(
      "listen-without-tokens",
      "ask nobody for a token, on any address: whoever reaches the port may do everything",
    ),
    allowHostOption(),
    switchOption(
      "public-inspect",
      "answer under /v1/public/ whether a call number can exist, and nothing else: for an archive's page about missing messages",
    ),
    ...tlsOptions(),
    ...limitOptions(),
  ];
}

function nameSchema(): z.ZodType<string> {
  const schema = z.string().min(1).max(64).regex(PRINTABLE_PATTERN, "holds an unprintable character");
  return schema.refine((name) => !holdsToken(name), "must hold no token: it stands in the ledger");
}

/** Said by its place and user instead; it may hold a password. */
const NOT_TOLD: ReadonlySet<string> = new Set(["store", "storeFile"]);

/** By the option parser's own word; what it does not name is a default. */
const ORIGINS: Readonly<Record<string, Setting["from"]>> = { cli: "command line", env: "environment" };

/** The options as settings, of a command whose words have been read: in words, without secrets, and where each comes from. */
function settingsIn(command: Command): readonly Setting[] {
  return command.options
    .filter((option) => !NOT_TOLD.has(option.attributeName()))
    .map((option) => {
      const name = option.attributeName();
      const value = inWords(command.getOptionValue(name)) ?? option.defaultValueDescription ?? null;
      return { name: option.name(), value, from: ORIGINS[command.getOptionValueSource(name) ?? ""] ?? "default" };
    });
}

function inWords(value: unknown): string | null {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return null;
  const [text = null] = withoutPasswords([value === true ? "yes" : value === false ? "no" : String(value)]);
  return text;
}
