/** The one rule for every file with a secret, or with power over one: who may have rights to it, by its mode. Pure. */
import { shellWord } from "@callnumber/protocol/operator";

/** All that a file may allow: its owner to write, its group to read. A service often gets its secrets by its group. */
const MODE_MAX = 0o640;
const MODE_BITS = 0o7777;

/** What is wrong, and the command that mends it; undefined when nothing is. Of a system without such modes (Windows), do not ask. */
export function faultOfMode(mode: number, path: string): string | undefined {
  const bits = mode & MODE_BITS;
  if ((bits & ~MODE_MAX) === 0) return undefined;
  return (
    `its mode is ${octalOf(mode)}; it must be 0600, or 0640 for a group that may read it, so that nobody else can read or change it: ` +
    `chmod 600 ${shellWord(path)}`
  );
}

/** A file's mode as `chmod` takes it: 0640. */
export function octalOf(mode: number): string {
  return (mode & MODE_BITS).toString(8).padStart(4, "0");
}
