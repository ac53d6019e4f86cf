/**
 * The store when none is named: one place for each user, whatever the working folder, so that another folder is not another
 * store that begins at run 1 again.
 */
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { env } from "node:process";

export function defaultStoreUrl(): string {
  const stateHome = env["XDG_STATE_HOME"];
  // The XDG rules say that a relative path there is to be ignored.
  const base = stateHome !== undefined && isAbsolute(stateHome) ? stateHome : join(homedir(), ".local", "state");
  return `sqlite:${join(base, "callnumber", "store.db")}`;
}
