/** What `serve` would run with here, as defaults and the environment say, without secrets; and whether a crash would leave a copy of memory. */
import { readFileSync } from "node:fs";
import { CommanderError } from "commander";
import { withoutPasswords } from "./hidden-passwords.js";

export interface Setting {
  readonly name: string;
  /** Null when it is not set. */
  readonly value: string | null;
  readonly from: "environment" | "default";
}

/** The store is said by `doctor` itself, which may have another one on its command line. */
const SAID_ELSEWHERE: ReadonlySet<string> = new Set(["store", "storeFile"]);

/** @throws TypeError when the environment holds what `serve` would refuse, in its words. */
export async function settingsOfServe(): Promise<readonly Setting[]> {
  const { serveCommand } = await import("./serve-command.js");
  const command = serveCommand()
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .action(() => {});
  try {
    await command.parseAsync([], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    throw new TypeError(`serve would refuse its environment: ${error.message.replace(/^error: /, "")}`, {
      cause: error,
    });
  }
  return command.options
    .filter((option) => !SAID_ELSEWHERE.has(option.attributeName()))
    .map((option) => {
      const value: unknown = command.getOptionValue(option.attributeName());
      const from = command.getOptionValueSource(option.attributeName()) === "env" ? "environment" : "default";
      return { name: option.name(), value: shown(value) ?? option.defaultValueDescription ?? null, from };
    });
}

function shown(value: unknown): string | null {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return null;
  const [text = null] = withoutPasswords([value === true ? "yes" : value === false ? "no" : String(value)]);
  return text;
}

/**
 * Whether a crash of a process that is started as this one was leaves a core file: it would hold passwords and keys. Undefined where
 * the system does not tell.
 */
export function coreDumps(): string | undefined {
  try {
    const [, softLimit] = /^Max core file size\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    const pattern = readFileSync("/proc/sys/kernel/core_pattern", "utf8").trim();
    // Given to a program, they are made whatever the limit says.
    if (pattern.startsWith("|")) return `up to ${pattern.slice(1).split(" ", 1)[0]}`;
    if (softLimit === undefined) return undefined;
    return softLimit === "0" ? "off" : "on";
  } catch {
    return undefined;
  }
}

/** For people, a line each. */
export function settingsInWords(settings: readonly Setting[], dumps: string | undefined): readonly string[] {
  const width = Math.max(...settings.map(({ name }) => name.length));
  return [
    "what serve would run with here, by the environment and its defaults:",
    ...settings.map(
      ({ name, value, from }) =>
        `  ${name.padEnd(width)}  ${value ?? "not set"}${from === "environment" ? " (environment)" : ""}`,
    ),
    `core dumps: ${dumps ?? "not known here"}${dumps === "off" || dumps === undefined ? "" : CORE_ADVICE}`,
  ];
}

const CORE_ADVICE = ". A core file holds passwords and keys: ulimit -c 0, or LimitCORE=0 in a unit of systemd";
