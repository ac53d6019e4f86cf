/** Whether this machine keeps core files: one of a coordinator would hold passwords and keys. */
import { readFileSync } from "node:fs";

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
