/**
 * Commands and numbers in messages. This is the one place that writes the commands that an operator runs. A message names the store by a
 * placeholder, because importers read it too; what an operator reads has it filled in.
 */

/** The placeholder for the value of `--store` where a reader may not see it. */
export const STORE_URL = "STORE_URL";

/** What fills the placeholder, of a coordinator or of the command that prints: options as a shell takes them. */
export interface CommandContext {
  /** `--store` without a password, which a command takes from CALLNUMBER_STORE; or `--store-file`. */
  readonly storeOption: string;
  /** `--checkpoint-dir`; empty for the default one. */
  readonly checkpointOption: string;
}

/** Of `callnumber`, as it is typed; those that open the store are named with it. */
const STORE_VERBS = ["recover", "init", "advance-version", "doctor", "backup", "retention", "move"] as const;
export type StoreVerb = (typeof STORE_VERBS)[number];
type OtherVerb = "status" | "runs" | "token create";

const TARGET_TO_FILL = new RegExp(`--to ${STORE_URL}\\b`, "g");
/** Of a store that a message names. One that a coordinator has filled in has its checkpoint directory. */
const NAMED = /callnumber recover --store (?!STORE_URL\b)(?:'(?:[^']|'\\'')*'|[^'\s]\S*)(?!\S| --checkpoint-dir)/g;
const TO_FILL = new RegExp(`callnumber ([a-z-]+) --store ${STORE_URL}\\b`, "g");

/** To be run where a coordinator may run: only one process can have an embedded store open. */
const ON_STORE = /\brun `callnumber (?:recover|init|advance-version|move) [^`]*`/g;

/** Options of a command by their names; `true` is an option without a value, undefined and `false` are none. */
export type CommandOptions = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * A command that runs in a shell as it is, once the store is filled in: `callnumber recover --store STORE_URL --namespace lists --min-run 7`.
 * `options` by the names of their flags, in their order; those that are undefined or false are left out.
 */
export function commandLine(
  verb: StoreVerb | OtherVerb,
  namespace: string | undefined,
  options: CommandOptions = {},
): string {
  const opensStore = (STORE_VERBS as readonly string[]).includes(verb);
  const all: CommandOptions = { store: opensStore ? STORE_URL : undefined, namespace, ...options };
  const flags = Object.entries(all).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    return value === true ? [`--${name}`] : [`--${name}`, shellWord(String(value))];
  });
  return ["callnumber", verb, ...flags].join(" ");
}

/**
 * The same text, with what its commands need in place of the placeholder: as the store of the command, or as the one that `move` goes to.
 * `backup` takes no checkpoint directory. After a command that needs an embedded store for itself, it says to stop the coordinator.
 */
export function filledCommands(text: string, { storeOption, checkpointOption }: CommandContext): string {
  const after = checkpointOption === "" ? "" : ` ${checkpointOption}`;
  const targetOption = storeOption.replace(/^--store/, "--to");
  const fill = (part: string) =>
    part
      .replace(NAMED, (command) => `${command}${after}`)
      .replace(TO_FILL, (_, verb: string) => `callnumber ${verb} ${storeOption}${verb === "backup" ? "" : after}`)
      .replace(TARGET_TO_FILL, () => `${targetOption}${after}`);
  const withStop = text.replace(ON_STORE, (part) => {
    const filled = fill(part);
    return filled !== part && filled.includes("sqlite:") ? `${filled} (stop the coordinator first)` : filled;
  });
  return fill(withStop);
}

/** The same of JSON that operators read: docs/reference/errors.md shows the commands with placeholders. */
export function filledJson(json: string, context: CommandContext): string {
  if (!json.includes(STORE_URL)) return json;
  const filled = (_: string, value: unknown) => (typeof value === "string" ? filledCommands(value, context) : value);
  return JSON.stringify(JSON.parse(json, filled));
}

/** A word of a command that is copied into a shell. Clients choose names: one that is `$(…)` must stay a name. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** What stays as it is: a command, which is copied, and numbers that are names, as of a run. Then a number that stands alone. */
const NUMBER =
  /`[^`]*`|\b(?:pid|port|year|leased to|runs?(?: up to)?) \d+|(?<![\w.:/"@=-])[1-9]\d{3,}(?![\w:/"@=-]|\.\d)/g;

/**
 * The same text with a comma between each three digits of its numbers: "65,735 runs are left". Programs read the same
 * messages, so the coordinator writes none.
 */
export function withSeparators(message: string): string {
  return message.replace(NUMBER, (found) => (/^\d/.test(found) ? formatCount(found) : found));
}

/**
 * A number with a comma between each three digits: `1,073,741,823`. `toLocaleString` would load the rules of all languages: 10 ms for the
 * first number of a command.
 */
export function formatCount(count: number | bigint | string): string {
  return String(count).replace(/(?<!\.\d*)\B(?=(?:\d{3})+(?!\d))/g, ",");
}
