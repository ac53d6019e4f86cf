/** Which of two accounts of one lease is the later one, and whether a lease has ended. Pure. */
import type { LedgerEntry } from "@callnumber/protocol/wire";

/** Reports never take progress back, so the farther of the two is the later one; the first when they are equal. */
export function laterOf(one: LedgerEntry, other: LedgerEntry): LedgerEntry {
  const [known, told] = [one.progress, other.progress];
  if (told === null) return one;
  if (known === null) return other;
  const places = [
    told.run - known.run,
    (told.lastSequence ?? -1) - (known.lastSequence ?? -1),
    Number(isLastWord(told.state)) - Number(isLastWord(known.state)),
    told.reportedAtMs - known.reportedAtMs,
  ];
  return (places.find((difference) => difference !== 0) ?? 0) > 0 ? other : one;
}

/** Whether nobody mints from any of its runs any more: its holder will report nothing new. */
export function hasEnded({ progress, runCount, firstRun }: LedgerEntry): boolean {
  if (progress === null || progress.state === "open") return false;
  return progress.state !== "exhausted" || progress.run === firstRun + runCount - 1;
}

function isLastWord(state: string): boolean {
  return state !== "open";
}
