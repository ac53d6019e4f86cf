/** What `serve` would run with here, as defaults and the environment say, without secrets; and whether a crash would leave a copy of memory. */
import { readFileSync } from "node:fs";
import type { Setting } from "@callnumber/protocol/operator";
import { CommanderError } from "commander";
import { misuseWithoutPasswords } from "./hidden-passwords.js";
import { settingsIn } from "./settings.js";

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
    const reason = misuseWithoutPasswords(error.message.replace(/^error: /, ""));
    throw new TypeError(`serve would refuse its environment: ${reason}`, { cause: error });
  }
  return settingsIn(command);
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
