/**
 * Why a step is refused: the code that guard/decide.ts returns, and the error that it becomes. HTTP status and retry rule
 * follow from the error code (ERROR_RULES in the protocol); docs/reference/errors.md explains each.
 */

import { commandLine, type ErrorCode, nameOfLedgerId, type RecoveryReason } from "@callnumber/protocol/api";
import { VERSION_MAX } from "@callnumber/protocol/codec";
import { CoordinatorError } from "../errors.js";
import { escapeAndShorten, formatDuration } from "../text.js";
import { movedToIn, urlOfPlace } from "./store-id.js";

/** Every code that a step, or a change of the ledger, is refused with. */
export type RefusalCode =
  | "EMPTY"
  | "CORRUPT"
  | "VERSION"
  | "FOREIGN"
  | "NOEPOCH"
  | "REPLICA"
  | "NODES"
  | "UNCOUNTED"
  | "QUORUM"
  | "CLOCK"
  | "MOVED"
  | "FORKED"
  | "CLOCKBACK"
  | "OPERATOR"
  | "STALEGEN"
  | "EPOCH"
  | "PENDING"
  | "GAP"
  | "ROLLBACK"
  | "AHEAD"
  | "EXHAUSTED"
  | "EARLY"
  | "RACED"
  | "ALREADY"
  | "NOTLEASED"
  | "NOTHOLDER"
  | "MISUSE";

/** A step that was refused: nothing was changed. */
export interface Refusal {
  readonly code: RefusalCode;
  readonly detail: string;
}

export function refusal(code: RefusalCode, detail: string | number = ""): Refusal {
  return { code, detail: String(detail) };
}

export function isRefusal(answer: object): answer is Refusal {
  return "code" in answer;
}

interface Rule {
  readonly code: ErrorCode;
  readonly reason?: RecoveryReason;
  /** What the detail of the refusal is, besides text for people. */
  readonly detail?: "generation" | "waitMs" | "ledgerId";
  readonly message: (namespace: string, detail: string) => string;
}

/** Returns the instruction to run an operator's command. `filledCommands` adds that the coordinator of an embedded store is to be stopped. */
export function runCommand(...command: Parameters<typeof commandLine>): string {
  return `run \`${commandLine(...command)}\``;
}

/** Returns the advice for a store without namespaces: a lost one looks the same as a new one, and init would repeat its numbers. */
export function initUnlessLost(namespace: string): string {
  return (
    "if an archive has call numbers from here, do not init: pass the --checkpoint-dir of its coordinator, or recover it. For a new archive: " +
    `\`${commandLine("init", namespace)}\``
  );
}

/** When fewer nodes may be counted: else two masters could lease, each by its own record. */
export const IF_NODES_ARE_GONE =
  "only if they are wiped or stopped permanently, since a promoted one would lease the same runs";

function elsewhere(namespace: string): string {
  return `move it: \`${commandLine("move", namespace, { to: "NEW_STORE_URL" })}\``;
}

/** Operators do not wait so long for a clock that was ahead. */
const LONG_WAIT_MS = 3_600_000;

const RECOVERS = "Recovery is automatic, and skips every run that may have been leased";

export const REFUSAL_RULES: Readonly<Record<RefusalCode, Rule>> = {
  EMPTY: {
    code: "namespace_not_found",
    message: (namespace) =>
      `the store has no namespace "${namespace}". If an archive has numbers of it, do not init: use the right store, or ` +
      "the --checkpoint-dir of its coordinator. If the name is new, " +
      runCommand("init", namespace),
  },
  CORRUPT: {
    code: "store_corrupt",
    message: (namespace, detail) =>
      `another program changed namespace "${namespace}": ${detail}. Nothing is leased. Find it, then ` +
      runCommand("recover", namespace),
  },
  VERSION: {
    code: "store_schema_unsupported",
    message: (namespace, detail) =>
      `the record of namespace "${namespace}" has schema version ${detail}; this release reads version 2. Use the release that wrote it`,
  },
  FOREIGN: {
    code: "store_id_mismatch",
    message: (namespace, detail) =>
      `namespace "${namespace}" belongs to another store here (id ${detail || "missing"}). Nothing was leased or written. ` +
      "Restore the right store, or point the coordinator at it",
  },
  NOEPOCH: {
    code: "store_epoch_unreadable",
    message: () =>
      "the server does not return its epoch, so a restart could not be detected. Grant what " +
      "`callnumber doctor` names to the coordinator's user",
  },
  REPLICA: {
    code: "store_is_replica",
    message: (_, role) =>
      `the server is a ${role === "slave" ? "replica" : role}, not a master. Point the store's URL at the master`,
  },
  NODES: {
    code: "unexpected_replicas",
    message: (namespace, count) =>
      `namespace "${namespace}" counts fewer data nodes than the ${Number(count) + 1} that are connected. Detach the others, ` +
      `or count them: \`${commandLine("recover", namespace, { nodes: Number(count) + 1, apply: true })}\``,
  },
  UNCOUNTED: {
    code: "unexpected_replicas",
    message: (namespace, count) =>
      `namespace "${namespace}" would count fewer data nodes than the ${Number(count) + 1} that are connected. Nothing was changed. ` +
      `Detach the others, or pass --nodes ${Number(count) + 1}`,
  },
  QUORUM: {
    code: "quorum_missing",
    message: (_, detail) =>
      `too few other nodes are connected (${detail}). Nothing was changed. Connect them, or pass --nodes ${Number.parseInt(detail, 10) + 1} ` +
      IF_NODES_ARE_GONE,
  },
  CLOCK: {
    code: "clock_skew",
    message: (_, aheadMs) =>
      Number(aheadMs) === 0
        ? "the clocks show a time before this release was made. Set them right"
        : `the store's clock is ${Math.abs(Number(aheadMs))} ms ${Number(aheadMs) < 0 ? "behind" : "ahead of"} the coordinator's, or the store ` +
          "was slow to begin. " +
          "Synchronize the clocks (NTP), and check what slows the store",
  },
  MOVED: {
    code: "namespace_moved",
    message: (namespace, text) => {
      const { place, storeId } = movedToIn(text) ?? { place: text || "another store", storeId: undefined };
      const as = storeId === undefined ? "" : ` as store ${storeId}`;
      const moved = `namespace "${namespace}" was moved to ${place}${as}; use that store (--store)`;
      if (storeId === undefined) return moved;
      const command = runCommand("move", namespace, { to: urlOfPlace(place), apply: true });
      return `${moved}. If the namespace is missing there, finish the move: ${command}`;
    },
  },
  FORKED: {
    code: "store_forked",
    detail: "ledgerId",
    message: (namespace, run) =>
      `two copies of the store of namespace "${namespace}" are running${run !== "0" ? `: a holder has run ${run}, which this one never leased` : ""}. ` +
      `Nothing is leased. Stop and delete one permanently, then on the other ${runCommand("recover", namespace)}`,
  },
  CLOCKBACK: {
    code: "clock_moved_backward",
    detail: "waitMs",
    message: (namespace, waitMs) =>
      `the store's last write is ${formatDuration(Number(waitMs))} in the future: a clock was ahead, or the clocks are behind. Set them right. ` +
      (Number(waitMs) < LONG_WAIT_MS
        ? "Leasing continues when they have passed it"
        : `If they are, ${elsewhere(namespace)}`),
  },
  OPERATOR: {
    code: "manual_recovery_required",
    message: (namespace, detail) => {
      // With the time when the ceiling has passed the mark, as far as that is known.
      const [, reason = detail, possibleAtMs] = /^(line) (\d{1,15})$/.exec(detail) ?? [];
      const then = possibleAtMs === undefined ? "" : ` before ${new Date(Number(possibleAtMs)).toISOString()}`;
      return (
        `${OPERATOR_REASONS[reason] ?? detail}. Nothing is leased${then}. Check clocks and server, then ` +
        runCommand("recover", namespace, { "confirm-clock": reason === "silence" }) +
        (possibleAtMs === undefined ? "" : `, or ${elsewhere(namespace)}`)
      );
    },
  },
  STALEGEN: {
    code: "store_recovering",
    reason: "generation_stale",
    detail: "generation",
    message: (_, generation) =>
      `the store is at generation ${generation}, and a later one was seen: it has rolled back. ${RECOVERS}`,
  },
  EPOCH: {
    code: "store_recovering",
    reason: "epoch_changed",
    detail: "generation",
    message: () => `the store was restarted, promoted or restored since its last lease. ${RECOVERS}`,
  },
  PENDING: {
    code: "store_recovering",
    reason: "claimed",
    detail: "generation",
    message: () =>
      "a recovery began, by `recover` or by another coordinator. Leasing continues when a coordinator has completed it",
  },
  GAP: {
    code: "store_recovering",
    reason: "heartbeat_expired",
    detail: "generation",
    message: () => `the namespace had no heartbeat for too long to trust its record. ${RECOVERS}`,
  },
  ROLLBACK: {
    code: "store_recovering",
    reason: "rolled_back",
    detail: "generation",
    message: () =>
      `the high-water mark is below a run that was leased: the store was restored or lost writes. ${RECOVERS}`,
  },
  AHEAD: {
    code: "run_ceiling_reached",
    detail: "waitMs",
    message: (namespace, waitMs) =>
      `namespace "${namespace}" has reached its run ceiling: the next run is free in ${Math.ceil(Number(waitMs) / 1000)} s. ` +
      "Wait. If importers wait for minutes, start fewer of them at a time",
  },
  EXHAUSTED: {
    code: "run_space_exhausted",
    message: (namespace, version) =>
      `all runs of version ${version} in namespace "${namespace}" are leased or skipped. ` +
      (Number(version) < VERSION_MAX
        ? `To continue in the next version, ${runCommand("advance-version", namespace)}`
        : "It is the last version: use another namespace"),
  },
  EARLY: {
    code: "version_still_active",
    detail: "waitMs",
    message: (namespace, waitMs) =>
      `the run ceiling of namespace "${namespace}" reaches the last run of the version in ${formatDuration(Number(waitMs))}, and no run of the next version ` +
      "can be leased before. Nothing was changed",
  },
  RACED: {
    code: "store_recovering",
    reason: "conflict",
    detail: "generation",
    message: () => "another coordinator was faster, or the store changed meanwhile; nothing was changed",
  },
  ALREADY: {
    code: "namespace_exists",
    message: (namespace) => `namespace "${namespace}" exists already; nothing was changed`,
  },
  NOTLEASED: {
    code: "run_not_leased",
    detail: "ledgerId",
    message: (namespace, run) =>
      `no lease of namespace "${namespace}" has run ${run}: never leased, skipped, or lost by the store`,
  },
  NOTHOLDER: {
    code: "holder_mismatch",
    detail: "ledgerId",
    message: (_, run) => `the report on run ${run} does not have the nonce of its lease; nothing was changed`,
  },
  MISUSE: {
    code: "internal_error",
    message: (_, detail) => `broken invariant: an invalid step was requested: ${detail}`,
  },
};

const OPERATOR_REASONS: Readonly<Record<string, string>> = {
  epoch: "the server followed another one, although its record counts one data node",
  replica:
    "an uncounted replica was attached, and may have been promoted: let one of the two servers run, and wipe the other",
  silence: "the store had no heartbeat for more than 30 days: it was stopped, or a clock leapt",
  line: "the mark or the ledger is above the run ceiling: a clock was wrong, or another program wrote it",
};

export function isRefusalCode(text: string): text is RefusalCode {
  return Object.hasOwn(REFUSAL_RULES, text);
}

/**
 * Returns the error for a refusal. `detail` may come from a store: it is shortened, so that the message still has its remedy.
 * `currentVersion` of the namespace, where it is known: for the name of a run.
 */
export function refused(
  refusalCode: RefusalCode,
  detail: string,
  namespace: string,
  currentVersion?: number,
): CoordinatorError {
  const { code, reason, detail: kind, message } = REFUSAL_RULES[refusalCode];
  const shown = kind === "ledgerId" ? nameOfLedgerId(Number(detail), currentVersion) : escapeAndShorten(detail);
  return new CoordinatorError(code, message(namespace, shown), {
    reason,
    ...(kind === "generation" ? { generation: Number(detail) } : {}),
    ...(refusalCode === "MOVED" ? { movedTo: detail } : {}),
    ...(refusalCode === "CORRUPT" ? { fault: escapeAndShorten(detail) } : {}),
    ...(kind === "waitMs" ? { retryAfterMs: Math.max(Number(detail), 1) } : {}),
  });
}

export function namespaceNotFound(namespace: string): CoordinatorError {
  return refused("EMPTY", "", namespace);
}

export function notLeased(namespace: string, ledgerId: number, currentVersion?: number): CoordinatorError {
  return refused("NOTLEASED", String(ledgerId), namespace, currentVersion);
}

export function notTheHolder(ledgerId: number): CoordinatorError {
  return refused("NOTHOLDER", String(ledgerId), "");
}
