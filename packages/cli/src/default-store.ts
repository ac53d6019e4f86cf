/**
 * The store and the witness folder when none is named: one place for each user, whatever the working folder, so that another folder is not another
 * store that begins at run 1 again.
 */
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { platform } from "node:process";
import { commandIo } from "./command-io.js";

/** As the system names it for `homedir`. */
const HOME = platform === "win32" ? "USERPROFILE" : "HOME";

export function defaultStoreUrl(): string {
  return `sqlite:${join(stateHome(), "callnumber", "store.db")}`;
}

/** Beside the default store's folder, not in it: who restores the one must not restore the other. */
export function defaultWitnessFolder(): string {
  return join(stateHome(), "callnumber-witness");
}

function stateHome(): string {
  const { XDG_STATE_HOME: given, [HOME]: home = homedir() } = commandIo().env;
  // The XDG rules say that a relative path there is to be ignored.
  return given !== undefined && isAbsolute(given) ? given : join(home, ".local", "state");
}
