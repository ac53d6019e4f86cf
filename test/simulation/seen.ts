/** What was seen in many histories, and whether that was enough to say anything. */
import { ERROR_RULES, type ErrorCode } from "@callnumber/protocol/wire";
import { ELSEWHERE } from "../faults/refusal-codes.js";
import { KINDS } from "./faults/kinds.js";
import type { Played } from "./play.js";

/** Refusals that importers can't meet in a simulated world, or hardly ever; all others must have been met. */
const UNMET: Readonly<Partial<Record<ErrorCode, string>>> = {
  ...ELSEWHERE,
  claim_raced: "settled by the guard itself, in all but one of many thousand histories",
  store_silent: "settled by the guard itself, in all but one of many thousand histories",
  store_went_back: "settled by the guard itself, in all but one of a thousand histories",
  store_forked:
    "takes two masters that lease and an importer that meets both: in one of some hundred to many thousand histories",
  namespace_already_initialised: "init is typed once",
  coordinator_still_leases: "an answer to operators only",
  store_has_more_nodes: "every node is counted (A2), unless somebody edits the count, which is a corrupt record",
  store_replaced: "one store (A4)",
  store_unknown_schema: "one release",
  store_epoch_unreadable: "INFO can always be read",
  store_evicts: "of preflight",
  store_copied: "of the embedded store",
  store_locked: "of the embedded store",
  store_missing: "of the embedded store",
  witness_unusable: "of the command line",
};

/** Histories in which even the rarest other refusal is met about twenty times. */
const REFUSALS_MET_AFTER = 10_000;

export class Seen {
  historyCount = 0;
  stepCount = 0;
  leaseCount = 0;
  runCount = 0;
  /** How many numbers the control was given again: by INCR, and by INCR with WAIT. */
  controlRepeatCount = 0;
  waitedControlRepeatCount = 0;
  readonly played = new Map<string, number>();
  readonly refusals = new Map<string, number>();

  add({ world, stepCount }: Played): void {
    const { tally, played, refusals } = world;
    this.historyCount++;
    this.stepCount += stepCount;
    this.leaseCount += tally.leases.length;
    this.runCount += tally.runCount;
    this.controlRepeatCount += tally.controlRepeats;
    this.waitedControlRepeatCount += tally.waitedControlRepeats;
    addAll(this.played, played);
    addAll(this.refusals, refusals);
  }

  /** Why nothing is proved by what was seen; empty when it was enough. */
  get gaps(): readonly string[] {
    const isLong = this.historyCount >= REFUSALS_MET_AFTER;
    const codes = Object.keys(ERROR_RULES).filter((code) => isLong && !(code in UNMET));
    return [
      ...Object.keys(KINDS).flatMap((kind) => (this.played.has(kind) ? [] : [`no ${kind} was played`])),
      ...codes.flatMap((code) => (this.refusals.has(code) ? [] : [`nobody was refused with ${code}`])),
      ...(this.leaseCount < this.historyCount ? ["there were fewer leases than histories"] : []),
      ...(this.controlRepeatCount === 0 ? ["INVALID: the control, a plain INCR, repeated nothing"] : []),
      ...(this.waitedControlRepeatCount === 0 ? ["INVALID: the control, INCR with WAIT, repeated nothing"] : []),
    ];
  }

  /** As a table, for people. */
  toString(): string {
    return [
      `histories ${this.historyCount}, steps ${this.stepCount}, leases ${this.leaseCount}, runs ${this.runCount}`,
      `repeats of the control: INCR ${this.controlRepeatCount}, INCR with WAIT ${this.waitedControlRepeatCount}`,
      "",
      ...rowsOf("step", this.played),
      "",
      ...rowsOf("refusal", this.refusals),
    ].join("\n");
  }
}

function addAll(sums: Map<string, number>, counts: ReadonlyMap<string, number>): void {
  for (const [name, count] of counts) sums.set(name, (sums.get(name) ?? 0) + count);
}

function rowsOf(heading: string, counts: ReadonlyMap<string, number>): readonly string[] {
  const rows = [
    [heading, "times"] as const,
    ...[...counts].sort().map(([name, count]) => [name, String(count)] as const),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const countWidth = Math.max(...rows.map(([, count]) => count.length));
  return rows.map(([name, count]) => `${name.padEnd(width)}  ${count.padStart(countWidth)}`);
}
