/** Options of several commands, each checked by zod: a bad value is rejected with its name. Settings can also be in the environment. */
import { DEFAULT_NAMESPACE, type KnownRunState, labelIn, type NamedRun } from "@callnumber/protocol/api";
import { holderSchema, ledgerFilter, namespaceSchema, runNameSchema } from "@callnumber/protocol/schemas";
import { type Command, InvalidArgumentError, Option } from "commander";
import * as z from "zod";

export const DEFAULT_PORT = 7300;

const booleanSchema = z
  .enum(["true", "false"], { error: "must be true or false" })
  .transform((text) => text === "true");

/** Headings of options in the help. Other options are below `Options:`. */
export const STORE_GROUP = "Store:";
const COORDINATOR_GROUP = "Coordinator:";

export function grouped(heading: string, ...options: readonly Option[]): readonly Option[] {
  return options.map((option) => option.helpGroup(heading));
}

/** Adds options, and to each switch that the environment can turn on its `--no-…`, which the help leaves out. */
export function addOptions(command: Command, options: readonly Option[]): Command {
  for (const option of options) {
    command.addOption(option);
    if (option.isBoolean() && option.envVar !== undefined) command.addOption(negation(option));
  }
  return command;
}

/** `--no-NAME`. Its group keeps it from beginning another one. */
export function negation(option: Option): Option {
  return new Option(`--no-${option.name()}`).hideHelp().helpGroup(option.helpGroupHeading ?? "Options:");
}

const notEmptySchema = z.string().min(1, "must not be empty");

/** An option whose value a schema checks. */
export function checkedOption(flags: string, description: string, schema: z.ZodType = notEmptySchema): Option {
  return new Option(flags, description).argParser((text) => checked(schema, text));
}

/**
 * Makes an option readable from the environment: `--tls-key` as CALLNUMBER_TLS_KEY. For what selects a store, a coordinator, a
 * namespace or a token, and for the settings of `serve`. Never for an argument or a confirmation: a variable set for one command
 * would confirm another.
 */
export function setting(option: Option): Option {
  return option.env(`CALLNUMBER_${option.name().toUpperCase().replaceAll("-", "_")}`);
}

/** A flag without a value. As a setting it has one, so that `CALLNUMBER_PUBLIC_INSPECT=false` is off. */
export function switchOption(name: string, description: string): Option {
  const parse = (text: string | undefined) => text === undefined || checked(booleanSchema, text);
  return new Option(`--${name}`, description).argParser(parse);
}

/** Not `Option.argChoices`: the help would list them twice. */
const choices = new WeakMap<Option, readonly string[]>();

/** Returns the possible values of a `choiceOption`; none for any other option. */
export function choicesOf(option: Option): readonly string[] {
  return choices.get(option) ?? [];
}

/** An option with one of a few values. */
export function choiceOption(flags: string, description: string, values: readonly string[]): Option {
  const list = values.join(", ");
  const schema = z.enum(values, { error: `must be one of ${list}` });
  const option = checkedOption(flags, `${description}: ${list}`, schema);
  choices.set(option, values);
  return option;
}

/** @throws InvalidArgumentError with the schema's message. */
export function checked<T>(schema: z.ZodType<T>, given: unknown): T {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  throw new InvalidArgumentError(result.error.issues.map(({ message }) => message).join("; "));
}

export function wholeNumber(min: number, max: number): z.ZodType<number> {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, message)
    .transform(Number)
    .pipe(z.number().min(min, message).max(max, message));
}

export function namespaceOption(group = COORDINATOR_GROUP, description = "namespace of the runs"): Option {
  const option = setting(checkedOption("--namespace <name>", description, namespaceSchema));
  return option.default(DEFAULT_NAMESPACE).helpGroup(group);
}

export function tokensFileOption(): Option {
  const description = "file of accepted tokens; only its owner may write it (mode 0600 or 0640)";
  return setting(checkedOption("--tokens-file <file>", description));
}

/** Which coordinator a command queries. */
export interface CoordinatorOptions {
  readonly coordinator: string;
  /** Undefined for the token of the environment, where there is one. */
  readonly tokenFile?: string | undefined;
  readonly json?: boolean;
}

export interface NamespaceOptions extends CoordinatorOptions {
  readonly namespace: string;
}

export function coordinatorOptions(): readonly Option[] {
  const url = z.url({ protocol: /^https?$/, error: "must be a URL such as http://127.0.0.1:7300" });
  const tokenFile = "file that holds the token, which others may not read; else CALLNUMBER_TOKEN";
  return grouped(
    COORDINATOR_GROUP,
    setting(checkedOption("--coordinator <url>", "URL of the coordinator", url)).default(
      `http://127.0.0.1:${DEFAULT_PORT}`,
    ),
    setting(checkedOption("--token-file <file>", tokenFile)),
  );
}

/** Which leases a command reads from the ledger. */
export interface FilterOptions {
  readonly holder?: string;
  readonly host?: string;
  readonly label?: readonly string[];
  readonly state?: KnownRunState;
  readonly from?: number;
  readonly to?: number;
  readonly fromRun?: NamedRun;
  readonly toRun?: NamedRun;
}

export function filterOptions(): readonly Option[] {
  const time = z
    .string()
    .transform((text) => Date.parse(text))
    .pipe(z.number({ error: "must be a time such as 2026-11-21 or 2026-11-21T08:00:00Z" }).min(0));
  const label = "only leases of holders with this label; may be given several times";
  return grouped(
    "Filters:",
    checkedOption("--holder <name>", "only leases of the holder with this name", holderSchema.shape.name),
    checkedOption("--host <name>", "only leases of holders on this host"),
    new Option("--label <name=value>", label).argParser((text: string, before: readonly string[] = []) => {
      if (labelIn(text).includes("")) throw new InvalidArgumentError("must be name=value");
      return [...before, text];
    }),
    choiceOption("--state <state>", "only leases in this state", ledgerFilter.state[0].unwrap().options),
    checkedOption("--from <time>", "leased at this time or later", time),
    checkedOption("--to <time>", "leased before this time", time),
    checkedOption("--from-run <run>", "only leases that hold this run or a later one", runNameSchema),
    checkedOption("--to-run <run>", "only leases that hold this run or an earlier one", runNameSchema),
  );
}

export function filterQuery({ holder, host, label, state, from, to, fromRun, toRun }: FilterOptions): URLSearchParams {
  const query = new URLSearchParams((label ?? []).map((text): [string, string] => ["label", text]));
  const runs = { fromRun: fromRun && typedName(fromRun), toRun: toRun && typedName(toRun) };
  const single = { holder, host, state, leasedFromMs: from, leasedToMs: to, ...runs };
  for (const [name, value] of Object.entries(single)) if (value !== undefined) query.set(name, String(value));
  return query;
}

/** The coordinator knows whether a run may be named without its version. */
function typedName({ version, run }: NamedRun): string {
  return version === undefined ? String(run) : `${version}/${run}`;
}
