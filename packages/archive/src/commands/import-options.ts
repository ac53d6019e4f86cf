/** The command line of an import: options with their defaults, checked, and the help text. */
import { availableParallelism } from "node:os";
import { DEFAULT_NAMESPACE, NAMESPACE_PATTERN } from "@callnumber/protocol/api";
import * as z from "zod";
import type { ImportSettings } from "../importing/import.js";
import { SAME_RULES, type SameRule } from "../message/sameness.js";
import { STDIN } from "../sources/source.js";
import { archivePath, badUsage, check, parse, wholeNumber } from "./command.js";

const PROCESS_COUNT_MAX = 64;
export const DEFAULT_PROCESS_COUNT = Math.min(4, availableParallelism());
const DEFAULT_COORDINATOR = "http://127.0.0.1:7300";
const DEFAULT_WAIT_SECONDS = 30;
const WAIT_SECONDS_MAX = 3600;
const DEFAULT_SETTLE_SECONDS = 10;
const SETTLE_SECONDS_MAX = 3600;

/** By the name of the option, the strongest rule first. */
const SAME_NAMES = ["separator", "bytes", "message", "body"] as const;
const LIST_PATTERN = /^(?!\.{1,2}$)[^\p{C}\p{Z}](?:[^\p{C}]{0,98}[^\p{C}\p{Z}])?$/u;

export const HELP_TEXT = `Gives every message of your mail archives a call number and stores it under
that number.

  callnumber-archive import <mbox or maildir>… --archive FILE [options]

  callnumber-archive import letters.mbox --archive letters.db
  callnumber-archive import ~/Maildir lists/*.mbox --archive mail.db --json

Each argument is an mbox file, also one that gzip has compressed, a maildir (a
directory with cur/ and new/ inside), or a directory of mboxes, of .eml files or
of MH. Maildirs inside are arguments of their own. Instead of all of them, - is
one message on standard input, as procmail and .forward deliver it.

Options
  --archive FILE       the SQLite file to store the messages in; created if it
                       does not exist. Required
  --coordinator URL    the coordinator that leases runs (start one with:
                       callnumber serve; default ${DEFAULT_COORDINATOR})
  --namespace NAME     the namespace to take numbers from (default ${DEFAULT_NAMESPACE})
  --token-file FILE    a file with the token that the coordinator requires
  --list NAME          the mailing list that the messages belong to; default:
                       what their List-Id says
  --numbers FILE       the file of numbers: messages get the number that they
                       have in it, and each new number is appended, so that
                       numbers survive the loss of the archive
  --processes N        how many processes import in parallel, 1 to ${PROCESS_COUNT_MAX}
                       (default ${DEFAULT_PROCESS_COUNT})
  --wait SECONDS       how long to wait for an unreachable coordinator,
                       1 to ${WAIT_SECONDS_MAX} (default ${DEFAULT_WAIT_SECONDS})
  --follow             go on with what arrives, until the process is stopped;
                       prints a line for each message
  --settle SECONDS     with --follow: how long an mbox must be unchanged before
                       its last message counts as complete, 1 to ${SETTLE_SECONDS_MAX}
                       (default ${DEFAULT_SETTLE_SECONDS})
  --same RULE          which messages are the same: those with equal
                       separator and bytes (separator), equal bytes (bytes),
                       equal but for what stores and readers add (message,
                       the default), or equal Message-ID and body (body)
  --same-content WHAT  what to do with a message that is the same as a stored
                       one from another place: skip it and list the place
                       (default), number it again, or ask when the rest is
                       imported
  --json               print the summary as one JSON object; with --follow,
                       each message and the summary as a line of JSON
  -h, --help           print this text

Environment: CALLNUMBER_COORDINATOR, CALLNUMBER_NAMESPACE and
CALLNUMBER_TOKEN_FILE replace the options; CALLNUMBER_TOKEN is the token itself.

The same command again adds nothing twice, and continues where an import was
interrupted. Nothing is ever overwritten. What can't be read is stored as it is
and reported by source, number and byte. README.md has the details.

Exit status: 0 all is stored · 1 an error, or parts that could not be stored
             2 a wrong command line · 130, 143 stopped; 0 with --follow
             3 a person must act first: numbers repeat, or are another store's,
               or the archive was replaced or is damaged
             75 with -: not stored yet, so that the mail program tries again
`;

const OPTIONS = {
  archive: { type: "string" },
  coordinator: { type: "string" },
  namespace: { type: "string" },
  "token-file": { type: "string" },
  processes: { type: "string", default: String(DEFAULT_PROCESS_COUNT) },
  wait: { type: "string", default: String(DEFAULT_WAIT_SECONDS) },
  follow: { type: "boolean", default: false },
  settle: { type: "string", default: String(DEFAULT_SETTLE_SECONDS) },
  list: { type: "string" },
  numbers: { type: "string" },
  same: { type: "string", default: "message" },
  "same-content": { type: "string", default: "skip" },
  json: { type: "boolean", default: false },
} as const;

const settingsSchema = z.object({
  archive: archivePath("--archive letters.db"),
  coordinator: z.url({ protocol: /^https?$/, error: `must be a URL, as ${DEFAULT_COORDINATOR}` }),
  namespace: z.string().regex(NAMESPACE_PATTERN, "must have 1 to 63 characters: a-z, 0-9, dot, dash, underscore"),
  "token-file": z.string().min(1, "must name a file").optional(),
  processes: wholeNumber(1, PROCESS_COUNT_MAX),
  wait: wholeNumber(1, WAIT_SECONDS_MAX),
  follow: z.boolean(),
  settle: wholeNumber(1, SETTLE_SECONDS_MAX),
  list: z.string().regex(LIST_PATTERN, "must have 1 to 100 printable characters, and not be . or ..").optional(),
  numbers: z.string().min(1, "must name a file").optional(),
  same: z.enum(SAME_NAMES, `must be ${SAME_NAMES.join(", ")}`),
  "same-content": z.enum(["skip", "number", "ask"], "must be skip, number or ask"),
});

export interface CommandLine {
  readonly json: boolean;
  /** When the import has skipped messages of the same content, ask whether to number them. */
  readonly asks: boolean;
  readonly settings: ImportSettings;
}

/**
 * Parses and checks the arguments. The token itself is only read from the environment: every user can read a command line.
 * @throws ArchiveError `bad_usage`.
 */
export function parseCommandLine(args: readonly string[], environment: NodeJS.ProcessEnv): CommandLine {
  const { values, positionals } = parse(args, OPTIONS);
  const { json, ...given } = values;
  const options = {
    ...given,
    coordinator: given.coordinator ?? environment["CALLNUMBER_COORDINATOR"] ?? DEFAULT_COORDINATOR,
    namespace: given.namespace ?? environment["CALLNUMBER_NAMESPACE"] ?? DEFAULT_NAMESPACE,
    "token-file": given["token-file"] ?? environment["CALLNUMBER_TOKEN_FILE"],
  };
  const checked = check(settingsSchema, options);
  if (positionals.length === 0) throw badUsage("no source: name at least one mbox file or maildir");
  if (positionals.includes(STDIN) && (positionals.length > 1 || checked.follow)) {
    throw badUsage("- is one message on standard input: pass it alone, without --follow");
  }
  const {
    wait,
    "token-file": tokenFile,
    "same-content": whatToDo,
    same,
    list,
    numbers: numbersFile,
    follow,
    settle,
    ...forImport
  } = checked;
  const asks = whatToDo === "ask";
  if (asks && json) throw badUsage("--same-content ask and --json exclude each other: pass skip or number");
  // What follows a mailbox reads a rotated mbox, and after a restart everything, again.
  if (follow && whatToDo !== "skip") throw badUsage("--follow needs --same-content skip");
  const settings = {
    ...forImport,
    sources: positionals,
    token: environment["CALLNUMBER_TOKEN"],
    tokenFile,
    list,
    weakestRule: SAME_RULES[SAME_NAMES.indexOf(same)] as SameRule,
    numbersFile,
    sameContent: asks ? ("skip" as const) : whatToDo,
    waitTimeoutMs: wait * 1000,
    waitsForever: follow,
    follow: follow ? { settleMs: settle * 1000 } : undefined,
  };
  return { json, asks, settings };
}
