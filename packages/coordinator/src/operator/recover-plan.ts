/** What a recovery goes by: what is known of the runs that were leased, and what was planned from it. */
import type { CommandOptions } from "@callnumber/protocol/operator";
import type { CoordinatorError } from "../errors.js";
import type { Remembrance } from "../guard/checkpoint.js";
import type { NamespaceRecord } from "../store.js";

/** A run that is known to be leased, and where that is known from. */
export interface Floor {
  readonly from: string;
  readonly ledgerId: number;
}

/** What a recovery found, would set and would cost. */
export interface RecoverPlan {
  readonly namespace: string;
  readonly storeId: string;
  /** The record as found; undefined when it is gone or can't be read. */
  readonly found: NamespaceRecord | undefined;
  /** Why the record can't be read. */
  readonly fault: CoordinatorError | undefined;
  readonly witnessed: Remembrance | undefined;
  readonly floors: readonly Floor[];
  /** Where the mark will be at least: the clock line a moment from now. */
  readonly target: number;
  /** Runs that will never be leased because of it, as far as can be told. */
  readonly skippedRunCount: number;
  /** How long after the recovery the next run is free, about, ms. */
  readonly nextRunInMs: number;
  /** Whether nothing was found that a recovery would fix, or that the next coordinator does not settle automatically. */
  readonly isHealthy: boolean;
  /** When the clock line will have passed everything that is known; null when it has: only then can it be done. */
  readonly possibleAtMs: number | null;
  readonly nodeCount: number;
  /** The command that made this plan, with further options. */
  readonly again: (more: CommandOptions) => string;
}

/** The floor above all others; undefined when there is none. */
export function greatestOf(floors: readonly Floor[]): Floor | undefined {
  return floors.reduce<Floor | undefined>(
    (one, other) => (one === undefined || other.ledgerId > one.ledgerId ? other : one),
    undefined,
  );
}

/** Its ledger id; 0 without one: nothing is known to be leased. */
export function idOf(floor: Floor | undefined): number {
  return floor?.ledgerId ?? 0;
}
