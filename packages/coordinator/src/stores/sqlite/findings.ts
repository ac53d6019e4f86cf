/**
 * What an operator should know of an embedded store that leases all the same. Pure. What prevents leasing is refused when the file is
 * opened, and in each transaction.
 */
import { shellWord } from "@callnumber/protocol/operator";
import { type Restart } from "../../guard/adopt.js";
import { octalOf } from "../../platform/private-file.js";
import type { Finding } from "../store.js";

export interface SqliteFacts {
  readonly path: string;
  /** Of its file; undefined where the system knows no such modes (Windows), and when it is gone. */
  readonly mode: number | undefined;
  /** Whether a restart marker is kept. */
  readonly isMarking: boolean;
  /** Name of the network file system that was allowed; undefined for a local one. */
  readonly networkFileSystem: string | undefined;
  /** As `RestartDetection.restarts`. */
  readonly restarts: ReadonlyMap<string, Restart>;
}

type Rule = (facts: SqliteFacts) => Finding | undefined;

export function sqliteFindings(facts: SqliteFacts): readonly Finding[] {
  return RULES.map((rule) => rule(facts)).filter((finding) => finding !== undefined);
}

const RULES: readonly Rule[] = [
  ({ path, mode = 0 }) =>
    (mode & OPEN_TO_OTHERS) === 0
      ? undefined
      : {
          ...WARNING,
          what:
            `the file of the store ${path} has the mode ${octalOf(mode)}: others than its owner may change ` +
            "its records, or read the key of its receipts",
          remedy: `chmod 600 ${shellWord(path)}, and the same of its -wal and -shm`,
          override: "open-store-file",
        },
  ({ path, isMarking }) =>
    isMarking
      ? undefined
      : {
          ...WARNING,
          what:
            `no restart marker is kept for the store ${path}: this machine has no memory-backed folder for it, or it is full, so every ` +
            "start jumps onto the clock line",
          remedy: "a tmpfs with room at /dev/shm (Linux)",
          override: "no-restart-marker",
        },
  ({ path, networkFileSystem }) =>
    networkFileSystem === undefined
      ? undefined
      : {
          ...WARNING,
          what: `the store ${path} lies on a network file system (${networkFileSystem}): a second machine could lease the same runs`,
          remedy: "a local disk, or Redis",
          override: "network-file-system",
        },
  ({ path, restarts }) => {
    const namespaces = [...restarts]
      .filter(([, restart]) => restart === "other_record")
      .map(([namespace]) => namespace);
    return namespaces.length === 0
      ? undefined
      : {
          ...WARNING,
          namespaces,
          what:
            `the store ${path} was not as it last answered when it was opened (${namespaces.join(", ")}): it was restored, its log was ` +
            "lost, or its process was killed in the very moment of a lease. It went on above everything",
          remedy: "see that nobody puts older files in its place",
          override: undefined,
        };
  },
];

/** A group may read, as with every other secret. */
const OPEN_TO_OTHERS = 0o027;

const WARNING = { code: undefined, namespaces: undefined } as const;
