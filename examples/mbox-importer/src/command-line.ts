/** The command line: options with their defaults, checked. Every refusal names the option, the value and the way out. */

import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { DEFAULT_NAMESPACE, NAMESPACE_PATTERN } from "@callnumber/protocol/wire";
import { z } from "zod";
import { ImporterError } from "./errors.js";
import type { ImportSettings } from "./importing/import.js";
import { printable } from "./report/printable.js";

export const PROCESS_COUNT_MAX = 64;
export const DEFAULT_PROCESS_COUNT = Math.min(4, availableParallelism());
export const DEFAULT_COORDINATOR = "http://127.0.0.1:7300";
export const DEFAULT_WAIT_SECONDS = 30;
const WAIT_SECONDS_MAX = 3600;

export interface CommandLine {
  readonly help: boolean;
  readonly json: boolean;
  /** Undefined when help was asked for. */
  readonly settings: ImportSettings | undefined;
}

const OPTIONS = {
  archive: { type: "string" },
  coordinator: { type: "string" },
  namespace: { type: "string" },
  "token-file": { type: "string" },
  processes: { type: "string", default: String(DEFAULT_PROCESS_COUNT) },
  refill: { type: "string", default: "ahead" },
  wait: { type: "string", default: String(DEFAULT_WAIT_SECONDS) },
  json: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

const settingsSchema = z.object({
  archive: z
    .string({ error: "is missing: name the SQLite file that the messages go to, as in --archive letters.db" })
    .min(1, "must name a file"),
  coordinator: z.url({
    protocol: /^https?$/,
    error: `must be the address of a coordinator, as ${DEFAULT_COORDINATOR}`,
  }),
  namespace: z.string().regex(NAMESPACE_PATTERN, "must have 1 to 63 characters: a-z, 0-9, dot, dash, underscore"),
  "token-file": z.string().min(1, "must name a file").optional(),
  processes: wholeNumber(1, PROCESS_COUNT_MAX),
  refill: z.enum(["ahead", "when_empty"], { error: "must be ahead or when_empty" }),
  wait: wholeNumber(1, WAIT_SECONDS_MAX),
});

/** What the environment says, as for the command `callnumber`. The token only stands there: a command line can be read by every user. */
export interface Environment {
  readonly CALLNUMBER_COORDINATOR?: string | undefined;
  readonly CALLNUMBER_NAMESPACE?: string | undefined;
  readonly CALLNUMBER_TOKEN?: string | undefined;
  readonly CALLNUMBER_TOKEN_FILE?: string | undefined;
}

/** @throws ImporterError `bad_usage`. */
export function parseCommandLine(args: readonly string[], environment: Environment): CommandLine {
  const { values, positionals } = parsed(args);
  const { help, json, ...given } = values;
  const options = {
    ...given,
    coordinator: given.coordinator ?? environment.CALLNUMBER_COORDINATOR ?? DEFAULT_COORDINATOR,
    namespace: given.namespace ?? environment.CALLNUMBER_NAMESPACE ?? DEFAULT_NAMESPACE,
    "token-file": given["token-file"] ?? environment.CALLNUMBER_TOKEN_FILE,
  };
  if (help) return { help, json, settings: undefined };
  const checked = settingsSchema.safeParse(options);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    const name = String(issue?.path[0]);
    const value = options[name as keyof typeof options];
    throw badUsage(`--${name}${value === undefined ? "" : ` ${shown(value)}`} ${issue?.message}`);
  }
  if (positionals.length === 0) throw badUsage("no source: name at least one mbox file or maildir");
  const { wait, "token-file": tokenFile, ...settings } = checked.data;
  const bearer = { token: environment.CALLNUMBER_TOKEN, tokenFile };
  return { help, json, settings: { ...settings, ...bearer, sources: positionals, waitTimeoutMs: wait * 1000 } };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw badUsage((error as Error).message);
  }
}

function wholeNumber(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, message)
    .transform(Number)
    .pipe(z.number().min(min, message).max(max, message));
}

function badUsage(message: string): ImporterError {
  return new ImporterError("bad_usage", printable(message, 500), "mbox-importer --help tells how to call it.");
}

function shown(value: string): string {
  return JSON.stringify(value);
}
