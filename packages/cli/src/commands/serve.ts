/** `serve`: its options. ../serve/server.ts runs the coordinator. */
import { hostname } from "node:os";
import { CONCURRENT_LEASES_DEFAULT, HOLDER_ALLOWANCE, TOKEN_ALLOWANCE } from "@callnumber/coordinator/operator";
import type { Setting } from "@callnumber/protocol/operator";
import { PRINTABLE_PATTERN } from "@callnumber/protocol/wire";
import { Command, type Option } from "commander";
import { z } from "zod";
import {
  addOptions,
  checkedOption,
  DEFAULT_PORT,
  namespaceOption,
  negation,
  setting,
  switchOption,
  tokensFileOption,
  wholeNumber,
} from "../options.js";
import { redactUrl } from "../redact-url.js";
import type { ServeOptions } from "../serve/server.js";
import { checkpointDirOption, commandContextOf, ignoreFindingsOption, storeOption } from "../store-options.js";

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
      // The help lists the options, and needs no server.
      const { serve } = await import("../serve/server.js");
      const mustServeNamespace = command.getOptionValueSource("namespace") !== "default";
      return serve(options, { mustServeNamespace, settings: settingsOf(command), commands: commandContextOf(command) });
    });
  return addOptions(command, [
    ...settingOptions().map(setting),
    switchOption("create", "make an embedded store where there is none yet (default on a terminal)"),
    negation("create"),
  ]);
}

function settingOptions(): readonly Option[] {
  const name = z.string().min(1).max(64).regex(PRINTABLE_PATTERN, "holds an unprintable character");
  const ledgerDir = "where leases go that are trimmed from the store (see retention); must exist";
  return [
    storeOption(),
    namespaceOption(),
    checkedOption("--host <address>", "address to listen on", z.string().min(1)).default("127.0.0.1"),
    checkedOption("--port <port>", "port to listen on; 0 takes any free one", wholeNumber(0, 65_535)).default(
      DEFAULT_PORT,
    ),
    checkedOption("--coordinator-name <name>", "how this coordinator is called in the ledger", name).default(
      hostname(),
    ),
    checkedOption("--log-level <level>", `one of ${LOG_LEVELS.join(", ")}`, z.enum(LOG_LEVELS)).default(
      undefined,
      "info; on a terminal, warnings as text and no JSON",
    ),
    checkpointDirOption(),
    checkedOption("--ledger-dir <path>", ledgerDir, z.string().min(1)),
    ignoreFindingsOption(),
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

/** Labels of letters, digits, `-` and `_`, as names of hosts and containers are. Other rules decide about addresses. */
const HOST_NAME = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/;

function allowHostOption(): Option {
  const names = z
    .string()
    .transform((text) => text.toLowerCase().split(","))
    .refine(
      (all) => all.every((name) => HOST_NAME.test(name)),
      "must be names of hosts without ports, with commas between them",
    );
  return checkedOption(
    "--allow-host <names>",
    "names under which requests are answered where nobody is asked for a token, beside localhost and addresses",
    names,
  ).default([], "none");
}

function tlsOptions(): readonly Option[] {
  const path = z.string().min(1);
  return [
    checkedOption("--tls-certificate <file>", "the server's certificate, PEM; with it HTTPS is spoken", path),
    checkedOption("--tls-key <file>", "the certificate's key, PEM; only its owner and group may read it", path),
    checkedOption("--tls-client-ca <file>", "let in only callers with a certificate of this authority, PEM", path),
    switchOption("listen-without-tls", "listen on an address that others reach, although nothing is encrypted"),
  ];
}

const BURST_MAX = 1_000_000;
const PER_SECOND_MAX = 100_000;
const AT_ONCE_MAX = 10_000;
/** With fewer, the console of an operator and some importers would exclude each other. */
const CONNECTIONS_LEAST = 16;
const CONNECTIONS_MAX = 100_000;
const CONNECTIONS_DEFAULT = 2_048;
/** No limit. */
const NONE = 0;

export function limitOptions(): readonly Option[] {
  const [token, holder] = [TOKEN_ALLOWANCE, HOLDER_ALLOWANCE];
  return [
    limitOption("--token-burst-runs <n>", "runs that one token may take at once", token.atOnce, BURST_MAX),
    limitOption(
      "--token-runs-per-second <n>",
      "runs a second that it may take after that",
      token.perSecond,
      PER_SECOND_MAX,
    ),
    limitOption("--holder-burst-runs <n>", "runs that one holder may take at once", holder.atOnce, BURST_MAX),
    limitOption(
      "--holder-runs-per-second <n>",
      "runs a second that it may take after that",
      holder.perSecond,
      PER_SECOND_MAX,
    ),
    checkedOption(
      "--max-concurrent-leases <n>",
      "leases and reports of one token (without tokens: one address) in flight at a time, and half of those of all; more fail with overloaded",
      wholeNumber(1, AT_ONCE_MAX),
    ).default(CONCURRENT_LEASES_DEFAULT),
    checkedOption(
      "--max-connections <n>",
      "open connections at a time; further ones are closed",
      wholeNumber(CONNECTIONS_LEAST, CONNECTIONS_MAX),
    ).default(CONNECTIONS_DEFAULT),
  ];
}

function limitOption(flags: string, description: string, byDefault: number, max: number): Option {
  const number = z.preprocess((text) => (text === "none" ? String(NONE) : text), wholeNumber(NONE, max));
  const whenUnset = `${byDefault}, none on loopback without tokens`;
  const option = checkedOption(flags, `${description}; none or 0: no limit (default: ${whenUnset})`, number);
  // The description alone, for doctor: the value follows from other options.
  return option.default(undefined, whenUnset);
}

/** The store is reported without its password instead. */
const NOT_REPORTED: ReadonlySet<string> = new Set(["store", "storeFile"]);

/** By the option parser's own names. Any other source is a default. */
const SOURCES: Readonly<Record<string, Setting["from"]>> = { cli: "command line", env: "environment" };

/** Returns the options of a parsed command as settings, without secrets, each with its source. */
function settingsOf(command: Command): readonly Setting[] {
  return command.options
    .filter((option) => !option.negate && !NOT_REPORTED.has(option.attributeName()))
    .map((option) => {
      const name = option.attributeName();
      const value = formatValue(command.getOptionValue(name)) ?? option.defaultValueDescription ?? null;
      return { name: option.name(), value, from: SOURCES[command.getOptionValueSource(name) ?? ""] ?? "default" };
    });
}

function formatValue(value: unknown): string | null {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return null;
  if (typeof value === "boolean") return String(value);
  return redactUrl(String(value));
}
