/**
 * Why a step is refused: the code that guard/decide.ts and the scripts of lua/ return, and the error that it becomes. HTTP status and retry rule
 * follow from the error code (ERROR_RULES in the protocol); docs/errors.md explains each.
 */
import { VERSION_MAX } from "@callnumber/protocol/codec";
import { commandLine } from "@callnumber/protocol/operator";
import type { ErrorCode, RecoveryReason } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { escapeAndShorten } from "../text.js";
import { movedToIn } from "./seals.js";

/** Every code that guard/decide.ts and the scripts of lua/ refuse with. */
export type RefusalCode =
  | "EMPTY"
  | "CORRUPT"
  | "VERSION"
  | "FOREIGN"
  | "NOEPOCH"
  | "REPLICA"
  | "NODES"
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

/** A step that was refused: nothing was changed. The codes are the same here and in the scripts of lua/. */
export interface Refusal {
  readonly word: RefusalCode;
  readonly detail: string;
}

export function refusal(word: RefusalCode, detail: string | number = ""): Refusal {
  return { word, detail: String(detail) };
}

export function isRefusal(answer: object): answer is Refusal {
  return "word" in answer;
}

interface Rule {
  readonly code: ErrorCode;
  readonly reason?: RecoveryReason;
  /** What the detail of the refusal is, besides text for people. */
  readonly detail?: "generation" | "waitMs";
  readonly message: (namespace: string, detail: string) => string;
}

/** Only one process can have an embedded store open. */
export const STOP_AND_RUN = "stop the coordinator of an embedded store, and run";
const SETTLES = "The coordinator settles that by itself and jumps past every run that may have been leased";

export const REFUSAL_RULES: Readonly<Record<RefusalCode, Rule>> = {
  EMPTY: {
    code: "namespace_not_found",
    message: (namespace) =>
      `the store holds no namespace "${namespace}". If an archive holds numbers of it, find the right store. If the name is new, ` +
      `${STOP_AND_RUN} \`${commandLine("init", namespace)}\``,
  },
  CORRUPT: {
    code: "store_corrupt",
    message: (namespace, detail) =>
      `what the store keeps of namespace "${namespace}" was changed by another program: ${detail}. Nothing is leased. Find out which; then ` +
      `${STOP_AND_RUN} \`${commandLine("recover", namespace)}\``,
  },
  VERSION: {
    code: "store_schema_unsupported",
    message: (namespace, detail) =>
      `the record of namespace "${namespace}" has schema version ${detail}; this release reads version 2. Use the release that wrote it`,
  },
  FOREIGN: {
    code: "store_id_mismatch",
    message: (namespace, detail) =>
      `namespace "${namespace}" is kept by another store here (${detail || "without an id"}) than the one that its runs came from. ` +
      "Nothing is leased and nothing was written. Bring the right store back, or point the coordinator at it",
  },
  NOEPOCH: {
    code: "store_epoch_unreadable",
    message: () =>
      "the server does not tell its epoch (INFO server, replication, stats), so it can't be known whether it was restarted. " +
      "Give the coordinator's user the right to INFO",
  },
  REPLICA: {
    code: "store_is_replica",
    message: (_, role) =>
      `the server is no master but a ${role === "slave" ? "replica" : role}. Leasing goes on at the master; point the store's URL at it`,
  },
  NODES: {
    code: "unexpected_replicas",
    message: (namespace, count) =>
      `namespace "${namespace}" counts fewer data nodes than the ${Number(count) + 1} that are there. Detach the replicas that it does not ` +
      `count; or count them: \`${commandLine("recover", namespace, { nodes: Number(count) + 1, apply: true })}\``,
  },
  CLOCK: {
    code: "clock_skew",
    message: (_, aheadMs) =>
      Number(aheadMs) === 0
        ? "the clocks show a time before this release was made. Set them right"
        : `the store's clock is ${aheadMs} ms ahead of the coordinator's (behind, when negative): one of them lies, or the store took that long to begin. ` +
          "Set them right (NTP), and see what holds the store up",
  },
  MOVED: {
    code: "namespace_moved",
    message: (namespace, text) => {
      const { place, storeId } = movedToIn(text) ?? { place: text || "another store", storeId: undefined };
      const as = storeId === undefined ? "" : ` as store ${storeId}`;
      return `namespace "${namespace}" was moved to ${place}${as}; this store leases no more. Start the coordinator with the new store (--store)`;
    },
  },
  FORKED: {
    code: "store_forked",
    message: (namespace, run) =>
      `two copies of the store of namespace "${namespace}" are alive${Number(run) > 0 ? `: a holder proved that it has run ${run}, which this one never leased` : ""}. ` +
      `Nothing is leased. Stop one of them permanently and delete it. Then ${STOP_AND_RUN} \`${commandLine("recover", namespace)}\` on the other`,
  },
  CLOCKBACK: {
    code: "clock_moved_backward",
    detail: "waitMs",
    message: (_, waitMs) =>
      `the clocks are ${waitMs} ms behind the store's last write: they went back, or were ahead then. Set them right; leasing goes on when they have passed it`,
  },
  OPERATOR: {
    code: "manual_recovery_required",
    message: (namespace, detail) =>
      `${OPERATOR_REASONS[detail] ?? detail}. Nothing is leased in namespace "${namespace}". Check the clocks and the server, ` +
      `${STOP_AND_RUN} \`${commandLine("recover", namespace, { "confirm-clock": detail === "silence" })}\``,
  },
  STALEGEN: {
    code: "store_recovering",
    reason: "generation_stale",
    detail: "generation",
    message: (_, generation) =>
      `the store is at generation ${generation}, and a later one was seen: it has gone back in time. ${SETTLES}`,
  },
  EPOCH: {
    code: "store_recovering",
    reason: "epoch_changed",
    detail: "generation",
    message: () => `the store was restarted, promoted or restored since it leased last. ${SETTLES}`,
  },
  PENDING: {
    code: "store_recovering",
    reason: "claimed",
    detail: "generation",
    message: () =>
      "another coordinator settles a doubt about the store just now, or ended while it did. Leasing goes on when that is done",
  },
  GAP: {
    code: "store_recovering",
    reason: "heartbeat_expired",
    detail: "generation",
    message: () => `the namespace had no heartbeat for too long to trust its record. ${SETTLES}`,
  },
  ROLLBACK: {
    code: "store_recovering",
    reason: "rolled_back",
    detail: "generation",
    message: () =>
      `the store's mark is below a run that was leased already: it was restored or lost what it had. ${SETTLES}`,
  },
  AHEAD: {
    code: "run_ceiling_reached",
    detail: "waitMs",
    message: (namespace, waitMs) =>
      `namespace "${namespace}" has leased all runs up to its clock line: the next is free in ${Math.ceil(Number(waitMs) / 1000)} s. ` +
      "Wait. If importers wait for minutes, start fewer of them at once",
  },
  EXHAUSTED: {
    code: "run_space_exhausted",
    message: (namespace, version) =>
      `all runs of version ${version} in namespace "${namespace}" are leased or passed over; no number is ever used again. ` +
      (Number(version) < VERSION_MAX
        ? `To continue in the next version, stop the coordinator of an embedded store, and run \`${commandLine("advance-version", namespace)}\``
        : "It is the last version: what comes next is another namespace, or another layout"),
  },
  EARLY: {
    code: "version_still_active",
    detail: "waitMs",
    message: (namespace, waitMs) =>
      `the version of namespace "${namespace}" is not at its end: its clock line reaches the last run in ${waitMs} ms, and no run of the ` +
      "next version can be leased before. Nothing was changed",
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
    message: (namespace, run) => `run ${run} of namespace "${namespace}" was never leased`,
  },
  NOTHOLDER: {
    code: "holder_mismatch",
    message: (_, run) => `the report on run ${run} does not bear the nonce of its lease; nothing was changed`,
  },
  MISUSE: {
    code: "internal_error",
    message: (_, detail) => `broken invariant: a step was asked for what it can't be: ${detail}`,
  },
};

const OPERATOR_REASONS: Readonly<Record<string, string>> = {
  epoch: "the server followed another one, although its record counts no other data node",
  replica: "a replica was attached to the server, although its record counts no other data node",
  silence: "the store was silent for more than 30 days: whether it slept or a clock leapt can't be told from here",
  line: "the high-water mark is above the clock line: a clock is behind now, or was far ahead, or another program wrote the record",
};

export function isRefusalCode(word: string): word is RefusalCode {
  return Object.hasOwn(REFUSAL_RULES, word);
}

/** Returns the error for a refusal. `detail` may come from a store: it is shortened, so that the message still says what to do. */
export function refused(word: RefusalCode, detail: string, namespace: string): CoordinatorError {
  const { code, reason, detail: kind, message } = REFUSAL_RULES[word];
  return new CoordinatorError(code, message(namespace, escapeAndShorten(detail)), {
    reason,
    ...(kind === "generation" ? { generation: Number(detail) } : {}),
    ...(word === "CORRUPT" ? { fault: escapeAndShorten(detail) } : {}),
    ...(kind === "waitMs" ? { retryAfterMs: Math.max(Number(detail), 1) } : {}),
  });
}

export function namespaceNotFound(namespace: string): CoordinatorError {
  return refused("EMPTY", "", namespace);
}

export function notLeased(namespace: string, ledgerId: number): CoordinatorError {
  return refused("NOTLEASED", String(ledgerId), namespace);
}

export function notTheHolder(run: number): CoordinatorError {
  return refused("NOTHOLDER", String(run), "");
}
