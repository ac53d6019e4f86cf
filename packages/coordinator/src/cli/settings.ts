/** The options of `serve` as settings: their values in words, without secrets, and where each comes from. */
import type { Setting } from "@callnumber/protocol/operator";
import type { Command } from "commander";
import { withoutPasswords } from "./hidden-passwords.js";

/** Said by its place and user instead; it may hold a password. */
const NOT_TOLD: ReadonlySet<string> = new Set(["store", "storeFile"]);

/** By the option parser's own word; what it does not name is a default. */
const ORIGINS: Readonly<Record<string, Setting["from"]>> = { cli: "command line", env: "environment" };

/** Of a command whose words have been read. */
export function settingsIn(command: Command): readonly Setting[] {
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
