/**
 * What an operator should know of an embedded store that leases all the same. Pure. What prevents leasing is refused when the file is
 * opened, and in each transaction.
 */
import { shellWord } from "@callnumber/protocol/api";
import { type Restart } from "../../guard/restart-decision.js";
import type { Finding } from "../../guard/step-store.js";
import { octalOf } from "../../platform/private-file.js";
import type { MarkerFault } from "./restart-marker.js";

export interface SqliteFacts {
  readonly path: string;
  /** Of its file; undefined where the system knows no such modes (Windows), and when it is gone. */
  readonly mode: number | undefined;
  /** Why no restart marker is kept; undefined where one is. */
  readonly markerFault: MarkerFault | undefined;
  /** Name of the network file system that was allowed; undefined for a local one. */
  readonly networkFileSystem: string | undefined;
  /** As `RestartDetection.restarts`. */
  readonly restarts: ReadonlyMap<string, Restart>;
}

/** A group may read, as with every other secret. */
const OPEN_TO_OTHERS = 0o027;

export function sqliteFindings({ path, mode = 0, markerFault, networkFileSystem, restarts }: SqliteFacts): Finding[] {
  const findings: Finding[] = [];
  const warn = (override: string | undefined, what: string, remedy: string, namespaces?: readonly string[]) =>
    void findings.push({ code: undefined, what, remedy, override, namespaces });
  if ((mode & OPEN_TO_OTHERS) !== 0) {
    const rights = "others than its owner may change its records, or read the key of its lease proofs";
    const remedy = `chmod 600 ${shellWord(path)}, and the same of its -wal and -shm`;
    warn("open-store-file", `the file of the store ${path} has the mode ${octalOf(mode)}: ${rights}`, remedy);
  }
  if (markerFault !== undefined) {
    const what = `no restart marker is kept for the store ${path}, so every start skips runs: ${markerFault.why}`;
    warn("no-restart-marker", what, markerFault.remedy);
  }
  if (networkFileSystem !== undefined) {
    const danger = "a second machine could lease the same runs";
    const what = `the store ${path} lies on a network file system (${networkFileSystem}): ${danger}`;
    warn("network-file-system", what, "a local disk, or Redis");
  }
  const CONTINUED = "It continued above all that was leased";
  const OLDER_FILES = "make sure that older files are not put in its place";
  const changed = namespacesOf("other_record", restarts);
  if (changed.length > 0) {
    const causes = "it was restored, lost its log, or was killed during a lease";
    const what = `the store ${path} had changed when it was opened (${changed.join(", ")}): ${causes}. ${CONTINUED}`;
    warn(undefined, what, OLDER_FILES, changed);
  }
  const putBack = namespacesOf("mark_put_back", restarts);
  if (putBack.length > 0) {
    const cause = "someone has put an older one in its place, or changed its mode or times";
    const what = `the restart marker of the store ${path} was not as it was left (${putBack.join(", ")}): ${cause}. ${CONTINUED}`;
    warn(undefined, what, OLDER_FILES, putBack);
  }
  return findings;
}

function namespacesOf(wanted: Restart, restarts: ReadonlyMap<string, Restart>): readonly string[] {
  return [...restarts].filter(([, restart]) => restart === wanted).map(([namespace]) => namespace);
}
