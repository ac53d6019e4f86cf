/** A command line as it was typed, with more behind it, to be typed again. What the environment and defaults said they say again. */
import type { Command } from "commander";
import { shellWord } from "../shell-word.js";

/** `instead`: what is shown for some options, by their attribute names, in place of what was typed: a URL without its password. */
export function typedAgain(
  command: Command,
  instead: Readonly<Record<string, string>>,
  more: readonly string[],
): string {
  const typed = command.options.flatMap((option) => {
    const name = option.attributeName();
    const flag = `--${option.name()}`;
    if (command.getOptionValueSource(name) !== "cli" || more.includes(flag)) return [];
    const value: unknown = instead[name] ?? command.getOptionValue(name);
    if (typeof value === "boolean") return value ? [flag] : [flag, "no"];
    return (Array.isArray(value) ? value : [value]).flatMap((one) => [flag, String(one)]);
  });
  return ["callnumber", command.name(), ...typed, ...more].map(shellWord).join(" ");
}
