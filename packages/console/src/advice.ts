/**
 * What each refusal that ends leasing means, and what to do, in the order of doing it: docs/errors.md for people in a hurry. The page only says
 * what to type; the verbs act on the store itself, not over HTTP.
 */
import { type CommandOptions, commandLine } from "@callnumber/protocol/operator";
import type { ErrorCode } from "@callnumber/protocol/wire";

/** `waits`: settled without anybody · `mend`: something outside must be put right · `type`: an operator looks, and types. */
type AdviceKind = "waits" | "mend" | "type";

export interface Step {
  readonly say: string;
  /** A command, ready to be copied. */
  readonly type?: string;
}

export interface Advice {
  readonly kind: AdviceKind;
  readonly title: string;
  readonly meaning: string;
  readonly steps: readonly Step[];
}

/** Refusals of one request, or of a start: none of them stands against a namespace. */
type OfOneRequest =
  | "invalid_request"
  | "not_found"
  | "method_not_allowed"
  | "body_too_large"
  | "unsupported_media_type"
  | "request_timed_out"
  | "headers_too_large"
  | "unauthorized"
  | "forbidden"
  | "rate_limited"
  | "overloaded"
  | "namespace_already_initialised"
  | "run_not_leased"
  | "lease_trimmed"
  | "not_the_holder"
  | "line_reached"
  | "version_not_ended"
  | "lease_burnt"
  | "coordinator_still_leases"
  | "too_many_streams"
  | "report_too_late"
  | "shutting_down"
  | "internal_error";

export type AdvisedCode = Exclude<ErrorCode, OfOneRequest>;

/** What the commands are filled in with. */
export interface Circumstances {
  readonly namespace: string;
  /** Undefined where nobody remembers it. */
  readonly storeId: string | undefined;
  /** The greatest run that is remembered, as a ledger id. */
  readonly floor: string | undefined;
  /** The store was silent for so long that an operator answers for the clock. */
  readonly isClockToCheck: boolean;
}

/** @param code what a coordinator said. Undefined where nothing but the refused request is concerned. */
export function adviceFor(code: string, circumstances: Circumstances): Advice | undefined {
  return Object.hasOwn(ADVICE, code) ? ADVICE[code as AdvisedCode](circumstances) : undefined;
}

export function advisedCodes(): readonly AdvisedCode[] {
  return Object.keys(ADVICE) as AdvisedCode[];
}

const SETTLES: Step = {
  say: "Nothing to type. The coordinator claims the store, waits for the quorum, and jumps past every run that may have been leased: some seconds. Importers go on with the runs in hand.",
};
const STOP_COORDINATOR: Step = { say: "Stop the coordinator, if the store is an embedded one." };
const START_COORDINATOR: Step = { say: "Start it again, if you stopped it." };

const waits =
  (title: string, meaning: string, ...more: readonly Step[]) =>
  (): Advice => ({
    kind: "waits",
    title,
    meaning,
    steps: [SETTLES, ...more],
  });

const mend =
  (title: string, meaning: string, ...steps: readonly Step[]) =>
  (): Advice => ({
    kind: "mend",
    title,
    meaning,
    steps,
  });

const ADVICE: Readonly<Record<AdvisedCode, (circumstances: Circumstances) => Advice>> = {
  store_epoch_changed: waits(
    "The store was restarted",
    "It was restarted, promoted or restored since it leased last, and may have forgotten runs.",
    { say: "If it stays: the coordinator’s log says what stands in the way." },
  ),
  store_claimed: waits(
    "Another coordinator settles a doubt",
    "It does so just now, or ended while it did; then this one takes over.",
  ),
  store_silent: waits(
    "The store was silent",
    "Nobody touched the record for more than five minutes: what happened meanwhile can’t be known.",
  ),
  store_went_back: waits(
    "The store has gone back in time",
    "Its mark lies below a run that was leased: it was restored, or has lost writes.",
    { say: "Find out who restored what." },
  ),
  store_generation_stale: waits(
    "The record is an older one",
    "It is of an earlier generation than one that was seen: it was copied back.",
    { say: "Find out who copied what." },
  ),
  claim_raced: waits("Another coordinator was faster", "It settled the doubt first."),
  quorum_missing: mend(
    "Too few replicas answer",
    "Not enough of them acknowledged a write within a second. This server may be alone on its side of a cut; leasing goes on where the majority is.",
    { say: "If no server is cut off: see that the replicas run and follow. It goes on by itself then." },
  ),
  clocks_disagree: mend(
    "Two clocks differ",
    "Coordinator and store, or importer and coordinator, differ by more than two seconds. One of them lies, or the store took that long to begin; the clock is what keeps runs apart.",
    {
      say: "Set the clocks right, on every machine, and see that they stay so.",
      type: "chronyc tracking || timedatectl",
    },
  ),
  clock_went_back: mend(
    "The clock went back",
    "The clocks are behind the last write of the store.",
    { say: "Set them right.", type: "chronyc tracking || timedatectl" },
    { say: "If they were far ahead before and are right now, leasing goes on when they have passed that time." },
  ),
  store_moved: mend(
    "The namespace was moved",
    "It goes on in another store, under a store id of its own; this one leases no more.",
    {
      say: "Point the coordinator at the new store (serve --store) and start it again. Give importers the new store id.",
    },
  ),
  store_is_replica: mend("This server is a replica", "Leasing goes on at the master.", {
    say: "Point the store’s URL at the master, or at the Sentinels, who know it (serve --store).",
  }),
  store_has_more_nodes: ({ namespace }) => ({
    kind: "type",
    title: "More replicas than the record knows",
    meaning: "One that nobody counts could be promoted and lease again what it missed, because nobody waits for it.",
    steps: [
      { say: "Detach those that are not meant to be there; leasing then continues automatically. Or count them:" },
      {
        say: "See what recovering would do. N is the number of all data nodes:",
        type: recover(namespace, { nodes: "N" }),
      },
      { say: "Do it:", type: recover(namespace, { nodes: "N", apply: true }) },
    ],
  }),
  store_forked: ({ namespace }) => ({
    kind: "type",
    title: "Two copies of the store are alive",
    meaning:
      "A holder proved that it has a run which this store never leased. Nothing is leased any more, and the clients that noticed make no more numbers.",
    steps: [
      {
        say: "Find the copy: a cloned volume, a restored machine beside the old one. Stop the one that should not be, for good, and delete its data.",
      },
      STOP_COORDINATOR,
      { say: "Look at what recovering the other would do:", type: recover(namespace) },
      { say: "Do it:", type: recover(namespace, { apply: true }) },
      START_COORDINATOR,
    ],
  }),
  store_replaced: ({ namespace }) => ({
    kind: "mend",
    title: "Another store answers",
    meaning:
      "It has another store id than the one whose runs were leased. Nothing was leased and nothing was written to it.",
    steps: [
      { say: "Bring the right store back, or point the coordinator at it (serve --store)." },
      {
        // What is there now bears the wrong id: none is filled in.
        say: "Only if that one is lost for good: look at what recovering it would do, in a place that holds no such namespace yet. STORE_ID is the one kept beside the archive.",
        type: recover(namespace, { "store-id": "STORE_ID" }),
      },
    ],
  }),
  store_emptied: (circumstances) => ({
    kind: "type",
    title: "The store was emptied",
    meaning:
      "It no longer holds a namespace that runs were leased from: FLUSHALL, another database, a server that started empty.",
    steps: [
      { say: "If a backup of the store exists, restore it: the rest is settled without anybody." },
      {
        say: "If it is lost for good: stop the coordinator, if the store is an embedded one, and look at what recovering would do. If there is an archive, give it the call numbers (--numbers).",
        type: recoverLost(circumstances),
      },
      { say: "Do it:", type: recoverLost(circumstances, { apply: true }) },
      START_COORDINATOR,
    ],
  }),
  namespace_not_initialised: ({ namespace }) => ({
    kind: "type",
    title: "The store holds no such namespace",
    meaning:
      "If an archive already holds numbers of it, this is the wrong store or an emptied one: do not make it anew, find the right one.",
    steps: [{ say: "Only if the name is new:", type: commandLine("init", namespace) }],
  }),
  run_beyond_mark: ({ namespace }) => ({
    kind: "type",
    title: "An importer holds a run that is not ours",
    meaning:
      "It lies above the store’s mark, and no receipt of this store came with it: the importer has met another store, or this one has gone back.",
    steps: [
      { say: "Stop the importers." },
      {
        say: "Compare the store id with the one kept beside the archive:",
        type: commandLine("status", namespace),
      },
      { say: "Bring the newest state of the right store back." },
    ],
  }),
  operator_needed: ({ namespace, isClockToCheck }) => ({
    kind: "type",
    title: "A person has to look",
    meaning:
      "No program can judge what is there: a silence of more than 30 days, a mark above the clock line, or a server that should be alone and had a replica, or followed another one.",
    steps: [
      { say: "Look at the clocks, and at the server’s history." },
      STOP_COORDINATOR,
      {
        say: "See what recovering finds and would set:",
        type: recover(namespace, { "clock-is-right": isClockToCheck }),
      },
      { say: "Do it:", type: recover(namespace, { "clock-is-right": isClockToCheck, apply: true }) },
      START_COORDINATOR,
    ],
  }),
  store_epoch_unreadable: mend(
    "The server does not say who it is",
    "Without INFO it can’t be known whether it was restarted.",
    {
      say: "Give the coordinator’s user the right to INFO. What else it needs:",
      type: commandLine("doctor", undefined),
    },
  ),
  store_evicts: mend("The server may throw keys away", "When its memory is full, the record would be among them.", {
    say: "Set this, in its configuration file, too:",
    type: "redis-cli CONFIG SET maxmemory-policy noeviction",
  }),
  store_too_old: mend("The server is too old", "It is older than Redis 6.2.", {
    say: "Bring the server to a newer release.",
  }),
  store_copied: ({ namespace }) => ({
    kind: "type",
    title: "The store’s file is a copy",
    meaning: "It is not the one that was made: it was copied, moved to another disk, or put back from a backup.",
    steps: [
      { say: "If the original still is anywhere: use the original, never both." },
      { say: "If it can never come back: stop the coordinator, and look.", type: recover(namespace) },
      { say: "Do it:", type: recover(namespace, { apply: true }) },
      START_COORDINATOR,
    ],
  }),
  witness_unusable: mend(
    "The witness folder can’t be used",
    "What was leased is remembered there, outside the store.",
    { say: "Mend its rights or its disk, or give another one (serve --witness-folder)." },
  ),
  store_corrupt: ({ namespace }) => ({
    kind: "type",
    title: "The record was changed by another hand",
    meaning:
      "Its checksum is wrong, or it can’t be what this software wrote. Nothing is leased and nothing is written.",
    steps: [
      { say: "Find out who wrote there. When the old value is put back, leasing goes on at once." },
      { say: "Else: stop the coordinator, if the store is an embedded one, and look.", type: recover(namespace) },
      { say: "Do it:", type: recover(namespace, { apply: true }) },
      START_COORDINATOR,
    ],
  }),
  store_unknown_schema: mend("Another release wrote the store", "This one can’t read it.", {
    say: "Use the release that wrote it.",
  }),
  store_locked: mend("Another process has the store open", "Only one may.", {
    say: "Stop the other one, or ask it over HTTP.",
  }),
  store_missing: mend(
    "There is no store at that path",
    "If an archive already holds numbers, the store must be somewhere: a volume not mounted, another folder, another user.",
    { say: "Find it, and start the coordinator with it (serve --store)." },
  ),
  store_unavailable: mend(
    "The store does not answer",
    "It can’t be reached, or has no memory or disk left. What was under way may be burnt; nothing is ever leased twice.",
    { say: "See that it runs:", type: commandLine("doctor", undefined) },
    {
      say: "An embedded store that could not be written leases again when the disk is mended and the coordinator is started anew.",
    },
  ),
  run_space_exhausted: ({ namespace }) => ({
    kind: "type",
    title: "All runs of this version are leased",
    meaning: "Nothing wraps, and no number is ever used again.",
    steps: [
      {
        say: "Importers use up the runs they hold. Numbering goes on in the next version; read what that means first.",
      },
      { say: "An embedded store must be stopped for it. Look:", type: advance(namespace) },
      { say: "Do it:", type: advance(namespace, { yes: true }) },
    ],
  }),
};

function recover(namespace: string, options: CommandOptions = {}): string {
  return commandLine("recover", namespace, options);
}

function advance(namespace: string, options: CommandOptions = {}): string {
  return commandLine("advance-version", namespace, options);
}

function recoverLost({ namespace, storeId, floor }: Circumstances, options: CommandOptions = {}): string {
  return recover(namespace, { "store-id": storeId, floor, ...options });
}
