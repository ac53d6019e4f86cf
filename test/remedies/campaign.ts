/** Walks from many situations side by side, as most of their time is waiting; and a table of what was seen. */
import type { RedisBinary } from "../redis/redis-binary.js";
import type { StepContext } from "./situations.js";
import { type Walked, walksFrom, withoutValues } from "./walk.js";

const AT_ONCE = 8;

export async function walkAll(situations: readonly StepContext[], binary: RedisBinary): Promise<readonly Walked[]> {
  const left = [...situations];
  const walked: Walked[] = [];
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift())
      walked.push(...(await walksFrom(next, binary)));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return walked;
}

export function summaryOf(walked: readonly Walked[]): string {
  const commands = new Set(walked.flatMap(({ commands }) => commands.map(withoutValues)));
  const steps = Math.max(0, ...walked.map(({ commands }) => commands.length));
  const situations = new Set(walked.map(({ name }) => name)).size;
  const circles = walked.filter(({ isCircle }) => isCircle).length;
  return [
    `situations ${situations}, walks ${walked.length}, distinct commands ${commands.size}, steps to healthy at most ${steps}, circles ${circles}`,
    ...[...commands].sort().map((command) => `  ${command}`),
  ].join("\n");
}

/** What went wrong, for people. */
export function problemsOf(walked: readonly Walked[]): readonly string[] {
  return walked.flatMap(({ name, surface, commands, problems }) =>
    problems.map((problem) => `${name}, by ${surface || "no surface"}, after [${commands.join(" ; ")}]: ${problem}`),
  );
}
