/**
 * Who may write and read a tokens file. Whoever could write it could let themselves in, so nobody but its owner may. Its folder needs no
 * check: a file that others put in its place would have an owner that is refused. Pure.
 */

/** All that a file may allow: its owner to write, its group to read. */
const MODE_MAX = 0o640;
const MODE_BITS = 0o7777;
const ROOT_UID = 0;

export interface FileRights {
  readonly mode: number;
  readonly uid: number;
}

/** What is wrong, and the command that mends it; undefined when nothing is. `processUid`: undefined where a system has no such thing. */
export function faultOfRights(
  { mode, uid }: FileRights,
  path: string,
  processUid: number | undefined,
): string | undefined {
  // Windows knows no owners and modes of this kind.
  if (processUid === undefined) return undefined;
  if (uid !== processUid && uid !== ROOT_UID) {
    return `it belongs to the user with id ${uid}, who could let anybody in; it must belong to ${processUid} or root: chown ${processUid} ${quoted(path)}`;
  }
  const bits = mode & MODE_BITS;
  if ((bits & ~MODE_MAX) === 0) return undefined;
  return `its mode is ${octal(bits)}, with which others could read or change it; it must be 0600, or 0640 for a group that may read it: chmod 600 ${quoted(path)}`;
}

function octal(bits: number): string {
  return bits.toString(8).padStart(4, "0");
}

/** As a shell takes it. */
function quoted(path: string): string {
  return /^[\w./+:@-]+$/.test(path) && !path.startsWith("-") ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
