/** What the subcommands share: their shape, and how a command line is parsed and checked. Each error names the option and its value. */
import { parseArgs } from "node:util";
import * as z from "zod";
import { ArchiveError } from "../errors.js";
import { printable } from "../terminal.js";

export interface Command {
  readonly help: string;
  /** @throws ArchiveError; the exit status is 1 then, or 2 for `bad_usage`. */
  run(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void>;
}

interface Option {
  readonly type: "string" | "boolean";
  readonly multiple?: boolean;
  readonly default?: string | boolean;
}

type Parsed<T extends Record<string, Option>> = ReturnType<
  typeof parseArgs<{ args: string[]; options: T; allowPositionals: true }>
>;

/** Splits the arguments into options and the others. @throws ArchiveError `bad_usage`. */
export function parse<const T extends Record<string, Option>>(args: readonly string[], options: T): Parsed<T> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw badUsage(inOurWords(error as NodeJS.ErrnoException));
  }
}

/** What `parseArgs` rejects. */
function inOurWords({ code, message }: NodeJS.ErrnoException): string {
  const [, name = ""] = /'(-{1,2}[^\s'=,]*)/.exec(message) ?? [];
  if (code === "ERR_PARSE_ARGS_UNKNOWN_OPTION") return `there is no option ${name}`;
  return /does not take/.test(message) ? `${name} takes no value` : `${name} needs a value`;
}

/** Checks options by a schema. @throws ArchiveError `bad_usage` with the first option that is wrong, and its value. */
export function check<T>(schema: z.ZodType<T>, options: Readonly<Record<string, unknown>>): T {
  const checked = schema.safeParse(options);
  if (checked.success) return checked.data;
  const [issue] = checked.error.issues;
  const name = String(issue?.path[0]);
  const value = options[name];
  throw badUsage(`--${name}${value === undefined ? "" : ` ${JSON.stringify(value)}`} ${issue?.message}`);
}

export function wholeNumber(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, message)
    .transform(Number)
    .pipe(z.number().min(min, message).max(max, message));
}

export function archivePath(example: string) {
  return z.string({ error: `is missing: name the archive's SQLite file, as in ${example}` }).min(1, "must name a file");
}

export function badUsage(message: string): ArchiveError {
  return new ArchiveError("bad_usage", `${printable(message, 500)}.\nRun callnumber-archive --help for the commands.`);
}
