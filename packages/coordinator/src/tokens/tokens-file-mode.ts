/**
 * Who may write and read a tokens file. Whoever could write it could let themselves in, so nobody but its owner may. Its folder needs no
 * check: a file that others put in its place would have an owner that is refused. Pure.
 */

import { shellWord } from "@callnumber/protocol/operator";
import { faultOfMode } from "../platform/private-file.js";

const ROOT_UID = 0;

export interface FileRights {
  readonly mode: number;
  readonly uid: number;
}

/**
 * As whom a file is looked at: a coordinator believes its own user and root. A command that root types keeps the file for whoever has it: were it to
 * ask for root's own, the coordinator of another user could read it no more, and what was revoked would stay good there.
 */
export function trustedUid(
  fileUid: number,
  processUid: number | undefined,
  { isKept }: { readonly isKept: boolean },
): number | undefined {
  return isKept && processUid === ROOT_UID ? fileUid : processUid;
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
    return `it belongs to the user with id ${uid}, who could let anybody in; it must belong to ${processUid} or root: chown ${processUid} ${shellWord(path)}`;
  }
  return faultOfMode(mode, path);
}
