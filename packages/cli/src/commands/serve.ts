/** `serve`: its options. ../serve/run-coordinator.ts runs the coordinator. */
import { hostname } from "node:os";
import { CONCURRENT_LEASES_DEFAULT, HOLDER_ALLOWANCE, TOKEN_ALLOWANCE } from "@callnumber/coordinator/internal";
import { PRINTABLE_PATTERN } from "@callnumber/protocol/api";
import type { Setting } from "@callnumber/protocol/schemas";
import { Command, type Option } from "commander";
import * as z from "zod";
import { redactSecrets } from "../invocation.js";
import {
  checkedOption,
  choiceOption,
  DEFAULT_PORT,
  grouped,
  namespaceOption,
  negation,
  STORE_GROUP,
  setting,
  switchOption,
  tokensFileOption,
  wholeNumber,
} from "../options.js";
import type { ServeOptions } from "../serve/run-coordinator.js";
import { addStoreOptions, checkpointDirOption, commandContextOf, ignoreFindingsOption } from "../store-options.js";

const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;

export function makeCommand(): Command {
  const command = new Command("serve")
    .description(
      "Leases runs to importers over HTTP until it is stopped (Ctrl-C, SIGTERM). Messages for people go to standard error, the log " +
        "(JSON, a line for each event) to standard output.",
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber serve\n  $ callnumber serve --store redis://127.0.0.1:6379 --port 7300\n  $ callnumber serve --store sqlite:/var/lib/callnumber/store.db",
    )
    .action(async (options: ServeOptions, command: Command) => {
      // The help lists the options, and needs no server.
      const { runCoordinator } = await import("../serve/run-coordinator.js");
      const mustServeNamespace = command.getOptionValueSource("namespace") !== "default";
      const [settings, commands] = [settingsOf(command), commandContextOf(command)];
      return runCoordinator(options, { mustServeNamespace, settings, commands });
    });
  const description = "make an embedded store where there is none yet (default on a terminal)";
  const create = switchOption("create", description).helpGroup(STORE_GROUP);
  return addStoreOptions(command, [...settingOptions().map(setting), create, negation(create)]);
}

/** Labels of letters, digits, `-` and `_`, as names of hosts and containers are. Other rules decide about addresses. */
const HOST_NAME = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/;
/** With fewer, the console of an operator and some importers would exclude each other. */
const CONNECTIONS_MIN = 16;

function settingOptions(): readonly Option[] {
  const name = z.string().min(1).max(64).regex(PRINTABLE_PATTERN, "holds an unprintable character");
  const hostNames = z
    .string()
    .transform((text) => text.toLowerCase().split(","))
    .refine(
      (all) => all.every((host) => HOST_NAME.test(host)),
      "must be names of hosts without ports, with commas between them",
    );
  return [
    ...grouped(
      STORE_GROUP,
      namespaceOption(),
      checkpointDirOption(),
      checkedOption("--ledger-dir <path>", "directory for leases trimmed from the store (see retention); must exist"),
      ignoreFindingsOption(),
      switchOption(
        "allow-network-file-system",
        "keep an embedded store on a network file system; no other machine may ever use it",
      ),
    ),
    ...grouped(
      "Listening:",
      checkedOption("--host <address>", "address to listen on").default("127.0.0.1"),
      checkedOption("--port <port>", "port to listen on; 0 takes any free one", wholeNumber(0, 65_535)).default(
        DEFAULT_PORT,
      ),
    ),
    ...grouped(
      "Access:",
      tokensFileOption(),
      switchOption("listen-without-tokens", "accept every request without a token, on any address"),
      checkedOption(
        "--allow-host <names>",
        "without tokens: host names that requests may name, in addition to localhost (and to addresses with --listen-without-tokens)",
        hostNames,
      ).default([], "none"),
      switchOption("public-inspect", "answer without a token whether a call number can exist, under /v1/public/"),
    ),
    ...grouped(
      "TLS:",
      checkedOption("--tls-certificate <file>", "the server's certificate, PEM; turns on HTTPS"),
      checkedOption("--tls-key <file>", "the certificate's key, PEM; only its owner and group may read it"),
      checkedOption("--tls-client-ca <file>", "accept only clients with a certificate of this authority, PEM"),
      switchOption("listen-without-tls", "listen without encryption on an address that other machines reach"),
    ),
    ...grouped("Limits:", ...limitOptions()),
    ...grouped(
      "Log:",
      checkedOption("--coordinator-name <name>", "name of this coordinator in the log and ledger", name).default(
        hostname(),
        "the host name",
      ),
      choiceOption("--log-level <level>", "least severe events in the log", LOG_LEVELS).default(
        undefined,
        "info; on a terminal, warnings as text and no JSON",
      ),
    ),
  ];
}

export function limitOptions(): readonly Option[] {
  const [token, holder] = [TOKEN_ALLOWANCE, HOLDER_ALLOWANCE];
  return [
    limitOption("--token-burst-runs <n>", "runs that one token may lease at once", token.atOnce, 1_000_000),
    limitOption("--token-runs-per-second <n>", "runs per second for a token after that", token.perSecond, 100_000),
    limitOption("--holder-burst-runs <n>", "runs that one holder may lease at once", holder.atOnce, 1_000_000),
    limitOption("--holder-runs-per-second <n>", "runs per second for a holder after that", holder.perSecond, 100_000),
    checkedOption(
      "--max-concurrent-leases <n>",
      "leases and reports in flight for a token (without tokens: an address); twice as many in all",
      wholeNumber(1, 10_000),
    ).default(CONCURRENT_LEASES_DEFAULT),
    checkedOption(
      "--max-connections <n>",
      "open connections at a time; those without an accepted token, half as many",
      wholeNumber(CONNECTIONS_MIN, 100_000),
    ).default(2_048),
  ];
}

/** 0 is no limit. */
function limitOption(flags: string, description: string, byDefault: number, max: number): Option {
  const number = z.preprocess((text) => (text === "none" ? "0" : text), wholeNumber(0, max));
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
  return redactSecrets(String(value));
}
