/** Servers that tests start shall not outlive whoever started them, however that one goes. */
import { type ChildProcess, spawnSync } from "node:child_process";

/**
 * Words before the command that make Linux kill the server as soon as this process is gone, however it went.
 * An exit handler is not enough: vitest ends its workers by a signal, and a crash runs no handlers.
 */
export function diesWithParent(): string[] {
  parentDeathPrefix ??=
    spawnSync("setpriv", ["--pdeathsig", "KILL", "true"]).status === 0 ? ["setpriv", "--pdeathsig", "KILL"] : [];
  return parentDeathPrefix;
}
let parentDeathPrefix: string[] | undefined;

/** Where the kernel does not see to it (see `diesWithParent`), an orderly exit of this process does. */
export function killAtExit(child: ChildProcess): void {
  if (alive.size === 0) process.once("exit", killAll);
  alive.add(child);
  child.once("exit", () => {
    alive.delete(child);
    if (alive.size === 0) process.off("exit", killAll);
  });
}
const alive = new Set<ChildProcess>();
const killAll = () => {
  for (const child of alive) child.kill("SIGKILL");
};
