/** Plays one row against a coordinator, beside another caller, and says what it cost. */
import { setTimeout as pause } from "node:timers/promises";
import type { CoordinatorBeside } from "./coordinator-beside.js";
import { faultsOfLog } from "./log-faults.js";
import type { Neighbour } from "./neighbour.js";
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
  /** So long the other caller works before, and the row is played again and again. 0 plays it once. */
  readonly forMs: number;
}

export async function playRow(
  row: Row,
  coordinator: CoordinatorBeside,
  neighbour: Neighbour,
  { forMs }: PlayOptions,
): Promise<RowResult> {
  const quiet = await neighbour.during(() => pause(forMs));
  const markBefore = await coordinator.mark();
  const memoryBefore = coordinator.memoryKib;
  coordinator.newOutput();
  const { result: received, worked } = await neighbour.during(() => playedFor(row, coordinator, forMs));
  const moved = (await coordinator.mark()) - markBefore;
  const memoryKib = coordinator.memoryKib - memoryBefore;
  const burntRuns = moved - worked.runCount - (row.grantedRuns ?? 0) * received.length;
  const problems = received.flatMap((one) => problemsOf(row, one));
  if (burntRuns !== 0) problems.push(`${burntRuns} runs were burnt`);
  for (const failure of worked.failures) problems.push(`the other caller was refused: ${failure}`);
  if (!coordinator.isAlive) problems.push("the coordinator has ended");
  const { token } = coordinator.target;
  problems.push(...faultsOfLog(coordinator.newOutput(), token === undefined ? [SECRET] : [SECRET, token]));
  return {
    row,
    times: received.length,
    statuses: received[0]?.statuses ?? [],
    burntRuns,
    memoryKib,
    latencyRatio: median(worked.tookMs) / median(quiet.worked.tookMs),
    problems: [...new Set(problems)],
  };
}

async function playedFor(row: Row, { target }: CoordinatorBeside, forMs: number): Promise<readonly Received[]> {
  const received: Received[] = [];
  const endsAtMs = performance.now() + forMs;
  do received.push(await row.act(target));
  while (!row.isOnce && performance.now() < endsAtMs);
  return received;
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

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
