/** Plays one row against a coordinator, beside another caller, and says what it cost. */
import { setTimeout as pause } from "node:timers/promises";
import type { CoordinatorBeside } from "./coordinator-beside.js";
import { faultsOfLog } from "./log-faults.js";
import type { Neighbour, Worked } from "./neighbour.js";
import type { Received } from "./raw-client.js";
import { type Row, SECRET } from "./row.js";

export interface RowResult {
  readonly row: Row;
  readonly times: number;
  readonly statuses: readonly number[];
  readonly burntRuns: number;
  readonly memoryKib: number;
  /** Median of the other caller's leases while the row was played, against the median just before. */
  readonly latencyRatio: number;
  readonly problems: readonly string[];
}

export interface PlayOptions {
  /** So long the other caller works alone, and so long the row is played, again and again. 0 plays it once. */
  readonly forMs: number;
  /** How often the two take turns: what else a machine does then weighs on both alike. */
  readonly turnCount: number;
}

export async function playRow(
  row: Row,
  coordinator: CoordinatorBeside,
  neighbour: Neighbour,
  { forMs, turnCount }: PlayOptions,
): Promise<RowResult> {
  const markBefore = await coordinator.mark();
  const memoryBefore = coordinator.memoryKib;
  coordinator.newOutput();
  const received: Received[] = [];
  const failures: string[] = [];
  const alone: Worked[] = [];
  const beside: Worked[] = [];
  do {
    alone.push((await neighbour.during(() => pause(forMs))).worked);
    const turn = await neighbour.during(() => playedFor(row, coordinator, forMs));
    received.push(...turn.result.received);
    failures.push(...turn.result.failures);
    beside.push(turn.worked);
  } while (!row.isOnce && beside.length < turnCount);
  const moved = (await coordinator.mark()) - markBefore;
  const memoryKib = coordinator.memoryKib - memoryBefore;
  const both = [...alone, ...beside];
  const leasedRuns = both.reduce((sum, { runCount }) => sum + runCount, 0);
  const burntRuns = moved - leasedRuns - (row.grantedRuns ?? 0) * received.length;
  const problems = [...failures, ...received.flatMap((one) => problemsOf(row, one))];
  if (burntRuns !== 0) problems.push(`${burntRuns} runs were burnt`);
  for (const failure of both.flatMap(({ failures }) => failures))
    problems.push(`the other caller was refused: ${failure}`);
  if (!coordinator.isAlive) problems.push("the coordinator has ended");
  const { leaseToken, operatorToken, foreignToken } = coordinator.target;
  problems.push(...faultsOfLog(coordinator.newOutput(), [SECRET, leaseToken, operatorToken, foreignToken]));
  return {
    row,
    times: received.length,
    statuses: received[0]?.statuses ?? [],
    burntRuns,
    memoryKib,
    latencyRatio: medianMs(beside) / medianMs(alone),
    problems: [...new Set(problems)],
  };
}

interface Turn {
  readonly received: readonly Received[];
  /** Why a row could not be played to its end: what had to be right before its bad input was not. */
  readonly failures: readonly string[];
}

async function playedFor(row: Row, { target }: CoordinatorBeside, forMs: number): Promise<Turn> {
  const received: Received[] = [];
  const endsAtMs = performance.now() + forMs;
  try {
    do received.push(await row.act(target));
    while (!row.isOnce && performance.now() < endsAtMs);
  } catch (error) {
    return { received, failures: [(error as Error).message] };
  }
  return { received, failures: [] };
}

function problemsOf({ statuses, isAnswered, grantedRuns = 0 }: Row, { statuses: seen, text }: Received): string[] {
  const problems: string[] = [];
  const goodAnswers = seen.filter((status) => status < 300).length;
  if (goodAnswers > (isAnswered ? 1 : grantedRuns))
    problems.push(`it was answered as if it were right: ${seen.join(", ")}`);
  if (seen.join() !== statuses.join())
    problems.push(`answered ${seen.join(", ") || "nothing"}, and not ${statuses.join(", ") || "nothing"}`);
  if (isAnswered && !text.includes('"verdict":"malformed"')) problems.push("it was not called malformed");
  if (/\bat .*\.(js|ts):\d+/.test(text)) problems.push("the answer holds a stack trace");
  if (text.includes(SECRET)) problems.push("the answer holds a secret");
  return problems;
}

function medianMs(turns: readonly Worked[]): number {
  const sorted = turns.flatMap(({ tookMs }) => tookMs).toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
