/**
 * New leases as they come, each once and none left out: by ledger id, which rises with every lease, so that what is new is what
 * lies above all that was told.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type LedgerEntry, PAGE_LIMIT_MAX } from "@callnumber/protocol/wire";
import { lastLedgerIdOf } from "../lease-identity.js";
import { AskError } from "./ask-error.js";
import { exportedLeases } from "./export-stream.js";
import { newestLeases } from "./newest-leases.js";

export interface FollowQuestion {
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly namespace: string;
  /** As `filterQuery` makes it, without an end. */
  readonly filter: URLSearchParams;
  /** How many of those that are there already come first. */
  readonly limit: number;
  readonly everyMs: number;
  readonly signal: AbortSignal;
  /** Told when the coordinator stops answering, once until it answers again. */
  readonly onTrouble: (error: AskError) => void;
}

/** Batches, oldest first; ends when the signal does. @throws AskError when the very first question is not answered. */
export async function* followedLeases(question: FollowQuestion): AsyncGenerator<readonly LedgerEntry[], void> {
  const { signal, everyMs, onTrouble } = question;
  const known = await leasesSoFar(question);
  let { upTo } = known;
  if (known.leases.length > 0) yield known.leases;
  for (let isTroubled = false; await passed(everyMs, signal); ) {
    try {
      for await (const { leases, upToRun } of newLeases(question, upTo)) {
        upTo = upToRun;
        if (leases.length > 0) yield leases;
      }
      isTroubled = false;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof AskError)) throw error;
      if (!isTroubled) onTrouble(error);
      isTroubled = true;
    }
  }
}

interface SoFar {
  readonly leases: readonly LedgerEntry[];
  /** Ledger id of the newest lease of all; -1 for none. */
  readonly upTo: number;
}

/** What is there, up to a lease that was there first: what comes while one page is read is new. */
async function leasesSoFar(question: FollowQuestion): Promise<SoFar> {
  const { coordinator, tokenFile, namespace, filter, limit } = question;
  const place = { coordinator, tokenFile, namespace };
  const [newest] = (await newestLeases({ ...place, filter: new URLSearchParams(), limit: 1 })).leases;
  if (newest === undefined) return { leases: [], upTo: -1 };
  const upTo = lastLedgerIdOf(newest);
  const bounded = new URLSearchParams(filter);
  bounded.set("toRun", String(upTo));
  const { leases } = await newestLeases({ ...place, filter: bounded, limit });
  return { leases: leases.toReversed(), upTo };
}

interface Told {
  readonly leases: readonly LedgerEntry[];
  readonly upToRun: number;
}

/** What is told counts as told also when the rest of it is broken off. */
async function* newLeases({ filter, ...question }: FollowQuestion, after: number): AsyncGenerator<Told, void> {
  const above = new URLSearchParams(filter);
  above.set("fromRun", String(Math.max(after + 1, Number(filter.get("fromRun") ?? 0))));
  let leases: LedgerEntry[] = [];
  let upToRun = after;
  for await (const line of exportedLeases({ ...question, filter: above })) {
    if ("end" in line) upToRun = Math.max(upToRun, line.upToRun ?? upToRun);
    else {
      leases.push(line);
      upToRun = lastLedgerIdOf(line);
    }
    if (leases.length < PAGE_LIMIT_MAX) continue;
    yield { leases, upToRun };
    leases = [];
  }
  yield { leases, upToRun };
}

async function passed(pauseMs: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false;
  await delay(pauseMs, undefined, { signal }).catch(() => {});
  return !signal.aborted;
}
